"""Searching for an order in which to take the variables."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from typing import TypeAlias

from cepheid.pattern.normal import Branch
from cepheid.plan.cardinality import Cardinality

Order: TypeAlias = "tuple[str, ...]"

MAX_EXACT = 15
"""Up to so many variables all orders are considered; beyond, the greedy search takes over."""


def pattern_order(branch: Branch, cardinality: Cardinality) -> Order:
    """The eager automaton: as written."""
    return tuple(v.name for v in branch.variables)


def by_rate(branch: Branch, cardinality: Cardinality) -> Order:
    """The lazy chain automaton of frequencies alone: the rarest variable first."""
    return tuple(sorted(pattern_order(branch, cardinality), key=lambda v: cardinality.of(frozenset({v}))))


def greedy(branch: Branch, cardinality: Cardinality) -> Order:
    """Algorithm 2: always the variable that adds the least work."""
    order: Order = ()
    rest = list(pattern_order(branch, cardinality))
    while rest:
        best = min(rest, key=lambda v: cardinality.step(*_with(order, v)))
        order = (*order, best)
        rest.remove(best)
    return order


def exact(branch: Branch, cardinality: Cardinality) -> Order:
    """The cheapest of all orders, by dynamic programming: what comes after a prefix does not depend on its order."""
    names = pattern_order(branch, cardinality)
    if len(names) > MAX_EXACT:
        return greedy(branch, cardinality)
    return best_orders(names, cardinality)[frozenset(names)][1]


def best_orders(names: Order, cardinality: Cardinality) -> dict[frozenset[str], tuple[float, Order]]:
    """For each subset of some variables the cost of its best order, and that order."""
    best: dict[frozenset[str], tuple[float, Order]] = {frozenset(): (0.0, ())}
    for size in range(1, len(names) + 1):
        for chosen in combinations(names, size):
            subset = frozenset(chosen)
            best[subset] = min(
                (best[subset - {v}][0] + cardinality.step(*_with(subset - {v}, v)), (*best[subset - {v}][1], v))
                for v in chosen
            )
    return best


def _with(before: Collection[str], name: str) -> tuple[frozenset[str], frozenset[str]]:
    """The next step of an order; the first variable joins nothing."""
    return (frozenset(before), frozenset({name})) if before else (frozenset({name}), frozenset())
