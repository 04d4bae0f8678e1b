"""The coordinator (Algorithm 2): what is done when a node leaves its zone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from cepheid.monitor.kernels import Floats, Ints
from cepheid.monitor.model import Model, Settings, Undetermined, fit


@dataclass(frozen=True)
class Poll:
    """Asks nodes for their sums."""

    nodes: Ints


@dataclass(frozen=True)
class Adopt:
    """A new model for all nodes."""

    nodes: Ints
    model: Model
    budget: float
    """How much of the model's budget a node may use up."""


@dataclass(frozen=True)
class Shift:
    """Nodes whose drifts differ take their mean, which is inside the zone."""

    nodes: Ints
    drift_a: Floats
    drift_c: Floats


@dataclass(frozen=True)
class Wait:
    """There is no model. Nodes report again after so many more observations."""

    nodes: Ints
    reason: str
    observations: int


Action: TypeAlias = Poll | Adopt | Shift | Wait
"""A message to each of the nodes."""


Resolution: TypeAlias = Literal["pool", "balance", "poll"]
"""What happens at a violation.

``"poll"``: all nodes are asked and a new model is made (Algorithm 2).

``"balance"``: nodes are asked one by one until the mean drift of those that were asked is inside the zone; they all
take the mean. When it would take more than half of the nodes, all are asked.

``"pool"``: nodes have a zone smaller by a share s. A node that leaves it reports its sums, starts from there, and gets
no answer; its drift goes to the coordinator's account. As long as the account's part in the mean drift is within the
share s of the zone, the mean of all is within the zone. When it is not, a new model is made from the sums that are
known and sent to all; nobody is asked.
"""

TARGET = 0.6
"""Balanced nodes are no further out than this, where 1 is the border of the zone: or they would soon report again."""
AHEAD = 0.5
"""When the account is full before every node has reported, they move the same way. Then a new model is made for sums
that have moved on by this part of the account, and the account starts on the other side: it takes longer to fill.
"""


def pooled_share(nodes: int) -> float:
    """The share s of the zone that is the account's.

    Drifts that are random walks leave a zone of radius 1 − s after a time in (1 − s)², and the account, a walk of k
    nodes whose mean counts, its own in k·s². A report is one message of one node, a new model one to each node: the
    messages in a time are as 1/(1 − s)² + 1/(k·s²), which is least here.

    >>> round(pooled_share(10), 2), round(pooled_share(500), 2)
    (0.32, 0.11)
    """
    return 1.0 / (1.0 + float(np.cbrt(nodes)))


class Coordinator:
    """Takes the sums of nodes and says what to do. One resolution runs at a time.

    Each node's drift is what its sums differ by from its reference. The references, and the account, add up to the sums
    of the model in force, whatever is moved between them; so the mean of all drifts is that of all data, and as long as
    every part is inside its part of the zone, which is convex, the mean is inside the zone.
    """

    def __init__(self, settings: Settings, resolution: Resolution = "pool", seed: int = 0) -> None:
        if resolution not in ("pool", "balance", "poll"):
            raise ValueError(f"resolution is 'pool', 'balance' or 'poll', got {resolution!r}")
        size, count = settings.dimension, settings.nodes
        self._settings = settings
        self._resolution = resolution
        self._random = np.random.default_rng(seed)
        self._all = np.arange(count)
        self._known = np.zeros(count, np.bool_)
        self._sum_a = np.zeros((count, size, size))
        self._sum_c = np.zeros((count, size))
        self._reference_a = np.zeros((count, size, size))
        self._reference_c = np.zeros((count, size))
        self._account_a = np.zeros((size, size))
        self._account_c = np.zeros(size)
        self._reports = 0
        self._waits = 0
        self.model: Model | None = None

    @property
    def share(self) -> float:
        """How much of the zone is not the nodes'."""
        return pooled_share(self._settings.nodes) if self._resolution == "pool" else 0.0

    def receive(self, nodes: Ints, sum_a: Floats, sum_c: Floats) -> Action | None:
        """Reports and answers of nodes. None: there is nothing to do, or others have still to answer."""
        if self.model is not None and self._resolution == "pool":
            return self._pool(self.model, nodes, sum_a, sum_c)
        self._known[nodes] = True
        self._sum_a[nodes] = sum_a
        self._sum_c[nodes] = sum_c
        if self._known.all():
            return self._fit()
        if self.model is None:
            return None
        missing = np.flatnonzero(~self._known)
        if self._resolution == "balance":
            balanced = self._balance(self.model)
            if balanced is not None:
                return balanced
            if len(self._known) - len(missing) + 1 <= len(self._known) / 2:
                return Poll(self._random.choice(missing, 1))
        return Poll(missing)

    def _pool(self, model: Model, nodes: Ints, sum_a: Floats, sum_c: Floats) -> Adopt | Wait | None:
        self._reports += len(nodes)
        self._account_a += (sum_a - self._sum_a[nodes]).sum(axis=0)
        self._account_c += (sum_c - self._sum_c[nodes]).sum(axis=0)
        self._sum_a[nodes] = sum_a
        self._sum_c[nodes] = sum_c
        count = self._settings.nodes
        if model.value(self._account_a / count, self._account_c / count) <= self.share:
            return None
        return (self._fit_ahead() if self._reports < count else None) or self._fit()

    def _fit_ahead(self) -> Adopt | None:
        """A model for where the sums are going; None if that would not leave the account within its share."""
        count = self._settings.nodes
        more_a, more_c = AHEAD * self._account_a, AHEAD * self._account_c
        found = fit(self._settings, self._sum_a.sum(axis=0) + more_a, self._sum_c.sum(axis=0) + more_c)
        if isinstance(found, Undetermined) or found.value(more_a / count, more_c / count) > self.share:
            return None
        return self._adopt(found, -more_a, -more_c)

    def _balance(self, model: Model) -> Shift | None:
        nodes = np.flatnonzero(self._known)
        if len(nodes) < 2:
            return None
        drift_a = (self._sum_a[nodes] - self._reference_a[nodes]).mean(axis=0)
        drift_c = (self._sum_c[nodes] - self._reference_c[nodes]).mean(axis=0)
        if not model.value(drift_a, drift_c) <= TARGET:
            return None
        self._reference_a[nodes] = self._sum_a[nodes] - drift_a
        self._reference_c[nodes] = self._sum_c[nodes] - drift_c
        self._known[:] = False
        return Shift(nodes, drift_a, drift_c)

    def _fit(self) -> Adopt | Wait:
        found = fit(self._settings, self._sum_a.sum(axis=0), self._sum_c.sum(axis=0))
        self._known[:] = False
        if isinstance(found, Undetermined):
            self.model = None
            self._waits += 1
            # Ask less and less often, but at least once a window.
            after = self._settings.dimension * 2 ** min(self._waits - 1, 30)
            return Wait(self._all, found.reason, min(after, self._settings.window or after))
        return self._adopt(found, 0.0, 0.0)

    def _adopt(self, found: Model, account_a: Floats | float, account_c: Floats | float) -> Adopt:
        self._waits = self._reports = 0
        self.model = found
        self._reference_a[:] = self._sum_a
        self._reference_c[:] = self._sum_c
        self._account_a[:] = account_a
        self._account_c[:] = account_c
        return Adopt(self._all, found, found.budget * (1.0 - self.share))
