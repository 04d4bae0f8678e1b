"""Running one branch: batches of new events in, new matches out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cepheid.engine.clock import Watermark
from cepheid.engine.conditions import Scope
from cepheid.engine.joiner import FOREVER, NONE, Joiner, Rows
from cepheid.engine.matches import Matches, joined
from cepheid.engine.negation import Negations
from cepheid.engine.program import BranchProgram, JoinProgram, NegationProgram, a_row
from cepheid.engine.relation import Relation, Tuples, concatenate
from cepheid.engine.search import Searcher
from cepheid.engine.sets import Sets
from cepheid.engine.snapshot import Arrays, below, prefixed
from cepheid.engine.stage import Stage
from cepheid.engine.store import RowStore
from cepheid.engine.tally import CANDIDATES, IN_ORDER, Tally
from cepheid.engine.vector import Unit
from cepheid.language import syntax as s
from cepheid.plan.tree import Join, Leaf, Plan, Search, variables

Kept = tuple[Relation, tuple[str, ...]]
"""A relation, with the names of its columns."""


class _Node:
    """A node of the plan at work: what it asks for, and what its parent finds of it."""

    def __init__(self, plan: Plan, program: BranchProgram, *, keyed: bool = False) -> None:
        self.variables = variables(plan)
        self.relation = Relation(len(self.variables), keyed=keyed)
        self.nothing = Tuples.empty(len(self.variables))
        self.variable = plan.variable if isinstance(plan, Leaf) else None
        self.negations: tuple[NegationProgram, ...] = ()
        if isinstance(plan, Join):
            node = program.joins[plan]
            self.from_left, self.from_right, self.negations = node.from_left, node.from_right, node.negations
            self.left = _Node(plan.left, program, keyed=self.from_right.key_slot >= 0)
            self.right = _Node(plan.right, program, keyed=self.from_left.key_slot >= 0)
            labels = (*self.from_left.labels, *self.from_left.external_labels)
            self.tally = Tally("join", str(plan), (CANDIDATES, IN_ORDER, *labels))

    def relations(self) -> list[Kept]:
        below = [] if self.variable is not None else [*self.left.relations(), *self.right.relations()]
        return [*below, (self.relation, self.variables)]

    def joins(self) -> list[_Node]:
        return [] if self.variable is not None else [*self.left.joins(), *self.right.joins(), self]


class BranchRun:
    """The state of one branch: what each node of its plan keeps, and matches that wait for a negated event."""

    def __init__(self, program: BranchProgram, store: RowStore, unit: Unit, *, ties: bool, limit: int) -> None:
        self.program = program
        self.sets = Sets()
        kleene = frozenset(k.variable.name for k in program.kleene)
        self.scope = Scope(store, self.sets, unit, ties, kleene)
        self._store = store
        self._unit = unit
        self._slide = program.branch.slide
        # A window of SLIDE does not hold its end: its first and last event are less than its length apart.
        self._window = min(program.window - (1 if self._slide else 0), FOREVER)
        self._joiner = Joiner(self.scope, self._window, limit)
        self.negations = Negations(program.negations, self._joiner, program.window)
        self._root: _Node | Searcher | None = None
        if isinstance(program.plan, Search):
            self._root = Searcher(program.plan.variables, program, self._joiner, self.negations)
        elif program.plan is not None:
            self._root = _Node(program.plan, program)
        self._stages = [Stage(stage, self._joiner) for stage in program.kleene]
        joins = self._root.joins() if isinstance(self._root, _Node) else []
        self._counted = [(node.tally, node.relation) for node in joins]
        self._next_sets = 0
        self._waiting: list[Matches] = []  # for a negated event
        self._held: list[Matches] = []  # for a competing match
        self.waiting_tally = Tally("waiting", "matches that wait for the watermark", ())

    def hold(self, matches: Matches) -> None:
        """Keep matches back that may compete with others."""
        if len(matches):
            self._held.append(matches)

    def release(self, before: Watermark | None) -> Matches:
        """The matches that were kept back and end before a time."""
        held, self._held = self._held, []
        ready = []
        for matches in held:
            due = np.zeros(len(matches), dtype=np.bool_)
            if before is not None:
                due = matches.tuples.hi < before.of(self._a_row(matches), self._store)
            self.hold(matches.take(~due))
            ready.append(matches.take(due))
        return joined(ready) if ready else self._nothing()

    @staticmethod
    def _a_row(matches: Matches) -> Rows:
        rows: Rows = matches.tuples.rows[:, a_row(matches.variables)]
        return rows

    def _nothing(self) -> Matches:
        columns = self.program.columns
        return Matches(columns, Tuples.empty(len(columns)), None if self._slide is None else NONE)

    # --- what it has counted

    @property
    def tallies(self) -> list[Tally]:
        own: list[Tally] = []
        if isinstance(self._root, Searcher):
            own = [self._root.tally]
        elif self._root is not None:
            own = [node.tally for node in self._root.joins()]
        return [*own, *(s.tally for s in self._stages), *self.negations.tallies.values(), self.waiting_tally]

    def count_kept(self) -> None:
        for tally, relation in self._counted:
            tally.keep(len(relation))
        if self._waiting or self._held or self.waiting_tally.kept:
            self.waiting_tally.keep(sum(map(len, self._waiting)) + sum(map(len, self._held)))

    # --- snapshots

    def dump(self) -> Arrays:
        found = {"sets.starts": self.sets.starts, "sets.members": self.sets.members}
        for place, (relation, _) in enumerate([*self.relations(), *self._negated()]):
            found |= prefixed(f"relation {place}", relation.dump())
        for what, kept in (("waiting", self._waiting), ("held", self._held)):
            for place, matches in enumerate(kept):
                found |= prefixed(f"{what} {place}", matches.tuples.dump())
                if matches.window_start is not None:
                    found[f"{what} {place}.window_start"] = matches.window_start
        return found

    def load(self, arrays: Arrays) -> None:
        self.sets.starts, self.sets.members = arrays["sets.starts"], arrays["sets.members"]
        for place, (relation, _) in enumerate([*self.relations(), *self._negated()]):
            relation.load(below(f"relation {place}", arrays))
        for what, kept in (("waiting", self._waiting), ("held", self._held)):
            while found := below(f"{what} {len(kept)}", arrays):
                kept.append(Matches(self.program.columns, Tuples.loaded(found), found.get("window_start")))

    def meta(self) -> list[dict[str, Any]]:
        return [tally.dump() for tally in self.tallies]

    def load_meta(self, found: list[dict[str, Any]]) -> None:
        for tally, counts in zip(self.tallies, found, strict=True):
            tally.load(counts)

    # --- one push

    def push(self, new: dict[str, Rows], watermark: Watermark | None) -> Matches:
        """``new``: for each variable, negated ones too, the new rows that it takes. Matches that are decided now."""
        self.negations.insert(new)
        tuples = self._new_tuples(new)
        found = Matches(self.program.columns, tuples)
        if self._slide is not None:
            found = self._in_windows(found)
        if self.program.negations:
            found = self._decide(found, watermark)
        return found

    def forget(self, watermark: Watermark | None) -> None:
        """Drop what no later event can need. What ``push`` returned must have been used by then."""
        if watermark is not None:
            oldest = watermark.back(self._window)
            for relation, names in self.relations():
                if len(relation):
                    relation.evict(oldest.of(relation.tuples.rows[:, a_row(names)], self._store))
            self.negations.forget(watermark)
        if len(self.sets) > self._next_sets:
            self._forget_sets()
            self._next_sets = max(1024, 2 * len(self.sets))

    def relations(self) -> list[Kept]:
        """All that is kept of positive variables."""
        if self._root is None:
            own: list[Kept] = []
        else:
            own = self._root.relations if isinstance(self._root, Searcher) else self._root.relations()
        return [*own, *(kept for stage in self._stages for kept in stage.relations)]

    def events(self, name: str) -> Rows:
        """The rows that are kept of a variable, be it negated or not."""
        kept = [*self.relations(), *zip(self.negations.relations, ((n,) for n in self.negations.tallies), strict=True)]
        for relation, names in kept:
            if names == (name,) and len(relation):
                rows: Rows = relation.tuples.rows[:, 0]
                return rows[rows >= self._store.base]
        return NONE

    def _negated(self) -> list[Kept]:
        return [(relation, ("",)) for relation in self.negations.relations]

    def _new_tuples(self, new: dict[str, Rows]) -> Tuples:
        tuples: Tuples | None = None
        if isinstance(self._root, Searcher):
            tuples = self._root.push(new)
        elif self._root is not None:
            tuples = self._new(self._root, new)
        for stage in self._stages:
            tuples = stage.push(tuples, new[stage.program.variable.name])
        assert tuples is not None
        return tuples

    def _new(self, node: _Node, new: dict[str, Rows]) -> Tuples:
        """The new tuples of a node, semi-naively: new(L) ⋈ all(R) ∪ old(L) ⋈ new(R)."""
        if node.variable is not None:
            rows = new[node.variable]
            return self._joiner.tuples(rows) if len(rows) else node.nothing
        left, right = self._new(node.left, new), self._new(node.right, new)
        if not len(left) and not len(right):
            return node.nothing
        joiner = self._joiner
        joiner.insert(node.right.relation, right, node.from_left)
        found = [node.nothing]
        if len(left):
            found.append(joiner.pairs(left, node.right.relation, node.from_left, node.tally))
        if len(right):
            turned = joiner.pairs(right, node.left.relation, node.from_right, node.tally)
            found.append(self._turned(turned, node.from_right))
        joiner.insert(node.left.relation, left, node.from_right)
        return self.negations.at_first_chance(concatenate(found), node.negations)

    @staticmethod
    def _turned(tuples: Tuples, program: JoinProgram) -> Tuples:
        """From (right, left) to (left, right)."""
        cut = len(program.outer)
        return Tuples(np.concatenate([tuples.rows[:, cut:], tuples.rows[:, :cut]], axis=1), tuples.lo, tuples.hi)

    def _decide(self, found: Matches, watermark: Watermark | None) -> Matches:
        """Of new and waiting matches, those for which no negated event can come any more and none has come."""
        waiting = [m for m in [*self._waiting, found] if len(m)]
        self._waiting = []
        decided = []
        for matches in waiting:
            ready = self.negations.decided(matches, watermark)
            if not ready.all():
                self._waiting.append(matches.take(~ready))
            decided.append(self.negations.surviving(matches.take(ready)))
        return joined(decided) if decided else self._nothing()

    # --- rows and sets that are still referred to

    def rows(self) -> list[Rows]:
        """Every row number that the run refers to; numbers of sets are among them, and below zero."""
        if len(self.sets):
            self._forget_sets()
        kept = [relation.tuples.rows.reshape(-1) for relation, _ in [*self.relations(), *self._negated()]]
        waiting = [matches.tuples.rows.reshape(-1) for matches in (*self._waiting, *self._held)]
        return [*kept, *waiting, self.sets.members]

    def renumber(self, change: Callable[[Rows], Rows]) -> None:
        """Rows have new numbers."""
        for relation, _ in [*self.relations(), *self._negated()]:
            relation.tuples = self._renumbered(relation.tuples, change)
        self._waiting = [
            Matches(m.variables, self._renumbered(m.tuples, change), m.window_start) for m in self._waiting
        ]
        self._held = [Matches(m.variables, self._renumbered(m.tuples, change), m.window_start) for m in self._held]
        self.sets.members = change(self.sets.members)

    @staticmethod
    def _renumbered(tuples: Tuples, change: Callable[[Rows], Rows]) -> Tuples:
        rows = np.where(tuples.rows < 0, tuples.rows, change(np.maximum(tuples.rows, 0)))
        return Tuples(rows, tuples.lo, tuples.hi)

    def _set_columns(self) -> list[Rows]:
        """Every column that holds numbers of sets."""
        kept = [(stage.tuples.tuples.rows, stage.program.from_tuples.outer) for stage in self._stages[1:]]
        kept += [(m.tuples.rows, m.variables) for m in (*self._waiting, *self._held)]
        return [rows[:, names.index(n)] for rows, names in kept for n in names if f"first {n}" in names]

    def _forget_sets(self) -> None:
        """Keep the sets that waiting tuples refer to, and no others."""
        columns = self._set_columns()
        renumbered = self.sets.keep(np.concatenate(columns) if columns else NONE)
        for column in columns:
            column[:] = [renumbered[int(number)] for number in column]

    # --- windows that slide

    def _in_windows(self, found: Matches) -> Matches:
        """Each match once for each window that holds it."""
        size, step = self.program.window, self._step
        first = (found.tuples.hi - size) // step + 1  # the smallest k with k·step + size > hi
        last = found.tuples.lo // step
        counts = np.maximum(last - first + 1, 0)
        which = np.repeat(np.arange(len(found)), counts)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Matches(found.variables, found.tuples.take(which), (first[which] + offset) * step)

    @property
    def _step(self) -> int:
        assert self._slide is not None
        if self._slide.kind is s.WindowKind.TIME:
            return self._unit.ticks(self._slide.size)
        return self._slide.size

    @property
    def horizon(self) -> int:
        """How far back from the watermark rows are needed."""
        return self._window * (2 if self.program.negations else 1)
