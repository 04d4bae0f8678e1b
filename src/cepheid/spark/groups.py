"""Patterns that can be matched in one pass over the events, because the same rows may be torn apart for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch, Condition, NormalForm


@dataclass(frozen=True, slots=True)
class Group:
    """Patterns by their places, and the attributes that all events of any match of theirs share; there may be none."""

    places: tuple[int, ...]
    keys: tuple[str, ...]


def grouped(normals: Sequence[NormalForm], columns: Iterable[str]) -> list[Group]:
    """One group for each set of attributes; a pattern joins one with fewer or more, if the fewer are among the more.

    ``columns``: those of the events, in whose order the keys are.
    """
    order = {name: number for number, name in enumerate(columns)}
    groups: list[tuple[list[int], frozenset[str]]] = []
    for place, normal in enumerate(normals):
        shared = shared_attributes(normal) & order.keys()
        for number, (places, keys) in enumerate(groups):
            fewer = keys & shared
            if keys == shared or (fewer and fewer in (keys, shared)):
                groups[number] = ([*places, place], fewer)
                break
        else:
            groups.append(([place], shared))
    return [Group(tuple(places), tuple(sorted(keys, key=order.__getitem__))) for places, keys in groups]


def shared_attributes(normal: NormalForm) -> frozenset[str]:
    """The attributes that all events of a match share, those of NOT that could unmake it too.

    They are those of PARTITION BY and, where all matches are selected, those that conditions make equal. Where events
    are selected one after the other or counted, an event that no condition admits can still be in the way.
    """
    branches = [branch for branch in normal.branches if branch.never is None]
    declared = frozenset(normal.branches[0].partition)
    if not branches or any(b.stepwise or b.window.kind is s.WindowKind.EVENTS for b in branches):
        return declared
    return declared | frozenset.intersection(*map(_made_equal, branches))


def _made_equal(branch: Branch) -> frozenset[str]:
    """The attributes that conditions make equal in all events of a branch."""
    positive = list(_equal_attributes(branch.conditions))
    negative = {n.name: list(_equal_attributes(n.conditions)) for n in branch.negations}
    variables = {v.name for v in branch.variables}
    if all(v.is_kleene for v in branch.variables) and len(variables) == 1:
        return frozenset()  # nothing compares the events of one set with each other
    found = set()
    for name in {name for name, _ in (*positive, *(pair for pairs in negative.values() for pair in pairs))}:
        linked = _linked(branch.variables[0].name, [pair for n, pair in positive if n == name])
        tied = all(any(n == name and pair & variables for n, pair in pairs) for pairs in negative.values())
        if linked == variables and tied:
            found.add(name)
    return frozenset(found)


def _equal_attributes(conditions: Iterable[Condition]) -> Iterator[tuple[str, frozenset[str]]]:
    """An attribute, and the two variables in which it must be equal."""
    for condition in conditions:
        match condition.expression:
            case s.Comparison("=", s.Attribute(one, name), s.Attribute(other, same)) if name == same and one != other:
                yield name, frozenset({one, other})


def _linked(start: str, pairs: list[frozenset[str]]) -> set[str]:
    """The variables that can be reached from one of them."""
    found = {start}
    while any(reached := [pair for pair in pairs if pair & found and not pair <= found]):
        found.update(*reached)
    return found
