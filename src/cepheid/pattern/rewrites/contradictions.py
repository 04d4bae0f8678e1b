"""Conditions that can never hold together."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch, Condition, Variable, has_neighbours
from cepheid.pattern.rewrites.fold import compare

MAX_TERMS = 100
"""Beyond this many different terms the search, cubic in them, is left out."""


def find_contradictions(branch: Branch) -> Branch:
    """Say why a branch can never match; drop a negation that can never strike."""
    negations = tuple(n for n in branch.negations if contradiction((*branch.conditions, *n.conditions), ()) is None)
    never = contradiction(branch.conditions, branch.variables)
    return replace(branch, negations=branch.negations if never else negations, never=branch.never or never)


def contradiction(conditions: tuple[Condition, ...], variables: tuple[Variable, ...]) -> str | None:
    """Why no events satisfy all of the conditions, or None where that is not known."""
    # A set of one event has no neighbours, so nothing that is said of them is impossible.
    conditions = tuple(c for c in conditions if not has_neighbours(c.expression))
    for condition in conditions:
        if isinstance(condition.expression, s.Literal):
            return f"{condition} is not true"
    return _null_and_compared(conditions) or _order_broken(conditions, variables)


def _null_and_compared(conditions: tuple[Condition, ...]) -> str | None:
    compared = {
        side: c
        for c in conditions
        if isinstance(c.expression, s.Comparison)
        for side in (c.expression.left, c.expression.right)
    }
    for condition in conditions:
        if isinstance(condition.expression, s.IsNull) and condition.expression.operand in compared:
            return f"{condition} and {compared[condition.expression.operand]} cannot both hold"
    return None


def _order_broken(conditions: tuple[Condition, ...], variables: tuple[Variable, ...]) -> str | None:
    """Read each comparison as an edge ``x <= y`` or ``x < y``; a circle with a strict edge cannot be.

    The same circle without one makes its terms equal, so that ``<>`` between two of them cannot be.
    """
    strict: dict[tuple[s.Expression, s.Expression], bool] = {}  # whether the strongest known edge is strict

    def edge(low: s.Expression, high: s.Expression, is_strict: bool) -> None:
        strict[low, high] = strict.get((low, high), False) or is_strict

    unequal = []
    for condition in conditions:
        match condition.expression:
            case s.Comparison("<" | "<=" as operator, left, right):
                edge(left, right, operator == "<")
            case s.Comparison(">" | ">=" as operator, left, right):
                edge(right, left, operator == ">")
            case s.Comparison("=", left, right):
                edge(left, right, False)
                edge(right, left, False)
            case s.Comparison("<>", left, right):
                edge(left, left, False)
                edge(right, right, False)
                unequal.append((left, right, condition))
    for variable in variables:
        count = s.Aggregate("COUNT", variable.name, None)
        if any(count in pair for pair in strict):
            edge(s.Literal(variable.minimum), count, False)
            if variable.maximum is not None:
                edge(count, s.Literal(variable.maximum), False)
    terms = list(dict.fromkeys(term for pair in strict for term in pair))
    if len(terms) > MAX_TERMS:
        return None
    for one, other in permutations((t for t in terms if isinstance(t, s.Literal)), 2):
        if compare("<=", one.value, other.value):
            edge(one, other, bool(compare("<", one.value, other.value)))
    for middle, low, high in product(terms, repeat=3):
        if (low, middle) in strict and (middle, high) in strict:
            edge(low, high, strict[low, middle] or strict[middle, high])
    for left, right, condition in unequal:
        if left == right or ((left, right) in strict and (right, left) in strict):
            return f"{condition} cannot hold: both sides are equal"
    for term in terms:
        if strict.get((term, term)):
            circle = [c for c in conditions if _in_circle(c, term, strict)]
            together = " together" if len(circle) > 1 else ""
            return f"{' and '.join(map(str, circle))} can never hold{together}"
    return None


def _in_circle(condition: Condition, term: s.Expression, reach: dict[tuple[s.Expression, s.Expression], bool]) -> bool:
    """Whether both sides of a comparison lie on a circle through a term."""
    match condition.expression:
        case s.Comparison(_, left, right):
            return all((side, term) in reach and (term, side) in reach for side in (left, right))
    return False
