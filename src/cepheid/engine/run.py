"""Running one branch: batches of new events in, new matches out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.conditions import Scope
from cepheid.engine.kernels.join import CANDIDATES, EVALUATIONS, STOPPED, TIE, TIME, join
from cepheid.engine.kernels.kleene import enumerate_sets
from cepheid.engine.program import (
    BranchProgram,
    JoinProgram,
    KleeneProgram,
    NegationProgram,
    first_column,
    kleene_columns,
)
from cepheid.engine.relation import Relation, Tuples, concatenate
from cepheid.engine.sets import Sets
from cepheid.engine.snapshot import Arrays, below, prefixed
from cepheid.engine.store import RowStore
from cepheid.engine.vector import Unit
from cepheid.language import syntax as s
from cepheid.plan.tree import Join, Leaf, Plan, variables

Rows: TypeAlias = npt.NDArray[np.int64]
FOREVER = 2**62
"""Longer than any window, and no sum of two of them overflows."""


class _Stage:
    """A KL variable: its events, and the tuples that sets of them can be added to."""

    def __init__(self, program: KleeneProgram) -> None:
        self.program = program
        self.events = Relation(1, keyed=program.from_tuples.key_slot >= 0)
        self.tuples = Relation(len(program.from_tuples.outer), keyed=program.from_events.key_slot >= 0)

    @property
    def relations(self) -> tuple[Relation, Relation]:
        return self.events, self.tuples


def _columns(names: tuple[str, ...], rows: Rows) -> dict[str, Rows]:
    return {name: rows[:, place] for place, name in enumerate(names)}


def joined(parts: list[Matches]) -> Matches:
    start = None if parts[0].window_start is None else np.concatenate([p.window_start for p in parts])
    return Matches(parts[0].variables, concatenate([p.tuples for p in parts]), start)


class _Node:
    """A node of the plan at work: what it asks for, and what its parent finds of it."""

    def __init__(self, plan: Plan, program: BranchProgram, *, keyed: bool = False) -> None:
        self.variables = variables(plan)
        self.relation = Relation(len(self.variables), keyed=keyed)
        self.nothing = Tuples.empty(len(self.variables))
        self.variable = plan.variable if isinstance(plan, Leaf) else None
        if isinstance(plan, Join):
            node = program.joins[plan]
            self.from_left, self.from_right = node.from_left, node.from_right
            self.left = _Node(plan.left, program, keyed=self.from_right.key_slot >= 0)
            self.right = _Node(plan.right, program, keyed=self.from_left.key_slot >= 0)

    def relations(self) -> list[Relation]:
        below = [] if self.variable is not None else [*self.left.relations(), *self.right.relations()]
        return [*below, self.relation]


class LimitError(RuntimeError):
    """A pattern makes more partial matches than was allowed."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches of a branch: for each its rows, in the order of ``variables``, and with SLIDE the start of its window."""

    variables: tuple[str, ...]
    tuples: Tuples
    window_start: Rows | None = None

    def __len__(self) -> int:
        return len(self.tuples)

    def take(self, chosen: npt.NDArray[np.bool_] | Rows) -> Matches:
        start = None if self.window_start is None else self.window_start[chosen]
        return Matches(self.variables, self.tuples.take(chosen), start)


