"""Plans of one pattern, with parts given: against all trees there are."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.plan.sharing.local import (
    Mask,
    Tree,
    Work,
    as_chain,
    as_plan,
    best_in_order,
    best_order,
    best_tree,
    from_plan,
    inside,
)
from cepheid.plan.tree import chain, search, variables


def all_trees(parts: tuple[Mask, ...]) -> Iterator[Tree]:
    if len(parts) == 1:
        yield ()
    for size in range(1, len(parts)):
        for left in itertools.combinations(parts, size):
            right = tuple(p for p in parts if p not in left)
            for one in all_trees(left):
                yield from ((*one, *two, (sum(left), sum(right))) for two in all_trees(right))


def cost_of(tree: Tree, work: Work, free: Sequence[Mask] = ()) -> float:
    """What is not inside of something that is there anyway."""
    return sum(work(left, right) for left, right in tree if not any((left | right) & ~mask == 0 for mask in free))


def works(seed: int) -> Work:
    costs: dict[tuple[Mask, Mask], float] = {}
    source = random.Random(seed)
    for mask in range(1, 1 << 6):
        for left in range(1, mask):
            if left & mask == left:
                costs[left, mask ^ left] = costs[mask ^ left, left] = 0.0
    for left, right in sorted(costs):
        if left < right:
            costs[left, right] = costs[right, left] = source.choice([1.0, 2.0, 5.0, 20.0])
    return lambda left, right: costs[left, right]


parts_of_five = st.sampled_from(
    [(1, 2), (1, 2, 4), (1, 2, 4, 8), (1, 2, 4, 8, 16), (3, 4, 8), (1, 6, 8, 16), (5, 2, 24)]
)


@given(parts_of_five, st.integers(0, 50), st.lists(st.integers(3, 31), max_size=3))
def test_the_best_tree_is_the_cheapest_of_all(parts: tuple[Mask, ...], seed: int, free: list[Mask]) -> None:
    work = works(seed)
    unions = {sum(some) for size in range(2, 6) for some in itertools.combinations(parts, size)}
    there = [mask for mask in free if mask in unions]
    # A set that is there anyway can be used only by a tree in which it is a node.
    best = min(
        cost_of(t, work, [m for m in there if any(left | right == m for left, right in t)]) for t in all_trees(parts)
    )
    cost, tree = best_tree(parts, work, there.__contains__)
    assert cost == pytest.approx(best)
    assert sum(work(*join) for join in tree) == pytest.approx(cost)
    assert not any((left | right) in there for left, right in tree)


@given(st.integers(1, 5), st.integers(0, 50), st.integers(0, 31))
def test_the_best_order_is_the_cheapest_of_all(count: int, seed: int, prefix: int) -> None:
    work, full = works(seed), (1 << count) - 1
    first = prefix & full
    rest = [1 << place for place in range(count) if not first >> place & 1]
    chains = [
        as_chain([*([first] if first else []), *order]) for order in itertools.permutations(rest) if first or rest
    ]
    best = min((cost_of(tree, work) for tree in chains), default=0.0)
    cost, tree = best_order(first, full ^ first, work)
    assert cost == pytest.approx(best)
    assert sum(work(*join) for join in tree) == pytest.approx(cost)


@given(parts_of_five, st.integers(0, 50))
def test_the_best_tree_in_order_is_the_cheapest_of_those(parts: tuple[Mask, ...], seed: int) -> None:
    work, place = works(seed), {part: place for place, part in enumerate(parts)}

    def is_in_order(tree: Tree) -> bool:
        return all(
            max(place[p] for p in parts if p & left) < min(place[p] for p in parts if p & right) for left, right in tree
        )

    best = min(cost_of(tree, work) for tree in all_trees(parts) if is_in_order(tree))
    assert best_in_order(parts, work)[0] == pytest.approx(best)


def test_many_variables_are_planned_greedily() -> None:
    parts = [1 << place for place in range(20)]
    cost, tree = best_tree(parts, lambda left, right: float((left | right).bit_count()))
    assert len(tree) == 19
    assert tree[-1][0] | tree[-1][1] == sum(parts)
    assert cost < 20 * 19
    _, order = best_order(0, sum(parts), lambda left, right: float(right))
    assert [right for _, right in order[1:]] == parts[2:]
    _, tree = best_tree(parts, lambda left, right: 1.0, lambda mask: mask == 3)
    assert (3, 4) in tree or any(3 in join for join in tree)
    assert (1, 2) not in tree


def test_plans_and_trees_of_masks_are_the_same() -> None:
    names = ["c", "a", "b"]
    plan = chain(["a", "b", "c"])
    assert as_plan(from_plan(plan, names), names) == plan
    assert variables(as_plan(from_plan(search(names), names), names)) == ("c", "a", "b")
    assert as_plan((), ["a"]) == chain(["a"])
    assert inside(((1, 2), (3, 4)), 3) == ((1, 2),)
