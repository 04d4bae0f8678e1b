"""What patterns share, as a value that can be shown: parts that are evaluated once, for whom, and what that saves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cepheid.local.explain.plan_nodes import number
from cepheid.pattern.normal import Branch, NormalForm
from cepheid.pattern.order import transitive_closure, transitive_reduction
from cepheid.plan.sharing.plan import SharedNode, SharedPlan
from cepheid.plan.tree import Join, Leaf, Plan, nodes, variables

MOST_SHARED, SHOWN = 20, 4
"""So many parts that are shared are listed, with so many of the patterns that share them."""


@dataclass(frozen=True, slots=True)
class SharedPart:
    """A part of several plans that is evaluated once.

    ``events`` and ``conditions`` are in the words of one of its users; the conditions are those of its last join.
    ``parts``: the numbers of shared parts that it is made of. ``users``: what each calls its events, and its name.
    ``largest_of``: the patterns of which it is a largest shared part. ``cost``: of its last join, in a window.
    """

    number: int
    events: tuple[str, ...]
    conditions: tuple[str, ...]
    parts: tuple[int, ...]
    users: tuple[tuple[tuple[str, ...], str], ...]
    largest_of: tuple[str, ...]
    cost: float

    @property
    def patterns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, name in self.users))

    @property
    def saved(self) -> float:
        """What the others would have to do again."""
        return self.cost * (len(self.users) - 1)

    @property
    def used(self) -> str:
        count = len(self.patterns)
        patterns = f"{count} pattern{'' if count == 1 else 's'}"
        return patterns if count == len(self.users) else f"{patterns}, {len(self.users)} times"


@dataclass(frozen=True, slots=True)
class Sharer:
    """A branch of a pattern: ``plan`` says what it is made of, shared parts by their numbers; ``parts``: those."""

    names: tuple[str, ...]
    plan: str
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SharedParts:
    """All that is shared, in groups of parts that have patterns in common. ``alone``: the patterns that share nothing.

    What saves the most comes first, and what is made of it at once after it; parts of which no other is made come
    last in their group, and parts alone after all groups. They are numbered in this order.
    """

    groups: tuple[tuple[SharedPart, ...], ...]
    sharers: tuple[Sharer, ...]
    alone: tuple[str, ...]
    cost: float
    cost_alone: float

    @property
    def parts(self) -> tuple[SharedPart, ...]:
        return tuple(part for group in self.groups for part in group)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    @property
    def summary(self) -> str:
        saved = 1 - self.cost / self.cost_alone if self.cost_alone > 0 else 0.0
        count = len(self.parts)
        parts = "1 part of a plan is" if count == 1 else f"{count} parts of plans are"
        costs = f"Expected cost {_about(self.cost)} instead of {_about(self.cost_alone)}, {saved:.0%} less."
        return f"{parts} evaluated once for several patterns. {costs}"

    def _lines(self) -> Iterator[str]:
        yield f"Shared: {self.summary}"
        most = sorted(self.parts, key=lambda part: (-part.saved, part.number))
        for part in most[:MOST_SHARED]:
            names = [f"{', '.join(slots)} of {name}" for slots, name in part.users]
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            yield (
                f"  #{part.number}: {len(names)} times, cost {_about(part.cost)}, saves {_about(part.saved)}: "
                f"{' = '.join(names[:SHOWN])}{more}"
            )
        if len(most) > MOST_SHARED:
            yield f"  … and {len(most) - MOST_SHARED} more"


def shared_parts(found: SharedPlan, normals: Iterable[NormalForm]) -> SharedParts | None:
    """What some patterns share; None if that is nothing."""
    names: dict[Branch, list[str]] = {}
    for normal in normals:
        for branch in normal.branches:
            names.setdefault(branch, []).append(normal.name)
    shared = found.shared
    return _Collector(found, shared, names).collected() if shared else None


class _Collector:
    def __init__(self, found: SharedPlan, shared: Sequence[SharedNode], names: Mapping[Branch, Sequence[str]]) -> None:
        self._found = found
        self._shared = shared
        self._names = names
        self._place = {
            (branch, frozenset(slots)): place for place, node in enumerate(shared) for branch, slots in node.users
        }
        self._inputs = [self._made_of(node) for node in shared]

    def collected(self) -> SharedParts:
        groups = self._groups()
        numbers = {place: count for count, place in enumerate((p for group in groups for p in group), start=1)}
        plans = self._found.plans
        made = [self._sharer(branch, plans[branch], numbers) for branch in self._names if branch in plans]
        sharers = tuple(sharer for sharer in made if sharer.parts)
        sharing = {name for sharer in sharers for name in sharer.names}
        known = dict.fromkeys(name for some in self._names.values() for name in some)
        largest: dict[int, dict[str, None]] = {}
        for sharer in sharers:
            for part in sharer.parts:
                largest.setdefault(part, {}).update(dict.fromkeys(sharer.names))
        return SharedParts(
            tuple(tuple(self._part(place, numbers, largest) for place in group) for group in groups),
            sharers, tuple(name for name in known if name not in sharing), self._found.cost, self._found.cost_alone,
        )  # fmt: skip

    def _made_of(self, node: SharedNode) -> tuple[int, ...]:
        """The shared parts that a part joins."""
        branch, slots = node.users[0]
        join = self._join(branch, frozenset(slots))
        sides = () if join is None else (join.left, join.right)
        found = (self._place.get((branch, frozenset(variables(side)))) for side in sides)
        return tuple(place for place in found if place is not None)

    def _join(self, branch: Branch, names: frozenset[str]) -> Join | None:
        for plan in nodes(self._found.plans[branch]):
            if isinstance(plan, Join) and frozenset(variables(plan)) == names:
                return plan
        return None

    def _groups(self) -> list[list[int]]:
        """The parts in the order of their numbers."""
        larger: dict[int, list[int]] = {place: [] for place in range(len(self._shared))}
        for place, inputs in enumerate(self._inputs):
            if inputs:
                larger[self._main(inputs)].append(place)

        def saved(place: int) -> float:
            node = self._shared[place]
            return node.cost * (len(node.users) - 1) + sum(map(saved, larger[place]))

        def visit(places: Iterable[int]) -> Iterator[int]:
            for place in sorted(places, key=lambda place: (not larger[place], -saved(place), place)):
                yield place
                yield from visit(larger[place])

        smallest = [place for place, inputs in enumerate(self._inputs) if not inputs]
        together = _connected([[self._place[key] for key in keys] for keys in self._by_branch()])
        roots: dict[int, list[int]] = {}
        for place in smallest:
            roots.setdefault(together[place], []).append(place)
        groups = [(list(visit(some)), sum(map(saved, some))) for some in roots.values()]
        return [group for group, _ in sorted(groups, key=lambda found: (len(found[0]) == 1, -found[1]))]

    def _by_branch(self) -> Iterable[list[tuple[Branch, frozenset[str]]]]:
        found: dict[Branch, list[tuple[Branch, frozenset[str]]]] = {}
        for key in self._place:
            found.setdefault(key[0], []).append(key)
        return found.values()

    def _main(self, inputs: Sequence[int]) -> int:
        """Of the parts that one is made of, the largest."""
        return max(inputs, key=lambda place: (len(self._shared[place].users[0][1]), -place))

    def _part(self, place: int, numbers: Mapping[int, int], largest: Mapping[int, Iterable[str]]) -> SharedPart:
        node = self._shared[place]
        branch, slots = node.users[0]
        join = self._join(branch, frozenset(slots))
        inputs = sorted(self._inputs[place], key=lambda other: other != self._main(self._inputs[place]))
        users = tuple((slots, name) for branch, slots in node.users for name in self._names.get(branch, ()))
        types = {v.name: v.type for v in branch.variables}
        in_turn = [v.name for v in branch.variables if v.name in slots]
        return SharedPart(
            numbers[place], tuple(f"{types[name]} {name}" for name in in_turn),
            () if join is None else tuple(_asked(branch, variables(join.left), variables(join.right))),
            tuple(numbers[other] for other in inputs), users, tuple(largest.get(numbers[place], ())), node.cost,
        )  # fmt: skip

    def _sharer(self, branch: Branch, plan: Plan, numbers: Mapping[int, int]) -> Sharer:
        types = {v.name: v.type for v in branch.variables}
        parts: list[int] = []

        def words(node: Plan, *, inner: bool) -> str:
            place = self._place.get((branch, frozenset(variables(node))))
            if place is not None:
                parts.append(numbers[place])
                return f"#{numbers[place]}"
            match node:
                case Join(left, right):
                    joined = f"{words(left, inner=False)} + {words(right, inner=True)}"
                    return f"({joined})" if inner else joined
                case Leaf(variable):
                    return f"{types[variable]} {variable}"
            return str(node)

        text = words(plan, inner=False)
        text += "".join(f", KL {v.type} {v.name}" for v in branch.variables if v.is_kleene)
        text += "".join(f", NOT {negation.type} {negation.name}" for negation in branch.negations)
        return Sharer(tuple(self._names.get(branch, ())), text, tuple(dict.fromkeys(parts)))


def _about(cost: float) -> str:
    return number(float(cost))


def _connected(together: Iterable[Sequence[int]]) -> dict[int, int]:
    """For each place one that stands for all that are connected with it."""
    above: dict[int, int] = {}

    def of(place: int) -> int:
        while above.setdefault(place, place) != place:
            place = above[place]
        return place

    for places in together:
        for other in places:
            above[of(other)] = of(places[0])
    return {place: of(place) for place in list(above)}


def _asked(branch: Branch, left: Sequence[str], right: Sequence[str]) -> Iterator[str]:
    """What a join asks of its two sides, and of events that come in by it."""
    both = {*left, *right}
    inside = frozenset((x, y) for x, y in transitive_closure(branch.order) if x in both and y in both)
    for earlier, later in sorted(transitive_reduction(inside)):
        if (earlier in left) != (later in left):
            yield f"{earlier} before {later}"
    yield from (f"same {attribute}" for attribute in branch.partition)
    filtered = [frozenset(side) for side in (left, right) if len(side) == 1]
    for condition in branch.conditions:
        needed = condition.variables
        across = needed <= both and needed & {*left} and needed & {*right} and not condition.derived
        if across or needed in filtered:
            yield str(condition)
