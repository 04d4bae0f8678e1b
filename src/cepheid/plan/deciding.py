"""Why a plan is as it is: the comparisons that decided for each of its parts.

The deciding conditions of "Efficient adaptive detection of complex event patterns" (DCS_i, one set for each building
block b_i). What is compared is always a sum of the expected work of joins, so it can be looked at again with other
statistics, without planning anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, TypeAlias

from cepheid.pattern.normal import Branch
from cepheid.plan import orders, trees
from cepheid.plan.cardinality import Cardinality
from cepheid.plan.cost import order_steps, tree_steps
from cepheid.plan.orders import best_orders, pattern_order
from cepheid.plan.planner import CLEARLY
from cepheid.plan.tree import Join, Leaf, Plan, chain, nodes, variables
from cepheid.plan.trees import best_intervals, best_trees, left_parts

Quantity: TypeAlias = "tuple[tuple[frozenset[str], frozenset[str]], ...]"
"""The joins whose work is added up: the nodes of a tree, or the steps of an order."""

MOST_FOR_EVERY = 6
"""Of six variables there are 720 orders and 945 trees; of eight, 40,320 and 135,135."""
ROUNDING = 1e-9
"""Sums that differ by less are taken to be equal."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """What was chosen makes less work than the other: f1(stat1) < f2(stat2). ``factor``: f1 is taken so many times."""

    chosen: Quantity
    other: Quantity
    block: str  # what was decided, in words
    instead: str  # what the other would be
    factor: float = 1.0

    def distance(self, cardinality: Cardinality) -> float:
        """By which part of it the other is more than what was chosen; below zero: it would be chosen today."""
        one, two = self.factor * value(self.chosen, cardinality), value(self.other, cardinality)
        return (two - one) / max(min(one, two), 1e-300)

    def is_violated(self, cardinality: Cardinality, distance: float = 0.0) -> bool:
        """Whether the other is the better choice today, by more than a distance."""
        return self.distance(cardinality) < -max(distance, ROUNDING)

    def __str__(self) -> str:
        return f"{self.block} makes less work than {self.instead}"


Block: TypeAlias = "tuple[Deciding, ...]"


def dump_quantity(quantity: Quantity) -> Any:
    """As JSON can write it."""
    return [[sorted(left), sorted(right)] for left, right in quantity]


def load_quantity(found: Any) -> Quantity:
    return tuple((frozenset(left), frozenset(right)) for left, right in found)


def dump_deciding(condition: Deciding) -> Any:
    """As JSON can write it."""
    chosen, other = dump_quantity(condition.chosen), dump_quantity(condition.other)
    return [chosen, other, condition.block, condition.instead, condition.factor]


def load_deciding(found: Any) -> Deciding:
    """
    >>> one, other = ((frozenset({"a"}), frozenset({"b"})),), ((frozenset({"c"}), frozenset()),)
    >>> condition = Deciding(one, other, "a then b", "c", 0.8)
    >>> load_deciding(dump_deciding(condition)) == condition
    True
    """
    chosen, other, *words = found
    return Deciding(load_quantity(chosen), load_quantity(other), *words)


def value(quantity: Quantity, cardinality: Cardinality) -> float:
    return sum(cardinality.step(*step) for step in quantity)


def deciding(
    plan: Plan, branch: Branch, cardinality: Cardinality, planner: str, *, every: bool = False
) -> tuple[Block, ...]:
    """For each part of a plan, in the order in which they are built, the comparisons that decided for it.

    Exact searches compare a part with the best of each other way to cut it; ``every``: with everything that it could
    have been, which are many, and too many for patterns of more than :data:`MOST_FOR_EVERY` events.
    """
    names = pattern_order(branch, cardinality)
    if len(names) > orders.MAX_EXACT and planner in ("auto", "dp_left", "dp_bushy"):
        planner = "greedy"  # which took over
    elif len(names) > trees.MAX_EXACT and planner in ("auto", "dp_bushy"):
        planner = "dp_left"
    found = _PLANNERS.get(planner)
    if found is None or len(names) < 2 or len(variables(plan)) < 2:
        return ()
    every = every and len(names) <= MOST_FOR_EVERY
    return tuple(block for block in found(plan, names, cardinality, every) if block)


def tightest(blocks: Iterable[Block], cardinality: Cardinality, k: int | None) -> tuple[Deciding, ...]:
    """Of each block the conditions that are closest to being violated: the K-invariants; None: all of them."""
    return tuple(
        condition
        for block in blocks
        for condition in sorted(block, key=lambda condition: condition.distance(cardinality))[:k]
    )


def _rate(plan: Plan, names: Sequence[str], cardinality: Cardinality, every: bool) -> Iterator[Block]:
    order = variables(plan)
    for place, name in enumerate(order):
        yield tuple(
            Deciding(order_steps([name]), order_steps([other]), f"{name} at place {place + 1}", other)
            for other in order[place + 1 :]
        )


def _greedy(plan: Plan, names: Sequence[str], cardinality: Cardinality, every: bool) -> Iterator[Block]:
    order = variables(plan)
    for place, name in enumerate(order):
        before = order[:place]
        yield tuple(
            Deciding(
                order_steps([*before, name])[-1:],
                order_steps([*before, other])[-1:],
                f"{name} at place {place + 1}",
                other,
            )
            for other in order[place + 1 :]
        )


def _left_deep(plan: Plan, names: Sequence[str], cardinality: Cardinality, every: bool) -> Iterator[Block]:
    order = variables(plan)
    best = best_orders(tuple(names), cardinality)
    for size in range(2, len(order) + 1):
        here, subset = order[:size], frozenset(order[:size])
        others: Iterable[tuple[str, ...]] = permutations(here)
        if not every:
            others = [(*best[subset - {last}][1], last) for last in here]
        yield tuple(
            Deciding(order_steps(here), order_steps(other), " then ".join(here), " then ".join(other))
            for other in others
            if other != here
        )


def _zstream(plan: Plan, names: Sequence[str], cardinality: Cardinality, every: bool) -> Iterator[Block]:
    best = best_intervals(tuple(names), cardinality)

    def others(node: Plan) -> Iterator[Plan]:
        inside = variables(node)
        first, last = names.index(inside[0]), names.index(inside[-1])
        if every:
            yield from _in_order(inside)
        else:
            yield from (Join(best[first, cut][1], best[cut + 1, last][1]) for cut in range(first, last))

    yield from _trees(plan, others)


def _bushy(plan: Plan, names: Sequence[str], cardinality: Cardinality, every: bool) -> Iterator[Block]:
    best = best_trees(tuple(names), cardinality)

    def others(node: Plan) -> Iterator[Plan]:
        inside = tuple(name for name in names if name in variables(node))
        for left in left_parts(inside):
            right = frozenset(inside) - left
            if every:
                yield from (Join(one, two) for one in _all_trees(left, names) for two in _all_trees(right, names))
            else:
                yield Join(best[left][1], best[right][1])

    yield from _trees(plan, others)


def _auto(plan: Plan, names: Sequence[str], cardinality: Cardinality, every: bool) -> Iterator[Block]:
    """The best chain, unless a tree is clearly better: one search decided for it, and then it beat the other's best."""
    if plan == chain(variables(plan)):
        yield from _left_deep(plan, names, cardinality, every)
        trees_: Iterable[Plan] = [best_trees(tuple(names), cardinality)[frozenset(names)][1]]
        if every:
            trees_ = _all_trees(frozenset(names), names)
        yield tuple(
            Deciding(tree_steps(plan), tree_steps(other), f"{CLEARLY:g} times {plan}", str(other), CLEARLY)
            for other in trees_
        )
    else:
        yield from _bushy(plan, names, cardinality, every)
        chains: Iterable[tuple[str, ...]] = [best_orders(tuple(names), cardinality)[frozenset(names)][1]]
        if every:
            chains = permutations(names)
        yield tuple(
            Deciding(tree_steps(plan), tree_steps(chain(order)), f"{1 / CLEARLY:g} times {plan}", str(chain(order)),
                     1 / CLEARLY)
            for order in chains
        )  # fmt: skip


