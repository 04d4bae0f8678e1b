"""How many events to push at once."""

from __future__ import annotations

import math

import numpy as np

MEMORY = 16
"""Pushes after which an observation counts for a third."""
FIRST = 256
"""Events of the first push under a bound: nothing is known about what they take."""
SLICE = 0.25
"""A push takes at most this part of the time that safety leaves: the bound is on waiting and working together."""
FEW = 8
"""After so many pushes it can be said how fast they are: small ones say little about larger ones. And the first, which
does what is done only once, says nothing as soon as there is another."""
GROWTH = 2.0
"""A push has at most so many times as many events as the largest so far: predictions hold near what was seen."""


class BatchSize:
    """Batches that take no longer than a number of seconds, as far as the last ones tell.

    A push takes some time whatever it has, and some for each event; both are estimated from what pushes took. An idle
    stream has small batches by itself, as few events are waiting; this limits those of a busy one.

    >>> size = BatchSize(0.050, most=65_536)
    >>> for n in (100, 200, 400, 800):
    ...     size.took(n, 0.001 + n * 0.0001)
    >>> round(size.events, -1)
    490
    """

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._largest = 0.0
        self._pushes = 0
        self._sums = np.zeros(5)  # of 1, n, t, n², n·t over pushes of n events that took t seconds; old ones fade

    def took(self, events: int, seconds: float) -> None:
        fade = math.exp(-1 / MEMORY)
        if self._pushes == 1:
            self._sums[:] = 0.0
        self._pushes += 1
        self._sums = self._sums * fade + (1.0, events, seconds, events**2, events * seconds)
        self._largest = max(self._largest * fade, events)

    @property
    def events(self) -> int:
        """How many events to push at the most."""
        if math.isinf(self._seconds):
            return self._most
        if not self._pushes:
            return min(FIRST, self._most)
        return int(max(1, min(self._fitting(), GROWTH * self._largest)))

    @property
    def growing(self) -> bool:
        """Whether larger batches would take no longer than they may: the limit is that none such was seen yet."""
        return self._pushes < FEW or self._fitting() > GROWTH * self._largest

    @property
    def rate(self) -> float:
        """Events a second in the largest pushes that fit; without end, as long as nobody can know."""
        if self._pushes < FEW:
            return math.inf
        always, each = self._costs()
        return self._fitting() / max(always + each * self._fitting(), 1e-9)

    def _fitting(self) -> float:
        """How many events fit into the time. Where the fixed part alone takes half of it, smaller batches would only
        make the queue longer."""
        always, each = self._costs()
        fits = max((self._seconds - always) / each, always / each) if each > 0 else math.inf
        return max(min(fits, self._most), 1.0)

    def _costs(self) -> tuple[float, float]:
        """Seconds of each push, and of each event in it: a line through the observations, neither of them negative."""
        n, t, nn, nt = (self._sums[1:] / self._sums[0]).tolist()
        spread = nn - n * n
        each = (nt - n * t) / spread if spread > 1e-6 * n * n else t / max(n, 1)
        each = min(max(each, 0.0), t / max(n, 1e-9))
        return max(t - each * n, 0.0), each
