"""Each conjunct is a condition of its own."""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch, Condition, ConditionKind


def split_conjunctions(branch: Branch) -> Branch:
    """``x AND y``, which other rewrites may have made of one conjunct, → ``x``, ``y``."""
    return branch.map_conditions(lambda conditions: [part for c in conditions for part in _split(c)])


def _split(condition: Condition) -> list[Condition]:
    parts = [Condition(part, condition.derived) for part in s.conjuncts(condition.expression)]
    if condition.kind is ConditionKind.NEIGHBOUR and any(p.kind is not ConditionKind.NEIGHBOUR for p in parts):
        return [condition]  # a part without neighbours would also be asked of a set of one event
    return parts
