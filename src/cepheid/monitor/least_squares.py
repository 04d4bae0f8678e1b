"""A regression model of distributed streams, never further than ε from the one that all data would give now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, assert_never

import numpy as np

from cepheid.monitor.coordinator import Action, Adopt, Coordinator, Poll, Resolution, Shift, Wait
from cepheid.monitor.events import Balanced, ModelDrift, MonitorEvent, Pooled, Started, Time, Waiting
from cepheid.monitor.kernels import Floats, Ints
from cepheid.monitor.model import Settings, Undetermined, Zone, fit
from cepheid.monitor.nodes import Nodes
from cepheid.monitor.observations import Observations, Stream, batches


class LeastSquaresMonitor:
    """Nodes and a coordinator that keep a least-squares model in force: ‖β − β₀‖ ≤ ε at the end of every moment.

    β is the model of all nodes' data, which nobody computes: of the last ``window`` observations of each node, or of
    all (None). ``ridge`` is λ of a penalty λ‖β‖²; ``ar1`` is φ, where each node's errors are an AR(1) process.
    ``zone``: ``"residual"``, or ``"paper"`` for the constraint (4.7), which is never larger. ``resolution``: what
    happens when a node leaves its zone: ``"pool"``, ``"balance"``, or ``"poll"`` as in Algorithm 2. Nodes report for
    the first time after ``warmup`` observations.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(3000, 4, 2))
    >>> y = x @ [1.0, -2.0] + rng.normal(size=(3000, 4))
    >>> y[2000:] += 3 * x[2000:, :, 0]                              # the model changes
    >>> monitor = LeastSquaresMonitor(nodes=4, dimension=2, epsilon=0.5, window=500)
    >>> changes = [event.time for event in monitor.run((x, y)) if event.type == "ModelDrift"]
    >>> 2000 < changes[0] < 2100
    True
    >>> bool(np.linalg.norm(monitor.model - [4.0, -2.0]) < 0.5), monitor.messages_per_observation < 0.1
    (True, True)
    """

    def __init__(
        self,
        nodes: int,
        dimension: int,
        epsilon: float,
        *,
        window: int | None = None,
        ridge: float = 0.0,
        ar1: float | None = None,
        zone: Zone = "residual",
        resolution: Resolution = "pool",
        warmup: int | None = None,
        seed: int = 0,
    ) -> None:
        self.settings = Settings(nodes, dimension, epsilon, window, ridge, ar1, zone)
        due = (window or 10 * dimension) if warmup is None else warmup
        self._nodes = Nodes(self.settings, nodes, due)
        self._coordinator = Coordinator(self.settings, resolution, seed)
        self.observations = 0
        """Since the first model was in force."""
        self.sent: Counter[str] = Counter()
        """Messages by kind: from nodes reports and answers, to nodes polls, models, shifts and waits."""
        self._started_with: int | None = None

    @property
    def model(self) -> Floats | None:
        """β₀; None while there is none in force."""
        return None if self._coordinator.model is None else self._coordinator.model.beta

    def present(self) -> Floats | None:
        """β, the model of all data now; None if they do not determine one. It is here to compare with: to know it, all
        nodes would have to send their sums.
        """
        found = fit(self.settings, *self._nodes.totals())
        return None if isinstance(found, Undetermined) else found.beta

    @property
    def messages(self) -> int:
        """All messages so far, each way."""
        return self.sent.total()

    @property
    def messages_per_observation(self) -> float:
        """Since the first model was in force. Sending every observation would be 1."""
        since = self.messages - (self._started_with or 0)
        return since / self.observations if self.observations else 0.0

    @property
    def numbers(self) -> int:
        """The numbers that messages carried: sums and shifts have m(m+1)/2 + m, a model one more."""
        size = self.settings.dimension
        sums = size * (size + 1) // 2 + size
        kinds = {"report": sums, "answer": sums, "shift": sums, "model": sums + 1, "poll": 0, "wait": 1}
        return sum(kinds[kind] * count for kind, count in self.sent.items())

    def report(self) -> dict[str, Any]:
        """Counts, as a dict."""
        return {
            "observations": self.observations,
            "messages": self.messages,
            "messages per observation": self.messages_per_observation,
            "numbers": self.numbers,
            **{f"{kind} messages": count for kind, count in sorted(self.sent.items())},
            "certificates": int(self._nodes.state.certificates.sum()),
        }

    def run(self, stream: Stream) -> Iterator[MonitorEvent]:
        """Takes observations as they come; yields whenever a model comes into force or nodes are balanced.

        ``stream``: :class:`Observations`, or a pair of arrays x (rounds, nodes, dimension) and y (rounds, nodes), or an
        iterable of such batches. A second call goes on where the first one ended.
        """
        for batch in batches(stream):
            self._check(batch)
            step = batch.step
            place = 0
            while place < len(step):
                before = place
                place = self._nodes.advance(batch.node, step, batch.x, batch.y, place)
                if self._started_with is not None:
                    self.observations += place - before
                # A new model or reference may leave nodes outside that went on observing before it came.
                while len(violators := self._nodes.outside()):
                    event = self._resolve(violators, _time(batch, step, place - 1))
                    if event is not None:
                        yield event

    def _resolve(self, violators: Ints, time: Time) -> MonitorEvent | None:
        before = self.model
        asked: list[Ints] = []
        action = self._send("report", violators)
        while isinstance(action, Poll):
            self.sent["poll"] += len(action.nodes)
            asked.append(action.nodes)
            action = self._send("answer", action.nodes)
        match action:
            case None:
                if before is None:  # others have still to report for the first time
                    return None
                self._nodes.start_again(violators)
                return Pooled(time, violators, self.messages)
            case Shift(nodes, drift_a, drift_c):
                self.sent["shift"] += len(nodes)
                self._nodes.shift(nodes, drift_a, drift_c)
                return Balanced(time, violators, np.concatenate([violators[:0], *asked]), self.messages)
            case Adopt(nodes, model, budget):
                self.sent["model"] += len(nodes)
                self._nodes.adopt(nodes, model, budget)
                if before is None:
                    if self._started_with is None:
                        self._started_with = self.messages
                    return Started(time, model.beta, self.messages)
                change = float(np.linalg.norm(model.beta - before))
                return ModelDrift(time, model.beta, change, violators, self.messages)
            case Wait(nodes, reason, observations):
                self.sent["wait"] += len(nodes)
                self._nodes.wait(nodes, observations)
                return Waiting(time, reason, self.messages)
        assert_never(action)

    def _send(self, kind: str, nodes: Ints) -> Action | None:
        self.sent[kind] += len(nodes)
        return self._coordinator.receive(nodes, *self._nodes.send(nodes))

    def _check(self, batch: Observations) -> None:
        nodes, size = self.settings.nodes, self.settings.dimension
        if batch.x.shape[1] != size:
            raise ValueError(f"observations have {size} x each, as dimension= says; got {batch.x.shape[1]}")
        if len(batch.node) and not (batch.node.min() >= 0 and batch.node.max() < nodes):
            raise ValueError(f"nodes are numbered from 0 to {nodes - 1}; got {batch.node.min()} to {batch.node.max()}")


def _time(batch: Observations, step: Ints, place: int) -> Time:
    if batch.time is None:
        return int(step[place])
    value = batch.time[place]
    return value.item() if not isinstance(value, np.datetime64) else value
