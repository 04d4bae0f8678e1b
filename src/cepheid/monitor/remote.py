"""A node and a coordinator that only have messages in common, which may be late, or come twice.

Violations are pooled: a node that leaves its zone reports and goes on from there, and nobody waits for an answer. What
a node has reported and the coordinator does not know yet, or a model that has not arrived, is in none of the
accounts; so the guarantee holds whenever no message is on its way, and whatever order they came in.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

import numpy as np

from cepheid.monitor.coordinator import Adopt, Coordinator, Wait
from cepheid.monitor.events import ModelDrift, MonitorEvent, Started, Waiting
from cepheid.monitor.kernels import Floats
from cepheid.monitor.messages import Order, Report
from cepheid.monitor.model import Settings
from cepheid.monitor.nodes import Nodes

MINE = np.zeros(1, np.int64)


class RemoteNode:
    """One node. Everything it knows is in :meth:`snapshot`."""

    def __init__(self, name: str, settings: Settings, warmup: int) -> None:
        self._name = name
        self._settings = settings
        self._warmup = warmup
        self._nodes = Nodes(settings, 1, warmup)
        self._reports = 0
        self._order: Order | None = None

    def observe(self, x: Floats, y: Floats) -> list[Report]:
        """Observations in their order; what the node has to report."""
        node, step = np.zeros(len(y), np.int64), np.arange(len(y))
        x, y = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64)
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise ValueError(f"node {self._name!r} has an observation that is not finite; leave such ones out")
        reports, place = [], 0
        while place < len(y):
            place = self._nodes.advance(node, step, x, y, place)
            reports += self._speak()
        return reports

    def follow(self, order: Order) -> list[Report]:
        """A new model, or none; what the node has to report then."""
        if self._order is not None and order.number <= self._order.number:
            return []
        self._order = order
        if order.model is None:
            self._nodes.wait(MINE, order.wait)
        else:
            self._nodes.adopt(MINE, order.model, order.budget)
        return self._speak()

    def _speak(self) -> list[Report]:
        if not len(self._nodes.outside()):
            return []
        sum_a, sum_c = self._nodes.send(MINE)
        if self._order is not None and self._order.model is not None:
            self._nodes.start_again(MINE)
        self._reports += 1
        return [Report(self._name, self._reports, sum_a[0].copy(), sum_c[0].copy())]

    def snapshot(self) -> bytes:
        file = io.BytesIO()
        order = "" if self._order is None else self._order.to_json()
        np.savez(file, reports=self._reports, order=np.array(order), **self._nodes.state._asdict())
        return file.getvalue()

    @classmethod
    def restore(cls, name: str, settings: Settings, warmup: int, snapshot: bytes) -> RemoteNode:
        node = cls(name, settings, warmup)
        with np.load(io.BytesIO(snapshot), allow_pickle=False) as found:
            node._reports = int(found["reports"])
            order = str(found["order"])
            for field, array in node._nodes.state._asdict().items():
                if found[field].shape != array.shape:
                    raise ValueError(
                        f"node {name!r} was kept with other settings ({field} of shape {found[field].shape}, now "
                        f"{array.shape}): window and dimension stay the same for the life of a checkpoint"
                    )
                array[...] = found[field]
        node._order = Order.from_json(order, settings) if order else None
        if node._order is not None and node._order.model is not None:
            node._nodes.restore(node._order.model, node._order.budget)
        return node


class RemoteCoordinator:
    """Makes models of what nodes report. It keeps nothing that it could not learn from their reports again."""

    def __init__(self, settings: Settings, names: Sequence[str], last_order: int = 0) -> None:
        """``last_order``: the number of the last order that was given, by this coordinator or by one before it."""
        if len(names) != settings.nodes or len(set(names)) != len(names):
            raise ValueError(f"expected {settings.nodes} different names of nodes, got {list(names)!r}")
        self._settings = settings
        self._coordinator = Coordinator(settings, "pool")
        self._place = {name: place for place, name in enumerate(names)}
        self._last = np.zeros(len(names), np.int64)
        self._order = last_order
        self.messages = 0
        self.events: list[MonitorEvent] = []

    @property
    def model(self) -> Floats | None:
        return None if self._coordinator.model is None else self._coordinator.model.beta

    def receive(self, reports: Iterable[Report]) -> Order | None:
        """New reports; the order that follows from them, if any."""
        before, action = self.model, None
        for report in reports:
            place = self._place.get(report.node)
            if place is None:
                raise ValueError(f"unknown node {report.node!r}; there are {', '.join(self._place)}")
            if report.number <= self._last[place]:
                continue
            self._last[place] = report.number
            self.messages += 1
            found = self._coordinator.receive(np.array([place]), report.sum_a[None], report.sum_c[None])
            action = found if found is not None else action
        if action is None:
            return None
        self._order += 1
        self.messages += self._settings.nodes
        match action:
            case Adopt(_, model, budget):
                if before is None:
                    self.events.append(Started(self._order, model.beta, self.messages))
                else:
                    change = float(np.linalg.norm(model.beta - before))
                    self.events.append(ModelDrift(self._order, model.beta, change, MINE[:0], self.messages))
                return Order(self._order, model, budget)
            case Wait(_, reason, observations):
                self.events.append(Waiting(self._order, reason, self.messages))
                return Order(self._order, None, wait=observations)
        raise AssertionError("pooled violations are never polled or balanced")
