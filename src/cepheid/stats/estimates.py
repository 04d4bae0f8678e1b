"""What is known about a stream when a plan is made: how often events arrive, and how often conditions hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cepheid.pattern.normal import Branch, Condition, ConditionKind

DEFAULT_SELECTIVITY = {
    ConditionKind.FILTER: 1.0,  # the arrival rate of a variable counts only the events that pass its filters
    ConditionKind.EQUALITY: 0.01,
    ConditionKind.COMPARISON: 0.5,
    ConditionKind.NEIGHBOUR: 0.5,
    ConditionKind.AGGREGATE: 0.5,
    ConditionKind.GENERAL: 0.5,
}
"""What is assumed of a condition that nothing is known of."""


def _unknown(variables: frozenset[str]) -> float | None:
    return None


@dataclass(frozen=True, slots=True)
class Estimates:
    """Arrival rates and selectivities.

    ``counts``: how many events of each variable, its filters passed, arrive in one window: the papers' W·r.
    ``selectivity``: the share of combinations of events that satisfy a condition: the papers' sel.
    ``same_partition``: the share of pairs of events that PARTITION BY leaves together.
    ``joint``: the share of combinations over some variables that come in the order of the pattern and satisfy all
    conditions, where that is known. Conditions are seldom independent of each other.
    """

    counts: Mapping[str, float] = field(default_factory=dict)
    selectivity: Mapping[Condition, float] = field(default_factory=dict)
    same_partition: float = 1.0
    joint: Callable[[frozenset[str]], float | None] = field(default=_unknown, compare=False)

    def count_of(self, variable: str) -> float:
        return self.counts.get(variable, 1.0)

    def selectivity_of(self, condition: Condition) -> float:
        """A derived condition adds nothing to those that it follows from."""
        if condition.derived:
            return 1.0
        return self.selectivity.get(condition, DEFAULT_SELECTIVITY[condition.kind])


def nothing_known(branch: Branch) -> Estimates:
    """All variables equally frequent, all conditions as selective as their kind usually is."""
    return Estimates({v.name: 1.0 for v in branch.variables})
