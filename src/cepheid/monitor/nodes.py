"""The nodes: their windows and sums, and where they stand in the zone of the model in force."""

from __future__ import annotations

import numpy as np

from cepheid.engine.compile import announce
from cepheid.monitor.kernels import Floats, Ints, Rules, State, advance, recheck
from cepheid.monitor.model import Model, Settings


class Nodes:
    """Nodes that run in this process: in a simulation all of them; on Spark each key has one of its own.

    A node speaks when it is outside: it reports its sums and then waits, muted, for a new model or a new reference.
    While it waits it goes on observing.
    """

    def __init__(self, settings: Settings, count: int, due: int) -> None:
        announce(advance)
        size, slots = settings.dimension, settings.window or 1
        square, line = (count, size, size), (count, size)
        self._settings = settings
        self._state = State(
            ring_x=np.zeros((count, slots, size)),
            ring_y=np.zeros((count, slots)),
            head=np.zeros(count, np.int64),
            seen=np.zeros(count, np.int64),
            due=np.full(count, due, np.int64),
            muted=np.zeros(count, np.bool_),
            outside=np.zeros(count, np.bool_),
            sum_a=np.zeros(square),
            rest_a=np.zeros(square),
            sum_c=np.zeros(line),
            rest_c=np.zeros(line),
            sent_a=np.zeros(square),
            sent_c=np.zeros(line),
            reference_a=np.zeros(square),
            reference_c=np.zeros(line),
            m=np.zeros(square),
            p=np.zeros(line),
            q=np.zeros(line),
            certified=np.zeros(square),
            bound=np.full(count, np.inf),
            direction=np.ones(line) / np.sqrt(size),
            changes=np.zeros(count, np.int64),
            certificates=np.zeros(count, np.int64),
        )
        self._rules = self._without_model()

    @property
    def state(self) -> State:
        return self._state

    def advance(self, node: Ints, step: Ints, x: Floats, y: Floats, start: int) -> int:
        """Observations from ``start`` on, until the end of a step in which a node is outside; the place after it."""
        place: int = advance(self._state, self._rules, node, step, x, y, start)
        return place

    def outside(self) -> Ints:
        """The nodes that have something to report."""
        return np.flatnonzero(self._state.outside)

    def totals(self) -> tuple[Floats, Floats]:
        """The sums of all nodes together."""
        state = self._state
        upper = np.triu((state.sum_a + state.rest_a).sum(axis=0))
        return upper + np.triu(upper, 1).T, (state.sum_c + state.rest_c).sum(axis=0)

    def send(self, nodes: Ints) -> tuple[Floats, Floats]:
        """The sums of nodes, for the coordinator. They wait now for what it decides."""
        state = self._state
        upper = np.triu(state.sum_a[nodes] + state.rest_a[nodes])
        state.sent_a[nodes] = upper + np.triu(upper, 1).transpose(0, 2, 1)
        state.sent_c[nodes] = state.sum_c[nodes] + state.rest_c[nodes]
        state.muted[nodes] = True
        state.outside[nodes] = False
        return state.sent_a[nodes], state.sent_c[nodes]

    def adopt(self, nodes: Ints, model: Model, budget: float) -> None:
        """A new model, made of the sums that were sent: drift is measured from them."""
        self._rules = self._rules._replace(has_model=True, inverse=model.inverse, beta=model.beta, budget=budget)
        self._refer(nodes, 0.0, 0.0)

    def restore(self, model: Model, budget: float) -> None:
        """The model that was in force when the state was kept."""
        self._rules = self._rules._replace(has_model=True, inverse=model.inverse, beta=model.beta, budget=budget)

    def start_again(self, nodes: Ints) -> None:
        """The drift that was sent is the coordinator's now."""
        self._refer(nodes, 0.0, 0.0)

    def shift(self, nodes: Ints, drift_a: Floats, drift_c: Floats) -> None:
        """The sums that were sent count as this drift: what nodes have too much of, others have too little of."""
        self._refer(nodes, drift_a, drift_c)

    def wait(self, nodes: Ints, observations: int) -> None:
        """There is no model; report again after so many observations."""
        state = self._state
        self._rules = self._without_model()
        state.muted[nodes] = False
        state.outside[nodes] = False
        state.due[nodes] = state.seen[nodes] + observations

    def _refer(self, nodes: Ints, drift_a: Floats | float, drift_c: Floats | float) -> None:
        state = self._state
        state.reference_a[nodes] = state.sent_a[nodes] - drift_a
        state.reference_c[nodes] = state.sent_c[nodes] - drift_c
        state.muted[nodes] = False
        recheck(state, self._rules, nodes)

    def _without_model(self) -> Rules:
        size = self._settings.dimension
        return Rules(
            window=self._settings.window or 0,
            phi=self._settings.ar1 or 0.0,
            zone=self._settings.kind,
            has_model=False,
            inverse=np.zeros((size, size)),
            beta=np.zeros(size),
            epsilon=self._settings.epsilon,
            budget=0.0,
        )