class BranchRun:
    """The state of one branch: what each node of its plan keeps, and matches that wait for a negated event."""

    def __init__(self, program: BranchProgram, store: RowStore, unit: Unit, *, ties: bool, limit: int) -> None:
        self.program = program
        self.counts: Counter[str] = Counter()
        self.sets = Sets()
        kleene = frozenset(k.variable.name for k in program.kleene)
        self.scope = Scope(store, self.sets, unit, ties, kleene)
        self._store = store
        self._unit = unit
        self._ties = ties
        self._limit = limit
        self._slide = program.branch.slide
        # A window of SLIDE does not hold its end: its first and last event are less than its length apart.
        self._window = min(program.window - (1 if self._slide else 0), FOREVER)
        self._root = None if program.plan is None else _Node(program.plan, program)
        self._stages = [_Stage(stage) for stage in program.kleene]
        self._negated = {n.negation.name: Relation(1, keyed=n.probe.key_slot >= 0) for n in program.negations}
        self._waiting: list[Matches] = []  # for a negated event
        self._held: list[Matches] = []  # for a competing match

    def hold(self, matches: Matches) -> None:
        """Keep matches back that may compete with others."""
        if len(matches):
            self._held.append(matches)

    def release(self, before: int | None) -> Matches:
        """The matches that were kept back and end before a time."""
        held, self._held = self._held, []
        ready = []
        for matches in held:
            due = np.zeros(len(matches), dtype=np.bool_) if before is None else matches.tuples.hi < before
            self.hold(matches.take(~due))
            ready.append(matches.take(due))
        return joined(ready) if ready else self._nothing()

    def _nothing(self) -> Matches:
        none = np.empty(0, dtype=np.int64)
        columns = self.program.columns
        return Matches(columns, Tuples.empty(len(columns)), None if self._slide is None else none)

    # --- snapshots

    def dump(self) -> Arrays:
        found = {"sets.starts": self.sets.starts, "sets.members": self.sets.members}
        for place, relation in enumerate([*self.relations(), *self._negated.values()]):
            found |= prefixed(f"relation {place}", relation.dump())
        for what, kept in (("waiting", self._waiting), ("held", self._held)):
            for place, matches in enumerate(kept):
                found |= prefixed(f"{what} {place}", matches.tuples.dump())
                if matches.window_start is not None:
                    found[f"{what} {place}.window_start"] = matches.window_start
        return found

    def load(self, arrays: Arrays) -> None:
        self.sets.starts, self.sets.members = arrays["sets.starts"], arrays["sets.members"]
        for place, relation in enumerate([*self.relations(), *self._negated.values()]):
            relation.load(below(f"relation {place}", arrays))
        for what, kept in (("waiting", self._waiting), ("held", self._held)):
            while found := below(f"{what} {len(kept)}", arrays):
                kept.append(Matches(self.program.columns, Tuples.loaded(found), found.get("window_start")))

    # --- one push

    def push(self, new: dict[str, Rows], watermark: int | None, closing: bool) -> Matches:
        """``new``: for each variable, negated ones too, the new rows that it takes. Matches that are decided now."""
        for program in self.program.negations:
            name = program.negation.name
            self._insert(self._negated[name], self._tuples(new[name]), program.probe)
        tuples = None if self._root is None else self._new(self._root, new)
        for stage in self._stages:
            tuples = self._with_sets(tuples, stage, self._tuples(new[stage.program.variable.name]))
        assert tuples is not None
        found = Matches(self.program.columns, tuples)
        if self._slide is not None:
            found = self._in_windows(found)
        if self.program.negations:
            found = self._decide(found, watermark, closing)
        return found

    def forget(self, watermark: int | None) -> None:
        """Drop what no later event can need. What ``push`` returned must have been used by then."""
        if watermark is not None:
            for relation in self.relations():
                relation.evict(watermark - self._window)
            for relation in self._negated.values():
                relation.evict(watermark - 2 * self._window)
        if len(self.sets):
            self._forget_sets()

    def relations(self) -> list[Relation]:
        """All that is kept of positive variables."""
        return [
            *(self._root.relations() if self._root else ()),
            *(r for stage in self._stages for r in stage.relations),
        ]

    def _tuples(self, rows: Rows) -> Tuples:
        times = self._store.times(rows)
        return Tuples(rows.reshape(-1, 1), times, times)

    def _new(self, node: _Node, new: dict[str, Rows]) -> Tuples:
        """The new tuples of a node, semi-naively: new(L) ⋈ all(R) ∪ old(L) ⋈ new(R)."""
        if node.variable is not None:
            rows = new[node.variable]
            return self._tuples(rows) if len(rows) else node.nothing
        left, right = self._new(node.left, new), self._new(node.right, new)
        if not len(left) and not len(right):
            return node.nothing
        self._insert(node.right.relation, right, node.from_left)
        found = [node.nothing]
        if len(left):
            found.append(self._pairs(left, node.right.relation, node.from_left))
        if len(right):
            found.append(self._turned(self._pairs(right, node.left.relation, node.from_right), node.from_right))
        self._insert(node.left.relation, left, node.from_right)
        return concatenate(found)

    def _insert(self, relation: Relation, new: Tuples, probe: JoinProgram) -> None:
        """Keep tuples where ``probe`` will look for them."""
        if not len(new):
            return
        keys = None
        if relation.keyed:
            rows = new.rows[:, probe.inner_key_slot] - self._store.base
            keys = self._store.values[probe.inner_key_column][rows]
        relation.insert(new, keys)

    def _pairs(self, outer: Tuples, relation: Relation, probe: JoinProgram) -> Tuples:
        inner = relation.tuples
        o, i = self._candidates(outer, relation, probe)
        if not len(o):
            return Tuples.empty(len(probe.outer) + len(probe.inner))
        rows = np.concatenate([outer.rows[o], inner.rows[i]], axis=1)
        return Tuples(rows, np.minimum(outer.lo[o], inner.lo[i]), np.maximum(outer.hi[o], inner.hi[i]))

    def _candidates(self, outer: Tuples, relation: Relation, probe: JoinProgram) -> tuple[Rows, Rows]:
        """Which outer tuples go with which inner ones."""
        if not len(outer) or not len(relation):
            none = np.empty(0, dtype=np.int64)
            return none, none
        low, high = outer.hi - self._window, outer.lo + self._window
        o, i = self._probe(outer, low, high, relation, probe, window=self._window)
        return self._passing(outer, o, relation.tuples, i, probe)

    def _passing(self, outer: Tuples, o: Rows, inner: Tuples, i: Rows, probe: JoinProgram) -> tuple[Rows, Rows]:
        """The pairs that satisfy the conditions which no kernel can check."""
        for condition in probe.external:
            if len(o):
                self.counts["evaluations"] += len(o)
                rows = np.concatenate([outer.rows[o], inner.rows[i]], axis=1)
                good = self.scope.holds(condition, _columns((*probe.outer, *probe.inner), rows), len(o))
                o, i = o[good], i[good]
        return o, i

    def _probe(
        self,
        outer: Tuples,
        low: Rows,
        high: Rows,
        relation: Relation,
        probe: JoinProgram,
        *,
        window: int = 2 * FOREVER - 1,
        exists: bool = False,
    ) -> tuple[Rows, Rows]:
        inner = relation.tuples
        o, i, counts = join(  # type: ignore[no-untyped-call]
            outer.rows, outer.lo, outer.hi, inner.rows, inner.lo, inner.hi,
            low, high, window, probe.after, probe.before, probe.conditions,
            self._store.values, self._store.floats, self._store.base, self._ties,
            probe.key_slot, probe.key_column, relation.keys, relation.heads, relation.links, exists, self._limit,
        )  # fmt: skip
        self.counts["candidates"] += int(counts[CANDIDATES])
        self.counts["evaluations"] += int(counts[EVALUATIONS])
        if counts[STOPPED]:
            raise LimitError(
                f"more than {self._limit:,} partial matches over {', '.join((*probe.outer, *probe.inner))}. Make the "
                "window smaller, add a condition between them, or raise max_partial_matches."
            )
        return o, i

    @staticmethod
    def _turned(tuples: Tuples, program: JoinProgram) -> Tuples:
        """From (right, left) to (left, right)."""
        cut = len(program.outer)
        return Tuples(np.concatenate([tuples.rows[:, cut:], tuples.rows[:, :cut]], axis=1), tuples.lo, tuples.hi)

    # --- sets

    def _with_sets(self, new: Tuples | None, stage: _Stage, events: Tuples) -> Tuples:
        """New tuples with each of their sets, and old ones with the sets that hold a new event."""
        program = stage.program
        if new is None:  # nothing but sets: each begins with one of its events
            new = events
        self._insert(stage.events, events, program.from_tuples)
        _, concerned = self._candidates(events, stage.tuples, program.from_events)
        old = stage.tuples.tuples.take(np.unique(concerned))
        found = [self._sets_of(new, stage, None), self._sets_of(old, stage, events)]
        self._insert(stage.tuples, new, program.from_events)
        return concatenate(found)

    def _sets_of(self, outer: Tuples, stage: _Stage, must_have: Tuples | None) -> Tuples:
        """The tuples with each of their sets; ``must_have``: only those with one of these events."""
        program = stage.program
        anchored = program.from_tuples.outer == program.from_tuples.inner
        width = 3 if anchored else outer.rows.shape[1] + 3
        if not len(outer):
            return Tuples.empty(width)
        o, i = self._candidates(outer, stage.events, program.from_tuples)
        rows = stage.events.tuples.rows[i, 0]
        if anchored:
            later = self._is_later(rows, outer.rows[o, 0])
            o = np.concatenate([np.arange(len(outer)), o[later]])
            rows = np.concatenate([outer.rows[:, 0], rows[later]])
        place = rows - self._store.base
        order = np.lexsort((rows, self._store.values[TIE][place], self._store.values[TIME][place], o))
        o, rows = o[order], rows[order]
        fresh = np.zeros(len(rows), dtype=np.bool_) if must_have is None else np.isin(rows, must_have.rows[:, 0])
        owner, begin, members, stopped = enumerate_sets(  # type: ignore[no-untyped-call]
            np.searchsorted(o, np.arange(len(outer) + 1)), rows, fresh, outer.lo, outer.hi,
            np.full(len(outer), must_have is not None), anchored, program.variable.minimum or 1,
            program.variable.maximum or FOREVER, self._window, program.neighbours,
            self._store.values, self._store.floats, self._store.base, self._ties, self._limit,
        )  # fmt: skip
        if stopped:
            raise LimitError(
                f"more than {self._limit:,} sets for the variable {program.variable.name}. Give it a maximum, add a "
                "condition on neighbours, use skip_till_next, or raise max_partial_matches."
            )
        numbers = self.sets.add(begin, members)
        first, last = members[begin[:-1]], members[begin[1:] - 1]
        parts = [numbers.reshape(-1, 1), first.reshape(-1, 1), last.reshape(-1, 1)]
        found = Tuples(
            np.concatenate(parts if anchored else [outer.rows[owner], *parts], axis=1),
            np.minimum(outer.lo[owner], self._store.times(first)),
            np.maximum(outer.hi[owner], self._store.times(last)),
        )
        names = (*(() if anchored else program.from_tuples.outer), *kleene_columns(program.variable.name))
        found = self._apart(found, names, program.variable.name)
        for condition in program.external:
            self.counts["evaluations"] += len(found)
            found = found.take(self.scope.holds(condition, _columns(names, found.rows), len(found)))
        return found

    def _is_later(self, rows: Rows, than: Rows) -> npt.NDArray[np.bool_]:
        """Whether one row stands behind another in the order of time, of ties and, at last, of arrival."""
        values, base = self._store.values, self._store.base
        time, other = values[TIME][rows - base], values[TIME][than - base]
        tie, its = values[TIE][rows - base], values[TIE][than - base]
        later: npt.NDArray[np.bool_] = (time > other) | (
            (time == other) & ((tie > its) | ((tie == its) & (rows > than)))
        )
        return later

    def _apart(self, found: Tuples, names: tuple[str, ...], name: str) -> Tuples:
        """Without the tuples that have an event of one set in another as well."""
        for other in self.scope.kleene & set(names) - {name}:
            which, members = self.sets.expand(found.rows[:, names.index(name)])
            again, others = self.sets.expand(found.rows[:, names.index(other)])
            pairs = np.stack([np.concatenate([which, again]), np.concatenate([members, others])], axis=1)
            unique, counts = np.unique(pairs, axis=0, return_counts=True)
            twice = np.zeros(len(found), dtype=np.bool_)
            twice[unique[counts > 1, 0]] = True
            found = found.take(~twice)
        return found

    def _forget_sets(self) -> None:
        """Keep the sets that waiting tuples refer to, and no others."""
        kept = [(stage.tuples, stage.program.from_tuples.outer) for stage in self._stages[1:]]
        columns = [(m.tuples.rows, m.variables) for m in (*self._waiting, *self._held)] + [
            (r.tuples.rows, names) for r, names in kept
        ]
        places = [(rows, names.index(n)) for rows, names in columns for n in names if f"first {n}" in names]
        renumbered = self.sets.keep(np.concatenate([rows[:, p] for rows, p in places] or [np.empty(0, dtype=np.int64)]))
        for rows, p in places:
            rows[:, p] = [renumbered[int(number)] for number in rows[:, p]]

    # --- windows that slide

    def _in_windows(self, found: Matches) -> Matches:
        """Each match once for each window that holds it."""
        assert self._slide is not None
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

    # --- negation

    def _decide(self, found: Matches, watermark: int | None, closing: bool) -> Matches:
        """Of new and waiting matches, those for which no negated event can come any more and none has come."""
        waiting = [m for m in [*self._waiting, found] if len(m)]
        self._waiting = []
        decided = []
        for matches in waiting:
            ready = np.full(len(matches), closing)
            if not closing and watermark is not None:
                ready = self._last_chance(matches) < watermark
            if not ready.all():
                self._waiting.append(matches.take(~ready))
            decided.append(self._surviving(matches.take(ready)))
        return joined(decided) if decided else self._nothing()

    def _last_chance(self, matches: Matches) -> Rows:
        """For each match, the last time at which a negated event could still come."""
        latest = np.full(len(matches), -FOREVER)
        for program in self.program.negations:
            latest = np.maximum(latest, self._bounds(matches, program)[1])
        return latest

    def _bounds(self, matches: Matches, program: NegationProgram) -> tuple[Rows, Rows]:
        """Between which times a negated event can lie, both included."""
        if matches.window_start is None:
            low, high = matches.tuples.hi - self._window, matches.tuples.lo + self._window
        else:
            low, high = matches.window_start, matches.window_start + self.program.window - 1
        for name in program.negation.before:
            column = matches.variables.index(first_column(name, matches.variables))
            times = self._store.times(matches.tuples.rows[:, column])
            high = np.minimum(high, times if self._ties else times - 1)
        return low, high

    def _surviving(self, matches: Matches) -> Matches:
        for program in self.program.negations:
            if len(matches):
                struck = self._struck(matches, program)
                self.counts["rejected by negation"] += int(struck.sum())
                matches = matches.take(~struck)
        return matches

    def _struck(self, matches: Matches, program: NegationProgram) -> npt.NDArray[np.bool_]:
        """For which matches there is a negated event."""
        struck = np.zeros(len(matches), dtype=np.bool_)
        asked = np.ones(len(matches), dtype=np.bool_)
        for condition in program.outer_conditions:
            asked &= self.scope.holds(condition, _columns(matches.variables, matches.tuples.rows), len(matches))
        relation = self._negated[program.negation.name]
        chosen = np.flatnonzero(asked)
        if not len(chosen) or not len(relation):
            return struck
        some = matches.take(chosen)
        low, high = self._bounds(some, program)
        with_sets = bool(self.scope.kleene)
        o, i = self._probe(
            some.tuples, low, high, relation, program.probe, exists=not (program.probe.external or with_sets)
        )
        if with_sets:
            o, i = self._unused(some, o, relation.tuples.rows[i, 0], i)
        o, i = self._passing(some.tuples, o, relation.tuples, i, program.probe)
        struck[chosen[o]] = True
        return struck

    def _unused(self, matches: Matches, o: Rows, rows: Rows, i: Rows) -> tuple[Rows, Rows]:
        """Without pairs whose event is in a set of the match."""
        used = np.zeros(len(o), dtype=np.bool_)
        for name in self.scope.kleene:
            which, members = self.sets.expand(matches.tuples.rows[o, matches.variables.index(name)])
            used[which[members == rows[which]]] = True
        return o[~used], i[~used]

    @property
    def horizon(self) -> int:
        """How far back from the watermark rows are needed."""
        return self._window * (2 if self.program.negations else 1)
