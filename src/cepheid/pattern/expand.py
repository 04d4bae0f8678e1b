"""A structure with OR and ANY becomes several without."""

from __future__ import annotations

import itertools
import math

from typing_extensions import assert_never

from cepheid.language import syntax as s

MAX_BRANCHES = 1000
"""A pattern that means more alternatives than this is refused: each of them is searched for."""


def branch_count(structure: s.Structure) -> int:
    match structure:
        case s.Event() | s.Kleene() | s.Negated():
            return 1
        case s.Sequence(parts) | s.Conjunction(parts):
            return math.prod(branch_count(p) for p in parts)
        case s.Disjunction(parts):
            return sum(branch_count(p) for p in parts)
        case s.AnyOf(count, parts):
            return math.comb(len(parts), count)
        case _:
            assert_never(structure)


def expand(structure: s.Structure) -> list[s.Structure]:
    """The alternatives, in the order in which they are written; each has only SEQ, AND and leaves."""
    match structure:
        case s.Event() | s.Kleene() | s.Negated():
            return [structure]
        case s.Sequence(parts):
            return [s.Sequence(choice) for choice in itertools.product(*map(expand, parts))]
        case s.Conjunction(parts):
            return [s.Conjunction(choice) for choice in itertools.product(*map(expand, parts))]
        case s.Disjunction(parts):
            return [alternative for part in parts for alternative in expand(part)]
        case s.AnyOf(count, parts):
            return [s.Conjunction(choice) for choice in itertools.combinations(parts, count)]
        case _:
            assert_never(structure)
