"""Searching for a tree over the variables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.orders import Order, exact, pattern_order
from cepheid.plan.tree import Join, Leaf, Plan, chain

MAX_EXACT = 11
"""Up to so many variables all trees are considered; beyond, the best left-deep tree is taken."""


def zstream(branch: Branch, cardinality: Cardinality) -> Plan:
    """Algorithm 3: the best tree whose leaves stand in pattern order, by dynamic programming over intervals."""
    names = pattern_order(branch, cardinality)
    return best_intervals(names, cardinality)[0, len(names) - 1][1]


def best_intervals(names: Order, cardinality: Cardinality) -> dict[tuple[int, int], tuple[float, Plan]]:
    """For each interval of some variables the cost of its best tree in that order, and the tree."""
    best: dict[tuple[int, int], tuple[float, Plan]] = {
        (i, i): (cardinality.of(frozenset({name})), Leaf(name)) for i, name in enumerate(names)
    }
    for length in range(1, len(names)):
        for first in range(len(names) - length):
            last = first + length
            parts = (
                (frozenset(names[first : cut + 1]), frozenset(names[cut + 1 : last + 1])) for cut in range(first, last)
            )
            cost, split = min(
                (best[first, cut][0] + best[cut + 1, last][0] + cardinality.step(*part), cut)
                for cut, part in zip(range(first, last), parts, strict=True)
            )
            best[first, last] = cost, Join(best[first, split][1], best[split + 1, last][1])
    return best


def bushy(branch: Branch, cardinality: Cardinality) -> Plan:
    """The cheapest of all trees, by dynamic programming over subsets."""
    names = pattern_order(branch, cardinality)
    if len(names) > MAX_EXACT:
        return chain(exact(branch, cardinality))
    return best_trees(names, cardinality)[frozenset(names)][1]


def best_trees(names: Order, cardinality: Cardinality) -> dict[frozenset[str], tuple[float, Plan]]:
    """For each subset of some variables the cost of its best tree, and the tree."""
    best: dict[frozenset[str], tuple[float, Plan]] = {
        frozenset({name}): (cardinality.of(frozenset({name})), Leaf(name)) for name in names
    }
    for size in range(2, len(names) + 1):
        for chosen in combinations(names, size):
            subset = frozenset(chosen)
            cost, left = min(
                (
                    (best[part][0] + best[subset - part][0] + cardinality.step(part, subset - part), part)
                    for part in left_parts(chosen)
                ),
                key=lambda candidate: candidate[0],
            )
            best[subset] = cost, Join(best[left][1], best[subset - left][1])
    return best


def left_parts(names: Order) -> Iterator[frozenset[str]]:
    """The ways to cut some variables in two, each by its left part.

    The first variable is always on the left: the mirror image of a tree costs the same.
    """
    for count in range(len(names) - 1):
        for others in combinations(names[1:], count):
            yield frozenset({names[0], *others})
