"""Planning one pattern with some of its parts given: the local plan generation algorithm 𝒜 of the multi-pattern paper.

Variables are bits of a mask here, since a search plans many thousands of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from cepheid.plan.tree import Join, Leaf, Plan, Search

Mask: TypeAlias = int
Tree: TypeAlias = "tuple[tuple[Mask, Mask], ...]"
"""The joins of a tree, children before their parent: the left side and the right side of each."""
Work: TypeAlias = "Callable[[Mask, Mask], float]"
"""What it costs to join two sides, their own making not counted."""

MAX_EXACT = 8
"""Up to so many parts all trees are considered; beyond, always the two that are cheapest to join are joined."""


def bits(mask: Mask) -> Iterator[Mask]:
    """The single bits of a mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def best_tree(
    parts: Sequence[Mask], work: Work, given: Callable[[Mask], bool] | None = None, most: int = MAX_EXACT
) -> tuple[float, Tree]:
    """The cheapest tree over some parts, none of which is torn apart; and what its joins cost.

    ``given``: whether the partial matches over a set of variables are there anyway. Such a set is not torn apart
    either, and costs nothing: it stands in the tree as if it were a variable. ``most``: of so many parts all trees are
    considered.

    >>> best_tree([1, 2, 4], lambda left, right: 1.0 if left | right == 6 else 5.0)
    (6.0, ((2, 4), (1, 6)))
    >>> best_tree([1, 2, 4], lambda left, right: 1.0, given=lambda mask: mask == 3)
    (1.0, ((3, 4),))
    """
    if len(parts) > most:
        return _greedy_tree(parts, work, given)
    full = (1 << len(parts)) - 1
    union, cost, split = [0] * (full + 1), [0.0] * (full + 1), [0] * (full + 1)
    for some in range(1, full + 1):
        low = some & -some
        rest = some ^ low
        union[some] = union[rest] | parts[low.bit_length() - 1]
        if not rest or (given is not None and given(union[some])):
            continue
        best = float("inf")
        taken = rest  # the first part is always on the left: the mirror image of a tree costs the same
        while taken:
            taken = (taken - 1) & rest
            left, right = low | taken, rest ^ taken
            here = cost[left] + cost[right] + work(union[left], union[right])
            if here < best:
                best, split[some] = here, left
        cost[some] = best

    def joins(some: int) -> Iterator[tuple[Mask, Mask]]:
        if split[some]:
            left, right = split[some], some ^ split[some]
            yield from joins(left)
            yield from joins(right)
            yield union[left], union[right]

    return cost[full], tuple(joins(full))


def _greedy_tree(parts: Sequence[Mask], work: Work, given: Callable[[Mask], bool] | None) -> tuple[float, Tree]:
    is_given = given or (lambda mask: False)
    left_over = list(parts)
    joins: list[tuple[float, Mask, Mask]] = []
    while len(left_over) > 1:
        cost, two, one = min(
            (0.0 if is_given(one | two) else work(one, two), i, j)
            for i, one in enumerate(left_over)
            for j, two in enumerate(left_over[:i])
        )
        left, right = left_over[one], left_over[two]
        left_over = [part for place, part in enumerate(left_over) if place not in (one, two)] + [left | right]
        if is_given(left | right):
            joins = [join for join in joins if join[1] & ~(left | right)]
        else:
            joins.append((cost, left, right))
    return sum(cost for cost, _, _ in joins), tuple((left, right) for _, left, right in joins)