def _trees(plan: Plan, others: Callable[[Plan], Iterator[Plan]]) -> Iterator[Block]:
    """The blocks of a tree are its inner nodes, from the leaves to the root."""
    for node in nodes(plan):
        if isinstance(node, Join):
            yield tuple(
                Deciding(tree_steps(node), tree_steps(other), str(node), str(other))
                for other in others(node)
                if other != node
            )


def _in_order(names: Sequence[str]) -> Iterator[Plan]:
    """All trees whose leaves stand in an order."""
    if len(names) == 1:
        yield Leaf(names[0])
    for cut in range(1, len(names)):
        yield from (Join(one, two) for one in _in_order(names[:cut]) for two in _in_order(names[cut:]))


def _all_trees(subset: frozenset[str], names: Sequence[str]) -> Iterator[Plan]:
    """All trees over some variables, one of each pair of mirror images."""
    inside = tuple(name for name in names if name in subset)
    if len(inside) == 1:
        yield Leaf(inside[0])
    for left in left_parts(inside):
        for one in _all_trees(left, names):
            yield from (Join(one, two) for two in _all_trees(subset - left, names))


_PLANNERS: dict[str, Callable[[Plan, Sequence[str], Cardinality, bool], Iterator[Block]]] = {
    "rate": _rate,
    "greedy": _greedy,
    "dp_left": _left_deep,
    "zstream": _zstream,
    "dp_bushy": _bushy,
    "auto": _auto,
}
