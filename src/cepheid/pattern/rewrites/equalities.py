"""What equals the same equals each other: another key to look events up by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations

from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch, Condition


def derive_equalities(branch: Branch) -> Branch:
    """``a.k = b.k``, ``b.k = c.k`` → also ``a.k = c.k``; ``a.k = b.k``, ``a.k = 5`` → also ``b.k = 5``.

    A negation learns from the conditions of the match, since they hold wherever it is asked; the match learns nothing
    from a negation. Where events are selected one variable at a time, a condition judged early would select others.
    """
    if branch.stepwise:
        return branch
    place = {name: i for i, name in enumerate(branch.names)}

    def derive(known: Iterable[Condition], about: str | None) -> Iterator[Condition]:
        equal = list(_equalities(known))
        for group in _groups(equal):
            terms = sorted(group, key=lambda term: min((place[v] for v in s.variables(term)), default=len(place)))
            for left, right in combinations(terms, 2):
                mentioned = s.variables(left) | s.variables(right)
                wanted = mentioned if about is None else about in mentioned
                if wanted and (left, right) not in equal and (right, left) not in equal:
                    yield Condition(s.Comparison("=", left, right), derived=True)

    positive = branch.conditions
    negations = (
        replace(n, conditions=(*n.conditions, *derive((*positive, *n.conditions), n.name))) for n in branch.negations
    )
    return replace(branch, conditions=(*positive, *derive(positive, None)), negations=tuple(negations))


def _equalities(conditions: Iterable[Condition]) -> Iterator[tuple[s.Expression, s.Expression]]:
    """Pairs of terms that must be equal, each a constant or a function of one event."""
    for condition in conditions:
        match condition.expression:
            case s.Comparison("=", left, right) if _is_term(left) and _is_term(right):
                yield left, right


def _groups(pairs: Iterable[tuple[s.Expression, s.Expression]]) -> list[dict[s.Expression, None]]:
    """Sets of terms that must all be equal; a dictionary keeps them in the order in which they came."""
    groups: list[dict[s.Expression, None]] = []
    for left, right in pairs:
        touching = [group for group in groups if left in group or right in group]
        groups = [group for group in groups if group not in touching]
        groups.append({term: None for group in touching for term in group} | {left: None, right: None})
    return groups


def _is_term(expression: s.Expression) -> bool:
    nodes = list(s.walk(expression))
    if any(isinstance(node, (s.Aggregate, s.Neighbour)) for node in nodes):
        return False
    return len(s.variables(expression)) <= 1
