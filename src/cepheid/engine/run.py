"""Running one branch: batches of new events in, new matches out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepheid.engine.clock import Watermark
from cepheid.engine.conditions import Scope
from cepheid.engine.core import Core, Kept
from cepheid.engine.joiner import FOREVER, NONE, Joiner, Rows
from cepheid.engine.matches import Matches, joined
from cepheid.engine.negation import Negations
from cepheid.engine.network import Network
from cepheid.engine.program import BranchProgram, a_row, is_set
from cepheid.engine.relation import Tuples, concatenate
from cepheid.engine.sets import Sets
from cepheid.engine.snapshot import Arrays, below, prefixed
from cepheid.engine.store import RowStore
from cepheid.engine.tally import CANDIDATES, Tally
from cepheid.engine.vector import Mask, Unit
from cepheid.engine.waiting import Waiting
from cepheid.language import syntax as s


@dataclass(frozen=True, slots=True)
class Setting:
    """What the runs of a session have in common."""

    network: Network
    store: RowStore
    unit: Unit
    ties: bool
    limit: int


class BranchRun:
    """The state of one branch: what the nodes of its plan keep, and matches that wait for a negated event.

    The plan may change. Then the new plan's partial matches are made of the events that are kept; or the old plan goes
    on beside it, for the matches that have an event from before the change, until no such event is left.
    """

    def __init__(
        self,
        program: BranchProgram,
        setting: Setting,
        reads: dict[str, int],
        *,
        since: int = 0,
        numbers: Sequence[int] | None = None,
    ) -> None:
        """``reads``: which leaf each variable reads. ``since``, ``numbers``: see :class:`Core`."""
        store, unit = setting.store, setting.unit
        self.program = program
        self.sets = Sets()
        kleene = frozenset(k.variable.name for k in program.kleene)
        self.scope = Scope(store, self.sets, unit, setting.ties, kleene)
        self._store = store
        self._unit = unit
        self._slide = program.branch.slide
        # A window of SLIDE does not hold its end: its first and last event are less than its length apart.
        self._window = min(program.window - (1 if self._slide else 0), FOREVER)
        self._joiner = Joiner(self.scope, self._window, setting.limit)
        self.negations = Negations(program.negations, self._joiner, program.window)
        self._network = setting.network
        self._reads = reads
        self._since = since
        self._core = self._core_of(program, since=since, numbers=numbers)
        self._elder: Core | None = None  # the plan before …
        self._first_new = 0  # … and the first row that came after the change
        self._past = Tally("past", "plans before", (CANDIDATES,))
        self._next_sets = 0
        self._waiting = Waiting(store)  # for a negated event
        self._held = Waiting(store)  # for a competing match
        self.waiting_tally = Tally("waiting", "matches that wait for the watermark", ())

    def _core_of(
        self,
        program: BranchProgram,
        *,
        since: int,
        numbers: Sequence[int] | None = None,
        known: Callable[[str], Rows] | None = None,
    ) -> Core:
        return Core(
            program, self._joiner, self.negations, self._network, self._reads,
            since=since, numbers=numbers, known=known,
        )  # fmt: skip

    def leave(self) -> None:
        """The pattern is gone."""
        for core in (self._core, self._elder):
            if core is not None:
                core.leave()

    def hold(self, matches: Matches) -> None:
        """Keep matches back that may compete with others."""
        self._held.add(matches, matches.tuples.hi)

    def release(self, before: Watermark | None) -> Matches:
        """The matches that were kept back and end before a time."""
        ready = self._held.due(before)
        return joined(ready) if ready else self._nothing()

    def _nothing(self) -> Matches:
        columns = self.program.columns
        return Matches(columns, Tuples.empty(len(columns)), None if self._slide is None else NONE)

    # --- what it has counted

    @property
    def tallies(self) -> list[Tally]:
        """What was counted for this branch, be it for others too."""
        shared = [tally for core in self.cores for tally in core.shared_tallies]
        return [*shared, *self.own_tallies]

    @property
    def own_tallies(self) -> list[Tally]:
        own = [tally for core in self.cores for tally in core.own_tallies]
        return [*own, *self.negations.tallies.values(), self.waiting_tally, self._past]

    @property
    def cores(self) -> list[Core]:
        """The plan in force, and the one before while it is still needed."""
        return [self._core] if self._elder is None else [self._core, self._elder]

    @property
    def worked(self) -> list[Tally]:
        """What has counted the work of the plan in force."""
        return [*self._core.worked, *self.negations.tallies.values()]

    @property
    def work(self) -> int:
        """How many candidates the plan in force has looked at and conditions it has evaluated."""
        return sum(tally.work for tally in self.worked)

    def count_kept(self) -> None:
        self.waiting_tally.keep(len(self._waiting) + len(self._held))

    # --- another plan

    @property
    def is_changing(self) -> bool:
        return self._elder is not None

    def change(self, program: BranchProgram, *, rebuild: bool) -> None:
        """Go on with another plan. While one change is under way there is no other."""
        assert self._elder is None
        old = self._core
        if rebuild:
            core = self._core_of(program, since=self._since, known=old.events)
            try:
                core.fill(old.events)
            except BaseException:
                core.leave()
                raise
            self._give_up(old)
        else:
            self._elder, self._first_new = old, self._store.base + self._store.size
            core = self._core_of(program, since=self._first_new)
        self.program, self._core = program, core

    @property
    def keeps_for_ever(self) -> bool:
        """Where events are counted in partitions, the last of one that falls silent are never too old."""
        branch = self.program.branch
        return branch.window.kind is s.WindowKind.EVENTS and bool(branch.partition)

    def _give_up(self, core: Core) -> None:
        """What a plan before has counted stays counted."""
        for tally in core.leave():
            self._past.evaluations += tally.evaluations
            self._past.steps[CANDIDATES] += tally.steps.get(CANDIDATES, 0)

    def run_beside(self, elder: BranchProgram, first_new: int, numbers: Sequence[int]) -> None:
        """Have an old plan, yet without events, for the matches with a row before ``first_new``."""
        self._elder, self._first_new = self._core_of(elder, since=self._since, numbers=numbers), first_new

    def elder(self) -> tuple[BranchProgram, int, list[int]] | None:
        """While a change is under way: the old plan's program, the first row that it leaves alone, and its nodes."""
        return None if self._elder is None else (self._elder.program, self._first_new, self._elder.numbers)

    @property
    def numbers(self) -> list[int]:
        """Of the nodes of its plan."""
        return self._core.numbers

    @property
    def since(self) -> int:
        return self._since

    def _with_old(self, tuples: Tuples) -> Mask:
        """Which tuples have an event from before the change."""
        names = self.program.columns
        rows = tuples.rows[:, [place for place, name in enumerate(names) if not is_set(name, names)]]
        old: Mask = np.asarray((rows < self._first_new).any(axis=1))
        for name in self.scope.kleene:
            which, members = self.sets.expand(tuples.rows[:, names.index(name)])
            old[which[members < self._first_new]] = True
        return old

    def _retire_elder(self) -> None:
        """The old plan may go when none of the events from before the change is left."""
        if self._elder is None:
            return
        if not any(((r >= self._store.base) & (r < self._first_new)).any() for r in self._elder.rows()):
            self._give_up(self._elder)
            self._elder = None

    # --- snapshots

    def dump(self) -> Arrays:
        found = {"sets.starts": self.sets.starts, "sets.members": self.sets.members}
        for place, (relation, _) in enumerate(self._kept()):
            found |= prefixed(f"relation {place}", relation.dump())
        for what, kept in (("waiting", self._waiting), ("held", self._held)):
            for place, matches in enumerate(kept.matches):
                found |= prefixed(f"{what} {place}", matches.tuples.dump())
                if matches.window_start is not None:
                    found[f"{what} {place}.window_start"] = matches.window_start
        return found

    def load(self, arrays: Arrays) -> None:
        self.sets.starts, self.sets.members = arrays["sets.starts"], arrays["sets.members"]
        for place, (relation, _) in enumerate(self._kept()):
            relation.load(below(f"relation {place}", arrays))
        for what, keep in (("waiting", self._keep_waiting), ("held", self.hold)):
            place = 0
            while found := below(f"{what} {place}", arrays):
                keep(Matches(self.program.columns, Tuples.loaded(found), found.get("window_start")))
                place += 1

    def meta(self) -> list[dict[str, Any]]:
        return [tally.dump() for tally in self.own_tallies]

    def load_meta(self, found: list[dict[str, Any]]) -> None:
        for tally, counts in zip(self.own_tallies, found, strict=True):
            tally.load(counts)

    # --- one push

    def push(self, new: dict[str, Rows], watermark: Watermark | None) -> Matches:
        """``new``: for each variable, negated ones too, the new rows that it takes. Matches that are decided now."""
        self.negations.insert(new)
        tuples = self._core.push(new)
        if self._elder is not None:
            theirs = self._elder.push(new)
            tuples = concatenate([tuples, theirs.take(self._with_old(theirs))])
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
            self._retire_elder()
        if len(self.sets) > self._next_sets:
            self._forget_sets()
            self._next_sets = max(1024, 2 * len(self.sets))

    def relations(self) -> list[Kept]:
        """All that is kept of positive variables."""
        return [*self._core.relations(), *(() if self._elder is None else self._elder.relations())]

    def events(self, name: str) -> Rows:
        """The rows that are kept of a variable, be it negated or not."""
        if name in self.negations.tallies:
            rows: Rows = self.negations.relation(name).tuples.rows[:, 0]
            return rows[rows >= self._store.base]
        return (self._elder or self._core).events(name)

    def _kept(self) -> list[Kept]:
        return [*self.relations(), *((relation, ("",)) for relation in self.negations.relations)]

    def _decide(self, found: Matches, watermark: Watermark | None) -> Matches:
        """Of new and waiting matches, those for which no negated event can come any more and none has come."""
        self._keep_waiting(found)
        decided = [self.negations.surviving(matches) for matches in self._waiting.due(watermark)]
        return joined(decided) if decided else self._nothing()

    def _keep_waiting(self, matches: Matches) -> None:
        """Until no negated event can come any more."""
        self._waiting.add(matches, self.negations.last_chance(matches))

    # --- rows and sets that are still referred to

    def rows(self) -> list[Rows]:
        """Every row number that the run refers to; numbers of sets are among them, and below zero."""
        if len(self.sets):
            self._forget_sets()
        kept = [relation.tuples.rows.reshape(-1) for relation, _ in self._kept()]
        waiting = [m.tuples.rows.reshape(-1) for m in (*self._waiting.matches, *self._held.matches)]
        return [*kept, *waiting, self.sets.members]

    def renumber(self, change: Callable[[Rows], Rows]) -> None:
        """Rows have new numbers."""
        for relation, _ in self._kept():
            relation.tuples = relation.tuples.renumbered(change)
        for kept in (self._waiting, self._held):
            kept.change(lambda m: Matches(m.variables, m.tuples.renumbered(change), m.window_start))
        self.sets.members = change(self.sets.members)

    def _set_columns(self) -> list[Rows]:
        """Every column that holds numbers of sets."""
        found = [m.columns[n] for m in (*self._waiting.matches, *self._held.matches) for n in self.scope.kleene]
        found += self._core.set_columns()
        return found if self._elder is None else [*found, *self._elder.set_columns()]

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
    def step(self) -> int:
        """How far windows slide; 0 if they do not."""
        return 0 if self._slide is None else self._step

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
