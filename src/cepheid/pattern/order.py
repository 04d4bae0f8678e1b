"""The order that SEQ demands, as a relation between variables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from cepheid.language import syntax as s


def precedences(structure: s.Structure) -> frozenset[tuple[str, str]]:
    """All pairs (x, y) of variables such that x's events are before y's; the structure has no OR."""

    def visit(node: s.Structure) -> Iterator[tuple[str, str]]:
        if isinstance(node, (s.Event, s.Kleene, s.Negated)):
            return
        names = [[s.event_of(leaf).variable for leaf in s.leaves(part)] for part in node.parts]
        if isinstance(node, s.Sequence):
            for i, earlier in enumerate(names):
                for later in names[i + 1 :]:
                    yield from itertools.product(earlier, later)
        for part in node.parts:
            yield from visit(part)

    return frozenset(visit(structure))


def transitive_reduction(pairs: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """The pairs that do not follow from the others; ``pairs`` is transitive."""
    later: dict[str, set[str]] = {}
    for x, y in pairs:
        later.setdefault(x, set()).add(y)
    return frozenset((x, y) for x, y in pairs if not any(y in later.get(z, ()) for z in later[x]))


def transitive_closure(pairs: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """With the pairs that follow from the others."""
    closed = set(pairs)
    for middle in {x for pair in pairs for x in pair}:
        closed |= {(x, z) for x, y in closed if y == middle for w, z in closed if w == middle}
    return frozenset(closed)


def is_sequence(structure: s.Structure) -> bool:
    """Whether the positive variables of a structure without OR are in a fixed order."""
    positive = [s.event_of(leaf).variable for leaf in s.leaves(structure) if not isinstance(leaf, s.Negated)]
    pairs = precedences(structure)
    return all((x, y) in pairs for i, x in enumerate(positive) for y in positive[i + 1 :])
