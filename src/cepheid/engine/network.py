"""The nodes of all plans at work. What several plans ask for is made once.

A node finds the tuples of a sub-pattern: new events become new tuples, semi-naively. Nodes of different patterns that
mean the same are one; it looks as far as the longest window of those who use it, and they check their own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cepheid.engine.clock import Watermark
from cepheid.engine.conditions import Scope
from cepheid.engine.gate import OPEN, Gates
from cepheid.engine.joiner import NONE, Joiner, Rows
from cepheid.engine.negation import Negations
from cepheid.engine.program import BranchProgram, JoinNode, JoinProgram
from cepheid.engine.relation import Relation, Tuples, concatenate
from cepheid.engine.snapshot import Arrays, below, prefixed
from cepheid.engine.tally import Tally
from cepheid.plan.tree import Join, Leaf, Plan, nodes

Access: TypeAlias = "tuple[bool, int, int]"
"""How a parent looks tuples up: whether it has them on its left side; the slot and column of their key, or -1."""


FEW = 16
"""So many new events of a kind mostly come after all the old ones."""


@dataclass(slots=True)
class Kept:
    """The tuples of a node, ready to be looked up in one way."""

    relation: Relation
    probe: JoinProgram  # of a parent: says what their keys are
    users: int = 0


@dataclass(slots=True, eq=False)
class Node:
    """A sub-pattern. ``since``: it knows all tuples of rows from this one on, but for those that were dropped under
    overload, which have a row before ``lacking``."""

    number: int
    key: Hashable
    columns: tuple[str, ...]  # as the plan that made it calls them
    window: int
    since: int
    lacking: int = 0
    leaf: int = -1  # of an event: which of the leaves it reads
    join: JoinNode | None = None
    left: Node | None = None
    right: Node | None = None
    negations: Negations | None = None
    tally: Tally | None = None
    kept: dict[Access, Kept] = field(default_factory=dict)
    users: int = 0
    turn: int = -1
    lefts: Relation | None = None  # where a join looks the tuples of its left side up …
    rights: Relation | None = None  # … and of its right side
    nothing: Tuples = field(init=False)
    new: Tuples = field(init=False)  # in this turn

    def __post_init__(self) -> None:
        self.new = self.nothing = Tuples.empty(len(self.columns))

    @property
    def children(self) -> tuple[Node, Node]:
        assert self.left is not None
        assert self.right is not None
        return self.left, self.right

    def count_kept(self) -> None:
        if self.tally is not None:
            self.tally.keep(max((len(kept.relation) for kept in self.kept.values()), default=0))

    def sources(self) -> tuple[Relation, Relation]:
        """Where a join looks the tuples of its left and of its right side up."""
        assert self.lefts is not None
        assert self.rights is not None
        return self.lefts, self.rights


class Network:
    """The nodes that the plans of a session have in common, and those that they do not."""

    def __init__(self, scope: Scope, limit: int) -> None:
        self._scope = scope
        self._limit = limit
        self._nodes: dict[int, Node] = {}
        self._by_key: dict[Hashable, list[Node]] = {}
        self._next = 0
        self._turn = 0
        self._joiners: dict[int, Joiner] = {}  # by window
        self._taken: Mapping[int, Rows] = {}
        self._thinned: Mapping[int, Rows] = {}
        self.sheds = False  # whether rows or tuples are dropped in this push …
        self.spared: frozenset[int] = frozenset()  # … and the nodes that get all of them even so
        self.gates: Gates | None = None
        self.changes = 0  # how often plans came and went
        self._found: list[Node] = []  # in this turn
        self._first = False  # whether in this turn parents see what is new on their left, not on their right, as old

    def __len__(self) -> int:
        return len(self._nodes)

    # --- plans come and go

    def add(
        self,
        program: BranchProgram,
        reads: dict[str, int],
        negations: Negations,
        window: int,
        *,
        since: int = 0,
        numbers: Sequence[int] | None = None,
        known: Callable[[str], Rows] | None = None,
    ) -> list[Node]:
        """The nodes of a plan, children first. It will ask for tuples of rows from ``since`` on.

        ``reads``: which leaf each variable reads. A node that is new is made to know what the nodes below it know, and
        one of an event the rows that are ``known`` of its variable, which are all from ``since`` on.
        ``numbers``: take the nodes with these numbers, and give them to those that are not there; for a snapshot.
        """
        assert program.plan is not None
        self.changes += 1
        made: dict[Plan, Node] = {}
        fresh: dict[Node, Tuples | None] = {}
        given = {} if numbers is None else dict(zip(nodes(program.plan), numbers, strict=True))
        if self._now:
            for relation in self.relations():
                relation.purge(self._scope.store.base)

        def place(plan: Plan) -> None:
            number = given.get(plan)
            node = self._there(program.keys[plan], window, since, number, whole=program.critical)
            if node is not None:
                made.update(_with_those_below(node, plan, program.keys))
                return
            below: dict[Node, Tuples] = {}
            if isinstance(plan, Join):
                place(plan.left)
                place(plan.right)
                # Of the root, which nothing looks up, it is never made.
                below = {child: self._found_by_now(child, fresh) for child in (made[plan.left], made[plan.right])}
            node = made[plan] = self._made(plan, program, reads, made, window, negations, number)
            fresh[node] = None
            if node.join is not None:
                self._tie(node, below)
            elif known is not None:
                fresh[node] = self._joiner(node).tuples(known(node.columns[0]))
                node.since = since

        try:
            place(program.plan)
        except BaseException:
            for node in reversed(fresh):
                if not node.users and node.number in self._nodes:  # it may have gone with one above it
                    self._drop(node)
            raise
        root = made[program.plan]
        root.users += 1
        self._widen(root, window)
        return [made[plan] for plan in nodes(program.plan)]

    def remove(self, root: Node) -> list[Tally]:
        """A plan is used no more; its nodes go, but for those that others use. What those that go have counted."""
        root.users -= 1
        self.changes += 1
        return [] if root.users else self._drop(root)

    @property
    def _now(self) -> int:
        return self._scope.store.base + self._scope.store.size

    def _there(self, key: Hashable, window: int, since: int, number: int | None, *, whole: bool) -> Node | None:
        """A node that can be used: it knows enough, or there was nothing to know yet. ``whole``: nothing was dropped
        from what it knows."""
        if number is not None:
            return self._nodes.get(number)
        first = max(since, self._scope.store.base)
        for node in self._by_key.get(key, ()):
            wide = node.window >= window or node.since == self._now
            knows = node.since <= first and (node.lacking <= first or not whole)
            if wide and knows and (node.join is not None or node.kept or node.since == self._now):
                return node
        return None

    def _made(
        self, plan: Plan, program: BranchProgram, reads: dict[str, int], made: dict[Plan, Node], window: int,
        negations: Negations, number: int | None,
    ) -> Node:  # fmt: skip
        number = self._next if number is None else number
        self._next = max(self._next, number + 1)
        key = program.keys[plan]
        if isinstance(plan, Leaf):
            node = Node(number, key, (plan.variable,), window, self._now, leaf=reads[plan.variable])
        else:
            assert isinstance(plan, Join)
            join, left, right = program.joins[plan], made[plan.left], made[plan.right]
            tally = Tally("join", str(plan), join.labels)
            known = max(left.since, right.since)
            node = Node(
                number, key, join.columns, window, known, join=join, left=left, right=right, negations=negations,
                tally=tally,
            )  # fmt: skip
        self._nodes[number] = node
        self._by_key.setdefault(key, []).append(node)
        return node

    def _found_by_now(self, node: Node, fresh: Mapping[Node, Tuples | None]) -> Tuples:
        """What a node has found, or would have if it were not new."""
        found = fresh.get(node)
        return self.all(node) if found is None else found

    def _tie(self, node: Node, below: Mapping[Node, Tuples]) -> None:
        """Tie a new node to those below it, which have found these tuples."""
        assert node.join is not None
        unknown = []
        for child, left in zip(node.children, (True, False), strict=True):
            access = _access(node.join, left=left)
            if access not in child.kept:
                probe = node.join.from_right if left else node.join.from_left
                unknown.append((child, Kept(Relation(len(child.columns), keyed=access[1] >= 0), probe), below[child]))
                child.kept[access] = unknown[-1][1]
            child.users += 1
            child.kept[access].users += 1
        first, second = node.children
        node.lefts = first.kept[_access(node.join, left=True)].relation
        node.rights = second.kept[_access(node.join, left=False)].relation
        for child, kept, known in unknown:
            self._joiner(child).insert(kept.relation, known, kept.probe)

    def all(self, node: Node) -> Tuples:
        """All tuples of a node that can still be of use."""
        if node.kept:
            return next(iter(node.kept.values())).relation.tuples
        if node.join is None:
            return node.nothing
        left, right = node.sources()
        assert node.tally is not None
        if not len(left) or not len(right):
            return node.nothing
        return self._unstruck(node, self._joiner(node).pairs(left.tuples, right, node.join.from_left, node.tally))

    def _widen(self, node: Node, window: int) -> None:
        if node.window < window:
            node.window = window
        if node.join is not None:
            for child in node.children:
                self._widen(child, node.window)

    def _drop(self, node: Node) -> list[Tally]:
        del self._nodes[node.number]
        self._by_key[node.key].remove(node)
        if not self._by_key[node.key]:
            del self._by_key[node.key]
        if node.join is None:
            return []
        dropped = [] if node.tally is None else [node.tally]
        for child, left in zip(node.children, (True, False), strict=True):
            access = _access(node.join, left=left)
            child.kept[access].users -= 1
            if not child.kept[access].users:
                del child.kept[access]
            child.users -= 1
            if not child.users:
                dropped += self._drop(child)
        return dropped

    # --- one push

    def begin(self, taken: Mapping[int, Rows], thinned: Mapping[int, Rows] | None = None) -> None:
        """A push: for each leaf the new rows that it takes, and what is left of them under overload."""
        self._turn += 1
        self._taken = taken
        # What is new on one side meets all on the other, and what is new there only the old ones. A few new events
        # mostly come last, so there is nothing old for those that have to come before them: one join less.
        self._first = max(map(len, taken.values()), default=0) <= FEW
        self._thinned = taken if thinned is None else thinned

    def new(self, node: Node) -> Tuples:
        """The new tuples of a node, found once in a push; its ``nothing`` if there are none."""
        if node.turn != self._turn:
            node.turn = self._turn
            found = self._leaf(node) if node.join is None else self._join(node)
            if self.gates is not None and len(found):
                found = self._worthy(node, found, self.gates)
            if len(found):
                node.new = found
                self._found.append(node)
                self._keep(node, left=self._first)
        return node.new

    def end(self) -> None:
        """What was new is old."""
        for node in self._found:
            self._keep(node, left=not self._first)
            node.new = node.nothing
            node.count_kept()
        self._found.clear()
        if self.sheds:
            for node in self._nodes.values():
                if node.number not in self.spared:
                    node.lacking = self._now

    def _keep(self, node: Node, *, left: bool) -> None:
        for access, kept in node.kept.items():
            if access[0] == left:
                self._joiner(node).insert(kept.relation, node.new, kept.probe)

    def _leaf(self, node: Node) -> Tuples:
        rows = (self._taken if node.number in self.spared else self._thinned)[node.leaf]
        return self._joiner(node).tuples(rows) if len(rows) else node.nothing

    def _join(self, node: Node) -> Tuples:
        """Semi-naively: new(L) ⋈ all(R) ∪ old(L) ⋈ new(R); of a few events, new(L) ⋈ old(R) ∪ all(L) ⋈ new(R)."""
        first, second = node.children
        left, right = self.new(first), self.new(second)
        if left is first.nothing and right is second.nothing:
            return node.nothing
        assert node.join is not None
        assert node.tally is not None
        joiner = self._joiner(node)
        lefts, rights = node.sources()
        from_left, from_right = (OPEN, OPEN) if self.gates is None else self.gates.joins[node.number]
        found = node.nothing
        if left is not first.nothing:
            found = joiner.pairs(left, rights, node.join.from_left, node.tally, from_left)
        if right is not second.nothing:
            more = joiner.pairs(right, lefts, node.join.from_right, node.tally, from_right)
            found = concatenate([found, more]) if len(found) else more
        return self._unstruck(node, found)

    def _worthy(self, node: Node, new: Tuples, gates: Gates) -> Tuples:
        """Without the new tuples that are not worth their work."""
        opening, promise = gates.openings.get(node.number), gates.promises.get(node.number)
        if opening is not None:
            passes = opening.passing(new.rows[:, 0], new.lo)
            new = new if passes is None else new.take(passes)
        if promise is not None and len(new):
            passes = promise.passing(new.rows, new.lo, self._scope.store.times)
            new = new if passes is None else new.take(passes)
        return new

    def _unstruck(self, node: Node, tuples: Tuples) -> Tuples:
        assert node.join is not None
        assert node.negations is not None
        return node.negations.at_first_chance(tuples, node.join.negations) if node.join.negations else tuples

    def _joiner(self, node: Node) -> Joiner:
        found = self._joiners.get(node.window)
        if found is None:
            found = self._joiners[node.window] = Joiner(self._scope, node.window, self._limit)
        return found

    # --- what is kept

    def nodes(self) -> list[Node]:
        """Children before their parents."""
        return sorted(self._nodes.values(), key=lambda node: node.number)

    @property
    def found(self) -> list[Node]:
        """The nodes with new tuples, until the push ends."""
        return self._found

    def rows_of(self, leaf: Node) -> Rows:
        """The rows that are kept of an event."""
        for kept in leaf.kept.values():
            rows: Rows = kept.relation.tuples.rows[:, 0]
            return rows[rows >= self._scope.store.base]
        return NONE

    def relations(self) -> Iterator[Relation]:
        return (kept.relation for node in self._nodes.values() for kept in node.kept.values())

    def forget(self, watermark: Watermark) -> None:
        """Drop tuples that no later event can be put together with."""
        for node in self._nodes.values():
            oldest = watermark.back(node.window)
            for kept in node.kept.values():
                if len(kept.relation):
                    kept.relation.evict(oldest.of(kept.relation.tuples.rows[:, 0], self._scope.store))
            node.count_kept()

    @property
    def tallies(self) -> list[Tally]:
        return [node.tally for node in self._nodes.values() if node.tally is not None]

    # --- snapshots

    @property
    def since(self) -> int:
        """All nodes know the tuples of rows from this one on."""
        return max((node.since for node in self._nodes.values()), default=0)

    def meta(self) -> list[list[Any]]:
        return [
            [node.number, node.window, node.since, node.lacking, None if node.tally is None else node.tally.dump()]
            for node in self._nodes.values()
        ]

    def dump(self) -> Arrays:
        """The tuples of each node once: however they are looked up, they are the same."""
        found: Arrays = {}
        for node in self._nodes.values():
            for kept in node.kept.values():
                kept.relation.purge(self._scope.store.base)
                kept.relation.settle()
            if node.kept:
                found |= prefixed(str(node.number), next(iter(node.kept.values())).relation.tuples.dump())
        return found

    def load(self, arrays: Arrays, meta: list[list[Any]]) -> None:
        """Take what a snapshot has; the nodes are there, though another pattern may have made them."""
        for number, window, since, lacking, tally in meta:
            node = self._nodes[number]
            node.window, node.since, node.lacking = window, since, lacking
            if node.tally is not None:
                labels = node.tally.steps
                node.tally.load({**tally, "steps": dict(zip(labels, tally["steps"].values(), strict=True))})
            if node.kept:
                tuples = Tuples.loaded(below(str(number), arrays))
                for kept in node.kept.values():
                    self._joiner(node).insert(kept.relation, tuples, kept.probe)
                    kept.relation.settle()


def _with_those_below(node: Node, plan: Plan, keys: Mapping[Plan, Hashable]) -> dict[Plan, Node]:
    """The nodes of a part of a plan. A join brings those that it looks tuples up in; others may have the same keys."""
    found: dict[Plan, Node] = {plan: node}
    if isinstance(plan, Join):
        left, right = node.children
        if left.key != keys[plan.left]:  # made by a plan with its sides the other way round
            left, right = right, left
        found |= _with_those_below(left, plan.left, keys) | _with_those_below(right, plan.right, keys)
    return found


def _access(join: JoinNode, *, left: bool) -> Access:
    """How a join looks the tuples of one of its sides up."""
    probe = join.from_right if left else join.from_left
    return (left, probe.inner_key_slot, probe.inner_key_column) if probe.key_slot >= 0 else (left, -1, -1)
