"""How many partial matches there are to be expected in a window."""

from __future__ import annotations

import math
from functools import cache, lru_cache

from cepheid.pattern.normal import Branch, ConditionKind, Negation, Variable
from cepheid.pattern.order import transitive_closure
from cepheid.stats.estimates import DEFAULT_SELECTIVITY, Estimates

HUGE = 1e100
"""What is larger is all the same to a planner."""
PAIR = 0.2
"""Looking at a pair of partial matches takes about a fifth of the time that making one of them takes …"""
APART = 3
"""… and so many times as long where neither is a single event. Those lie between two events of the other side, and only
they are looked at; of longer ones, all that begin in the window are."""


class _Shape:
    """What of a branch does not depend on the stream: its order, and the variables that conditions connect."""

    def __init__(self, order: frozenset[tuple[str, str]], connected: tuple[frozenset[str], ...]) -> None:
        self._before: dict[str, set[str]] = {}
        for earlier, later in transitive_closure(order):
            self._before.setdefault(later, set()).add(earlier)
        self._connected = connected
        self.extensions = cache(self._linear_extensions)
        self.parts = cache(self._parts)

    def _linear_extensions(self, subset: frozenset[str]) -> int:
        """In how many orders the variables can come: one of those that nothing must follow comes last."""
        if len(subset) <= 1:
            return 1
        last = [v for v in subset if not any(v in self._before.get(other, ()) for other in subset)]
        return sum(self.extensions(subset - {v}) for v in last)

    def _parts(self, subset: frozenset[str]) -> list[frozenset[str]]:
        """The parts of a subset that conditions hold together."""
        parts = [frozenset({name}) for name in subset]
        for needed in self._connected:
            if needed <= subset:
                touched = [part for part in parts if part & needed]
                parts = [part for part in parts if not part & needed]
                parts.append(frozenset().union(*touched))
        return parts


_shape_of = lru_cache(maxsize=1024)(_Shape)
"""It is asked for at each look at a stream."""


class Cardinality:
    """Expected numbers of partial matches over subsets of a branch's variables, all in one window."""

    def __init__(self, branch: Branch, estimates: Estimates) -> None:
        self.branch = branch
        self.estimates = estimates
        self._conditions: dict[frozenset[str], float] = {}
        for c in branch.conditions:
            if len(c.variables) > 1:
                self._conditions[c.variables] = self._conditions.get(c.variables, 1.0) * estimates.selectivity_of(c)
        self._joint = estimates.joint
        self._counts = {v.name: _count(v, branch, estimates) for v in branch.variables}
        self._same_partition = estimates.same_partition
        shape = _shape_of(branch.order, tuple(self._conditions))
        self._extensions, self._connected = shape.extensions, shape.parts
        self._negations = [
            (
                frozenset().union(n.after, n.before, *(c.variables - {n.name} for c in n.conditions)),
                _struck(n, estimates),
            )
            for n in branch.negations
            if n.after and n.before
        ]
        self._keys = [
            (c.variables, estimates.selectivity.get(c, DEFAULT_SELECTIVITY[c.kind]))
            for c in branch.conditions
            if c.kind is ConditionKind.EQUALITY
        ]
        self.of = cache(self._of)
        self.step = cache(self._step)

    def _of(self, subset: frozenset[str]) -> float:
        """Π W·r_i · Π sel_ij over the subset, times the chance that the events come in the order that SEQ demands.

        The papers give each ordered pair a selectivity of its own. Pairs are not independent (a < b and b < c imply
        a < c), so the chance is counted: of all |S|! orders, those that keep the partial order. A negation takes away
        what it strikes, once all that it looks at is bound.
        """
        size = math.prod(self._counts[v] for v in subset)
        size *= self._satisfying(subset)
        size *= self._same_partition ** (len(subset) - 1)
        size *= math.prod(1 - struck for needed, struck in self._negations if needed <= subset)
        return min(size * self._extensions(subset) / math.factorial(len(subset)), HUGE)

    def _step(self, left: frozenset[str], right: frozenset[str] = frozenset()) -> float:
        """The work of a join: the partial matches that it makes, and the pairs that it looks at for them.

        The papers count partial matches only. Where few pairs match, looking for them is most of the work.
        """
        if not right:
            return self.of(left)
        pairs = self.of(left) * self.of(right) * self._key_share(left, right)
        if len(left) > 1 and len(right) > 1:
            pairs *= APART
        return min(self.of(left | right) + PAIR * pairs, HUGE)

    def _key_share(self, left: frozenset[str], right: frozenset[str]) -> float:
        """Of all pairs, those that are looked at: equal values are found by key."""
        if self.branch.partition:
            return self._same_partition
        keys = [share for needed, share in self._keys if needed & left and needed & right and needed <= left | right]
        return min(keys, default=1.0)

    def _satisfying(self, subset: frozenset[str]) -> float:
        """The chance that events in order satisfy all conditions on a subset.

        What conditions connect is judged as a whole where that was tried, since of a < b and b < c one says much about
        the other. What they do not connect is independent.
        """
        chance = 1.0
        for part in self._connected(subset):
            joint = self._joint(part) if len(part) > 1 else 1.0
            if joint is None:
                chance *= math.prod(share for needed, share in self._conditions.items() if needed <= part)
            else:
                chance *= joint * math.factorial(len(part)) / self._extensions(part)
        return chance


def _struck(negation: Negation, estimates: Estimates) -> float:
    """The share of partial matches that have a negated event between two of theirs.

    Those lie a third of a window apart in the mean, and events come independently of them.
    """
    conditions = [c for c in negation.conditions if negation.name in c.variables and len(c.variables) > 1]
    expected = estimates.counts.get(negation.name, 0.0) * estimates.same_partition / 3
    expected *= math.prod(estimates.selectivity_of(c) for c in conditions)
    return 1 - math.exp(-expected)


def _count(variable: Variable, branch: Branch, estimates: Estimates) -> float:
    """The sets that a KL variable can be bound to; for a single event, the events themselves.

    Of λ events that come independently of each other, λ^k / k! sets of k are expected; λ are those of one partition.
    Each pair of neighbours must satisfy the conditions on them.
    """
    events = estimates.count_of(variable.name)
    if not variable.is_kleene or events <= 0:
        return events
    pair = math.prod(
        estimates.selectivity_of(c)
        for c in branch.conditions
        if c.kind is ConditionKind.NEIGHBOUR and c.variables == {variable.name}
    )
    mean = events * estimates.same_partition
    size, total = variable.minimum or 1, 0.0
    while variable.maximum is None or size <= variable.maximum:
        logarithm = size * math.log(mean) - math.lgamma(size + 1) + (size - 1) * math.log(max(pair, 1e-9))
        sets = math.exp(min(logarithm, 230.0))
        total += sets
        if total > HUGE or (size > mean and sets <= 1e-6 * total):
            break
        size += 1
    return total / estimates.same_partition