def best_in_order(parts: Sequence[Mask], work: Work, given: Callable[[Mask], bool] | None = None) -> tuple[float, Tree]:
    """The cheapest of the trees that leave the parts in their order; ``given`` as in :func:`best_tree`.

    >>> best_in_order([1, 2, 4], lambda left, right: 1.0 if left | right == 5 else 5.0)
    (10.0, ((2, 4), (1, 6)))
    """
    best: dict[tuple[int, int], tuple[float, Mask, Tree]] = {(i, i + 1): (0.0, p, ()) for i, p in enumerate(parts)}
    for length in range(2, len(parts) + 1):
        for first in range(len(parts) - length + 1):
            last = first + length
            options: list[tuple[float, Mask, Tree]] = []
            for cut in range(first + 1, last):
                (one, left, before), (two, right, after) = best[first, cut], best[cut, last]
                if given is not None and given(left | right):
                    options = [(0.0, left | right, ())]
                    break
                options.append((one + two + work(left, right), left | right, (*before, *after, (left, right))))
            best[first, last] = min(options, key=lambda option: option[0])
    cost, _, tree = best[0, len(parts)]
    return cost, tree


def best_order(first: Mask, rest: Mask, work: Work) -> tuple[float, Tree]:
    """The cheapest chain that goes on from a prefix with the rest of the variables, one after the other.

    >>> best_order(1, 6, lambda left, right: float(right))
    (6.0, ((1, 2), (3, 4)))
    """
    singles = list(bits(rest))
    if len(singles) > MAX_EXACT + 4:
        return _greedy_order(first, singles, work)
    best: dict[Mask, tuple[float, Tree]] = {first: (0.0, ())}
    for _ in singles:
        level: dict[Mask, tuple[float, Tree]] = {}
        for bound, (cost, joins) in best.items():
            for single in singles:
                if single & bound:
                    continue
                here = cost + (work(bound, single) if bound else 0.0)
                known = level.get(bound | single)
                if known is None or here < known[0]:
                    level[bound | single] = here, (*joins, (bound, single)) if bound else ()
        best = level
    return best.get(first | rest, (0.0, ()))


def _greedy_order(first: Mask, singles: list[Mask], work: Work) -> tuple[float, Tree]:
    left_over = list(singles)
    if not first:  # one of the two that are cheapest to join
        first = min((work(one, two), one) for i, one in enumerate(left_over) for two in left_over[:i])[1]
        left_over.remove(first)
    total, joins, bound = 0.0, [], first
    while left_over:
        cost, single = min((work(bound, single), single) for single in left_over)
        left_over.remove(single)
        joins.append((bound, single))
        total += cost
        bound |= single
    return total, tuple(joins)


def as_chain(parts: Sequence[Mask]) -> Tree:
    """The left-deep tree over some parts, in their order."""
    joins, bound = [], parts[0]
    for part in parts[1:]:
        joins.append((bound, part))
        bound |= part
    return tuple(joins)


def inside(tree: Tree, mask: Mask) -> Tree:
    """The joins below and at a node."""
    return tuple(join for join in tree if not (join[0] | join[1]) & ~mask)


def translated(tree: Tree, places: Sequence[tuple[Mask, Mask]]) -> Tree:
    """The same tree over other bits."""

    def change(mask: Mask) -> Mask:
        found = 0
        for old, new in places:
            if mask & old:
                found |= new
        return found

    return tuple((change(left), change(right)) for left, right in tree)


def as_plan(tree: Tree, names: Sequence[str]) -> Plan:
    """A tree of masks as a plan over the variables that the bits stand for."""
    if not tree:
        return Leaf(names[0])
    made: dict[Mask, Plan] = {1 << place: Leaf(name) for place, name in enumerate(names)}
    for left, right in tree:
        made[left | right] = Join(made[left], made[right])
    return made[tree[-1][0] | tree[-1][1]]


def from_plan(plan: Plan, names: Sequence[str]) -> Tree:
    """A plan as a tree of masks; a search, which has no joins, as the chain in its order."""
    places = {name: 1 << place for place, name in enumerate(names)}
    joins: list[tuple[Mask, Mask]] = []

    def visit(node: Plan) -> Mask:
        match node:
            case Leaf(variable):
                return places[variable]
            case Search(chosen):
                joins.extend(as_chain([places[name] for name in chosen]))
                return sum(places[name] for name in chosen)
            case Join(left, right):
                sides = visit(left), visit(right)
                joins.append(sides)
                return sides[0] | sides[1]

    visit(plan)
    return tuple(joins)
