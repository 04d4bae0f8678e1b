"""The overload detector: how much work must be dropped so that events stay within a bound on their latency.

With R events a second coming in and μ a second being served, ``1 − μ/R`` of the work is too much (the paper's ρ, per
window, is that share of the window's events). R and μ are measured; and since no strategy drops exactly what it is
told, the share is corrected by what came of it, so that the queue settles at a level instead of swinging around it.
"""

from __future__ import annotations

import math

LEVEL = 0.5
"""While events are shed the queue is held at this part of the safe wait, which is safety · bound …"""
CALM, PATIENCE = 0.25, 2.0
"""… and shedding ends when nothing was dropped and the wait was below this part of it, for so many bounds."""
RISE, FALL = 1.0, 0.5
"""How fast a share is corrected that is too small, or too large, in parts of the error per bound. Strategies overreact,
and partial matches of before weigh on: who gives back slowly does not swing."""
DRAIN = 0.25
"""The same for a queue that is not at its level."""
EASE = 0.7
"""How fast the share falls at least while pushes take all there is, in parts of it per bound."""
MOST = 0.99
"""Never all of the work: what is left shows how fast it goes."""
QUIET = 1e-6
"""Whatever comes more slowly than this part of what is served is all the same."""
LEAST = 0.005
"""Less than this is nothing."""
STEP = 1 / 64
"""A smaller change of the share is not worth a new decision of the strategy, …"""
HOLD = 1 / 8
"""… and it stands for so many bounds, unless events have waited for longer than is safe."""


class OverloadDetector:
    """Asked after each push; answers which share of the work to drop from now on.

    Keeps no clock of its own: the caller says what time it is, in seconds. ``latency_bound`` is in seconds too, and may
    be set anew between two pushes.

    >>> detector = OverloadDetector(1.0, safety=0.8)
    >>> detector.after_push(0.05, arrived=50, served=50, seconds=0.05, queued=9, waited=0.0)
    0.0
    >>> ratio = detector.after_push(0.10, arrived=2000, served=50, seconds=0.05, queued=1950, waited=0.05)
    >>> ratio > 0.9, detector.shedding
    (True, True)
    """

    def __init__(self, latency_bound: float, safety: float = 0.8) -> None:
        if not latency_bound > 0:
            raise ValueError(f"latency_bound is a positive number of seconds, got {latency_bound}")
        if not 0 < safety < 1:
            raise ValueError(f"safety is between 0 and 1, got {safety}")
        self.latency_bound = latency_bound
        self.safety = safety
        self.shedding = False
        self.ratio = 0.0
        self._effort = 0.0  # −ln(1 − ratio), before what an emergency adds
        self._calm = 0.0  # since when
        self._changed = -math.inf  # when the answer did
        self._input = _Rate(latency_bound / 4)
        self._service = _Rate(latency_bound / 4)
        self._before: float | None = None

    @property
    def input_rate(self) -> float:
        """Events that come in a second (the paper's R), lately."""
        return self._input.value

    @property
    def service_rate(self) -> float:
        """Events that are served in a second of work, with what is dropped now. Without dropping it is the paper's
        μ."""
        return self._service.value

    def after_push(
        self,
        now: float,
        *,
        arrived: float,
        served: int,
        seconds: float,
        queued: float,
        waited: float,
        capacity: float | None = None,
    ) -> float:
        """The share of the work to drop from now on, 0 for none.

        ``arrived``: events that came since the last call. ``served``: events of this push, which took ``seconds``.
        ``queued``: events that wait now, the oldest of them for ``waited`` seconds. A push that took all there
        was is no measure of how fast the engine is, since it is as fast as events come; then ``capacity`` says how many
        events a second could be served in larger ones, as far as is known.
        """
        passed = seconds if self._before is None else now - self._before
        self._before = now
        self._input.add(arrived, passed)
        if capacity is None:
            self._service.add(served, seconds)
        safe = self.safety * self.latency_bound
        served_rate = self.service_rate if capacity is None else capacity
        wait = max(waited, queued / served_rate)  # of an event that comes now
        if not self.shedding and wait >= safe:
            # The paper's 1 − μ/R, at once; from then on it is corrected.
            self.shedding = True
            self._effort = max(self._error(served_rate), 0.0)
            self._calm = now
        elif self.shedding:
            self._correct(passed / self.latency_bound, capacity, wait - LEVEL * safe)
            if self._effort or wait > CALM * safe:
                self._calm = now
            self.shedding = now - self._calm < PATIENCE * self.latency_bound
        ratio = self._share(waited - safe) if self.shedding else 0.0
        urgent = not ratio or not self.ratio or waited > safe
        if urgent or (now - self._changed >= HOLD * self.latency_bound and abs(ratio - self.ratio) >= STEP):
            self.ratio, self._changed = ratio, now
        return self.ratio

    def _correct(self, step: float, capacity: float | None, excess: float) -> None:
        """``step``: the time that has passed, in bounds; ``excess``: seconds that the wait is above its level."""
        served = self.service_rate if capacity is None else max(capacity, self.input_rate)
        error = self._error(served)
        change = (RISE if error > 0 else FALL) * error + DRAIN * excess / self.latency_bound
        if capacity is not None:  # more is dropped than need be
            change = min(change, -EASE * self._effort)
        effort = min(self._effort + step * change, -math.log(1 - MOST))
        self._effort = effort if change > 0 or effort >= LEAST else 0.0

    def _error(self, served: float) -> float:
        """How many times as fast events come as they are served, as a logarithm."""
        return math.log(max(self.input_rate / served, QUIET)) if self.input_rate else 0.0

    def _share(self, over: float) -> float:
        """``over``: seconds that the oldest has waited for longer than is safe. It cannot wait for the queue to
        settle."""
        emergency = over / ((1 - self.safety) * self.latency_bound / 2)
        ratio = min(max(-math.expm1(-self._effort), emergency), MOST)
        return ratio if ratio >= LEAST else 0.0


class _Rate:
    """Events per second, where what is some time ago counts less and less."""

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self._events = self._seconds = 0.0

    @property
    def value(self) -> float:
        return self._events / self._seconds if self._seconds else 0.0

    def add(self, events: float, seconds: float) -> None:
        fade = math.exp(-seconds / self._memory)
        self._events = self._events * fade + events
        self._seconds = self._seconds * fade + seconds
