"""Patterns that ask for a little less than a given one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.local.explain.explain import NOTHING
from cepheid.pattern.expand import expand
from cepheid.pattern.normal import Branch, NormalForm, has_neighbours


def branch_patterns(pattern: Pattern, normal: NormalForm) -> Iterator[tuple[Branch, Pattern]]:
    """Each alternative as a pattern of its own, with the conditions that its plan has."""
    for structure, branch in zip(expand(pattern.structure), normal.branches, strict=True):
        planned = (*branch.conditions, *(c for n in branch.negations for c in n.conditions))
        conditions = [c.expression for c in planned if not c.derived and not has_neighbours(c.expression)]
        # A plan may ask for a part of what was asked of neighbours, which could not be written alone.
        written = (c for c in s.conjuncts(pattern.condition) if s.variables(c) <= {*branch.names})
        conditions += [c for c in written if has_neighbours(c)]
        kept = _only(structure, branch.names)
        assert kept is not None
        alone = replace(pattern, structure=kept, output=NOTHING, source=None)
        yield branch, with_conditions(alone, conditions)


def with_conditions(pattern: Pattern, conditions: Collection[s.Expression]) -> Pattern:
    """With these conditions in place of its own. An AND among them stays one condition: it is judged as a whole."""
    whole = [s.Not(s.Not(c)) if isinstance(c, s.And) else c for c in conditions]
    return replace(pattern, condition=s.conjunction(whole) if whole else None)


def conditions_of(pattern: Pattern) -> tuple[s.Expression, ...]:
    """The conditions as :func:`with_conditions` was given them."""
    return tuple(_unwrapped(c) for c in s.conjuncts(pattern.condition))


def _unwrapped(expression: s.Expression) -> s.Expression:
    match expression:
        case s.Not(s.Not(s.And() as inner)):
            return inner
    return expression


def without_condition(pattern: Pattern, condition: s.Expression) -> Pattern:
    return with_conditions(pattern, [c for c in conditions_of(pattern) if c != condition])


def only(pattern: Pattern, names: Collection[str]) -> Pattern:
    """The part of a pattern that is about some of its variables."""
    structure = _only(pattern.structure, names)
    assert structure is not None
    kept = [c for c in conditions_of(pattern) if s.variables(c) <= set(names)]
    return with_conditions(replace(pattern, structure=structure), kept)


def without_partition(pattern: Pattern) -> Pattern:
    return replace(pattern, partition=())


def without_slide(pattern: Pattern) -> Pattern:
    return replace(pattern, slide=None)


def using(pattern: Pattern, strategy: s.Strategy) -> Pattern:
    return replace(pattern, selection=s.Selection(strategy))


def within(pattern: Pattern, size: int) -> Pattern:
    assert pattern.window is not None
    return replace(pattern, window=s.Window(pattern.window.kind, size))


def in_any_order(pattern: Pattern) -> Pattern:
    return replace(pattern, structure=_map(pattern.structure, lambda leaf: leaf, ordered=False))


def with_minimum(pattern: Pattern, name: str, minimum: int, *, exactly: bool = False) -> Pattern:
    """With another least size for a set; ``exactly``: which is also the largest."""

    def change(leaf: s.Leaf) -> s.Leaf:
        if isinstance(leaf, s.Kleene) and leaf.event.variable == name:
            return replace(leaf, minimum=minimum, maximum=minimum if exactly else leaf.maximum)
        return leaf

    return replace(pattern, structure=_map(pattern.structure, change, ordered=True))


def with_one_event(pattern: Pattern, name: str) -> Pattern:
    """With one event in place of a set, and without what is asked of the set as a whole."""

    def change(leaf: s.Leaf) -> s.Leaf:
        return leaf.event if isinstance(leaf, s.Kleene) and leaf.event.variable == name else leaf

    single = replace(pattern, structure=_map(pattern.structure, change, ordered=True))
    return with_conditions(single, [c for c in conditions_of(pattern) if not _is_about_a_set(c, name)])


def _is_about_a_set(expression: s.Expression, name: str) -> bool:
    nodes = (node for node in s.walk(expression) if isinstance(node, (s.Aggregate, s.Neighbour)))
    return any(node.variable == name for node in nodes)


def sets_of(pattern: Pattern) -> dict[str, s.Kleene]:
    return {leaf.event.variable: leaf for leaf in s.leaves(pattern.structure) if isinstance(leaf, s.Kleene)}


def has_negation(pattern: Pattern) -> bool:
    return any(isinstance(leaf, s.Negated) for leaf in s.leaves(pattern.structure))


def _only(structure: s.Structure, names: Collection[str]) -> s.Structure | None:
    match structure:
        case s.Event() | s.Kleene() | s.Negated():
            return structure if s.event_of(structure).variable in names else None
    kept = tuple(part for p in structure.parts if (part := _only(p, names)) is not None)
    return replace(structure, parts=kept) if len(kept) > 1 else kept[0] if kept else None


def _map(structure: s.Structure, change: Callable[[s.Leaf], s.Leaf], *, ordered: bool) -> s.Structure:
    match structure:
        case s.Event() | s.Kleene() | s.Negated():
            return change(structure)
    parts = tuple(_map(part, change, ordered=ordered) for part in structure.parts)
    if isinstance(structure, s.Sequence) and not ordered:
        return s.Conjunction(parts)
    return replace(structure, parts=parts)
