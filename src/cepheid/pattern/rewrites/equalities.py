"""What equals the same equals each other: another key to look events up by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations

from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch, Condition


def derive_equalities(branch: Branch) -> Branch:
    """``a.k = b.k``, ``b.k = c.k`` → also ``a.k = c.k``; ``a.k = b.k``, ``a.k = 5`` → also ``b.k = 5``.

    A negation learns from the conditions of the match, since they hold wherever it is asked; the match learns nothing from a
    negation.
    """
    order = {name: i for i, name in enumerate(branch.names)}

    def derive(known: Iterable[Condition], about: str | None) -> tuple[Condition, ...]:
        present = {c.expression for c in known}
        found = []
        for group in _groups(known):
            terms = sorted(group, key=lambda t: min((order[v] for v in s.variables(t)), default=len(order)))
            for left, right in combinations(terms, 2):
                expression = s.Comparison("=", left, right)
                mentioned = s.variables(expression)
                if mentioned and expression not in present and (about is None or about in mentioned):
                    found.append(Condition(expression, derived=True))
        return tuple(found)

    positive = branch.conditions
    return replace(
        branch,
        conditions=(*positive, *derive(positive, None)),
        negations=tuple(
            replace(n, conditions=(*n.conditions, *derive((*positive, *n.conditions), n.name)))
            for n in branch.negations
        ),
    )


def _groups(conditions: Iterable[Condition]) -> Iterator[list[s.Expression]]:
    """Sets of terms that must be equal, each term a constant or a function of one event."""
    groups: list[dict[s.Expression, None]] = []
    for condition in conditions:
        match condition.expression:
            case s.Comparison("=", left, right) if _is_term(left) and _is_term(right):
                touching = [g for g in groups if left in g or right in g]
                groups = [g for g in groups if g not in touching]
                groups.append({left: None, right: None} | {t: None for g in touching for t in g})
    return (list(group) for group in groups if len(group) > 2)


def _is_term(expression: s.Expression) -> bool:
    nodes = list(s.walk(expression))
    if any(isinstance(node, (s.Aggregate, s.Neighbour)) for node in nodes):
        return False
    return len(s.variables(expression)) <= 1
