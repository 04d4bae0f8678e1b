"""From a pattern to its normal form."""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern, with_names
from cepheid.pattern.check import check
from cepheid.pattern.expand import expand
from cepheid.pattern.normal import Branch, Condition, Negation, NormalForm, Rewrite, Variable
from cepheid.pattern.order import precedences, transitive_reduction
from cepheid.pattern.rewrites.contradictions import find_contradictions
from cepheid.pattern.rewrites.desugar import desugar
from cepheid.pattern.rewrites.equalities import derive_equalities
from cepheid.pattern.rewrites.fold import fold_constants
from cepheid.pattern.rewrites.orient import orient_comparisons
from cepheid.pattern.rewrites.push_not import push_not_inward
from cepheid.pattern.rewrites.repeats import drop_repeats
from cepheid.pattern.rewrites.split import split_conjunctions

REWRITES: tuple[Rewrite, ...] = (
    desugar,
    push_not_inward,
    fold_constants,
    split_conjunctions,
    orient_comparisons,
    drop_repeats,
    find_contradictions,
    derive_equalities,
)
"""In this order. Each keeps the set of matches as it is."""


def normalise(pattern: Pattern, rewrites: tuple[Rewrite, ...] = REWRITES) -> NormalForm:
    """The normal form of a pattern; PatternError if it cannot be run.

    >>> import cepheid
    >>> pattern = cepheid.parse("PATTERN SEQ(A a, OR(B b, C c)) WHERE NOT (a.x >= 5 OR a.x < 3) AND 2 < c.y WITHIN 10")
    >>> for branch in normalise(pattern).branches:
    ...     print([v.name for v in branch.variables], [str(c) for c in branch.conditions])
    ['a', 'b'] ['a.x < 5', 'a.x >= 3']
    ['a', 'c'] ['a.x < 5', 'a.x >= 3', 'c.y > 2']
    """
    check(pattern)
    (pattern,) = with_names([pattern])
    branches = []
    for structure in expand(pattern.structure):
        branch = _branch(pattern, structure)
        for rewrite in rewrites:
            branch = rewrite(branch)
        branches.append(branch)
    assert pattern.name is not None
    names = (s.event_of(leaf).variable for leaf in s.leaves(pattern.structure) if not isinstance(leaf, s.Negated))
    return NormalForm(pattern.name, tuple(names), tuple(branches), pattern.selection, pattern.output, pattern.critical)


def _branch(pattern: Pattern, structure: s.Structure) -> Branch:
    """A structure without OR, with the conditions that have all of their variables in it."""
    assert pattern.window is not None
    positive = [leaf for leaf in s.leaves(structure) if not isinstance(leaf, s.Negated)]
    negated = [leaf.event for leaf in s.leaves(structure) if isinstance(leaf, s.Negated)]
    names = {s.event_of(leaf).variable for leaf in positive}
    pairs = precedences(structure)
    order = transitive_reduction(frozenset((x, y) for x, y in pairs if x in names and y in names))
    everything = names | {event.variable for event in negated}
    applying = [Condition(c) for c in s.conjuncts(pattern.condition) if s.variables(c) <= everything]
    return Branch(
        variables=tuple(_variable(leaf) for leaf in positive),
        order=order,
        negations=tuple(
            Negation(
                event.variable,
                event.type,
                *_neighbours(event.variable, [s.event_of(leaf).variable for leaf in positive], pairs),
                conditions=tuple(c for c in applying if event.variable in c.variables),
            )
            for event in negated
        ),
        conditions=tuple(c for c in applying if c.variables <= names),
        partition=tuple(column.name for column in pattern.partition),
        window=pattern.window,
        slide=pattern.slide,
        stepwise=pattern.selection.strategy is not s.Strategy.SKIP_TILL_ANY,
    )


def _variable(leaf: s.Event | s.Kleene) -> Variable:
    if isinstance(leaf, s.Kleene):
        return Variable(leaf.event.variable, leaf.event.type, leaf.minimum, leaf.maximum)
    return Variable(leaf.variable, leaf.type)


def _neighbours(
    name: str, positive: list[str], pairs: frozenset[tuple[str, str]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The last of the positive variables before a negated one, and the first of those after it."""
    before = [x for x in positive if (x, name) in pairs]
    after = [y for y in positive if (name, y) in pairs]
    last = tuple(x for x in before if not any((x, z) in pairs for z in before))
    first = tuple(y for y in after if not any((z, y) in pairs for z in after))
    return last, first
