"""How many partial matches there are to be expected in a window."""

from __future__ import annotations

import math
from functools import cache

from cepheid.pattern.normal import Branch, ConditionKind, Negation, Variable
from cepheid.pattern.order import transitive_closure
from cepheid.stats.estimates import Estimates

HUGE = 1e100
"""What is larger is all the same to a planner."""


class Cardinality:
    """Expected numbers of partial matches over subsets of a branch's variables, all in one window."""

    def __init__(self, branch: Branch, estimates: Estimates) -> None:
        self._branch = branch
        self._conditions = [
            (c.variables, estimates.selectivity_of(c)) for c in branch.conditions if len(c.variables) > 1
        ]
        self._counts = {v.name: _count(v, branch, estimates) for v in branch.variables}
        self._same_partition = estimates.same_partition
        self._before: dict[str, set[str]] = {v.name: set() for v in branch.variables}
        for earlier, later in transitive_closure(branch.order):
            if earlier in self._before and later in self._before:
                self._before[later].add(earlier)
        self._negations = [
            (
                frozenset().union(n.after, n.before, *(c.variables - {n.name} for c in n.conditions)),
                _struck(n, estimates),
            )
            for n in branch.negations
            if n.after and n.before
        ]
        self.of = cache(self._of)
        self._extensions = cache(self._linear_extensions)

    def _of(self, subset: frozenset[str]) -> float:
        """Π W·r_i · Π sel_ij over the subset, times the chance that the events come in the order that SEQ demands.

        The papers give each ordered pair a selectivity of its own. Pairs are not independent (a < b and b < c imply
        a < c), so the chance is counted: of all |S|! orders, those that keep the partial order. A negation takes away
        what it strikes, once all that it looks at is bound.
        """
        size = math.prod(self._counts[v] for v in subset)
        size *= math.prod(selectivity for needed, selectivity in self._conditions if needed <= subset)
        size *= self._same_partition ** (len(subset) - 1)
        size *= math.prod(1 - struck for needed, struck in self._negations if needed <= subset)
        return min(size * self._extensions(subset) / math.factorial(len(subset)), HUGE)

    def _linear_extensions(self, subset: frozenset[str]) -> int:
        """In how many orders the variables can come: one of those that nothing must follow comes last."""
        if len(subset) <= 1:
            return 1
        last = [v for v in subset if not any(v in self._before[other] for other in subset)]
        return sum(self._extensions(subset - {v}) for v in last)


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
