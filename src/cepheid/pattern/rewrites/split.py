"""Each conjunct is a condition of its own."""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch, Condition, has_neighbours, judged_with


def split_conjunctions(branch: Branch) -> Branch:
    """``x AND y``, which other rewrites may have made of one conjunct, → ``x``, ``y``."""
    return branch.map_conditions(lambda conditions: [part for c in conditions for part in _split(c, branch.stepwise)])


def _split(condition: Condition, stepwise: bool) -> list[Condition]:
    parts = [Condition(part, condition.derived) for part in s.conjuncts(condition.expression)]
    if len({has_neighbours(part.expression) for part in parts}) > 1:
        return [condition]  # a part without neighbours would also be asked of a set of one event
    if stepwise and any(judged_with(part.expression) != judged_with(condition.expression) for part in parts):
        return [condition]
    return parts
