"""What a session keeps once it knows the schema of its events: rows, runs, and what is held back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.clock import Watermark
from cepheid.engine.compile import announce
from cepheid.engine.conditions import Scope
from cepheid.engine.consume import Consumption
from cepheid.engine.ingest import Batch, EventColumns, EventTypes
from cepheid.engine.intake import Intake
from cepheid.engine.joiner import FOREVER, LimitError
from cepheid.engine.kernels.join import TIME
from cepheid.engine.kernels.tuples import join_tuples
from cepheid.engine.lower import lower
from cepheid.engine.matches import Matches
from cepheid.engine.network import Network
from cepheid.engine.observe import observe
from cepheid.engine.output import Output
from cepheid.engine.positions import Positions
from cepheid.engine.postponed import postponed_of
from cepheid.engine.program import EVERY, BranchProgram, FieldTable, LeafProgram
from cepheid.engine.run import BranchRun, Setting
from cepheid.engine.sets import Sets
from cepheid.engine.shedding import Shedder
from cepheid.engine.snapshot import Arrays, below, from_array, plan_from_json, prefixed, to_array
from cepheid.engine.stepwise import StepwiseRun
from cepheid.engine.tally import PARTIAL, Tally
from cepheid.engine.vector import Unit
from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch, NormalForm
from cepheid.pattern.schema import columns_of
from cepheid.plan.tree import Plan, as_lists
from cepheid.shed.strategies import Strategy
from cepheid.stats.estimates import Estimates


class State:
    """Patterns that share a clock: time for all of them, or the places of events in the stream of a partition."""

    def __init__(
        self,
        normals: tuple[NormalForm, ...],
        plans: Mapping[Branch, Plan | None],
        columns: EventColumns,
        schema: pa.Schema,
        unit: Unit,
        types: EventTypes,
        *,
        limit: int,
        negation: str,
        share: bool = False,
        shed: Strategy | None = None,
        runs: list[tuple[int, list[int], bool, Any]] | None = None,
    ) -> None:
        """``runs``: of a snapshot, for each run the first row it sees, the numbers of its nodes, whether it shares."""
        announce(join_tuples)
        self.schema = schema
        self._columns = columns
        self._unit = unit
        self._types = types
        self._negation = negation
        self._share = share
        self._changes = 0
        self._known = columns_of(schema, time=columns.time, type=columns.type, tie_breaker=columns.tie_breaker)
        table = FieldTable(self._known, columns.type is not None)
        self._positions: Positions | None = None
        self._times_in: int | None = None
        counted = normals[0].branches[0].window.kind is s.WindowKind.EVENTS
        if counted:  # matches still start and end at a time
            self._times_in = table.column(s.Attribute("", columns.time))
        self._intake = Intake(columns, table, schema)
        self._store = self._intake.store
        if counted:
            names = normals[0].branches[0].partition
            self._positions = Positions(
                names, columns, self._intake.codes, unit, table.partition(names) if names else None
            )
        ties = columns.tie_breaker is not None and not counted
        self._network = Network(Scope(self._store, Sets(), unit, ties, frozenset()), limit)
        self._setting = Setting(self._network, self._store, unit, ties, limit)
        self.normals: tuple[NormalForm, ...] = ()
        self.runs: dict[tuple[str, int], BranchRun] = {}
        # Per run, which of the leaves each of its variables reads: looked up once, not in every push.
        self._reads: dict[tuple[str, int], dict[str, int]] = {}
        self._consumptions: dict[str, Consumption] = {}
        self._outputs: dict[str, Output] = {}
        self.buffered = Tally("buffer", "events", ())
        # While nothing is shed, what armed shedding costs is to look at one push in some.
        self.shedder = None if shed is None else Shedder(shed, self._network, self._intake, self._store)
        self._new_rows = 0  # since what is old was last forgotten
        for normal in normals:
            self._admit(normal, plans, runs)
        self._settle()

    # --- patterns come and go

    def add(self, normal: NormalForm, plans: Mapping[Branch, Plan | None]) -> None:
        """One more pattern. It sees events from now on."""
        self.catch_up()
        self._admit(normal, plans)
        self._settle()

    def remove(self, name: str) -> None:
        """A pattern less, with all that waits for it."""
        self.catch_up()
        for key in [key for key in self.runs if key[0] == name]:
            self.runs.pop(key).leave()
            del self._reads[key]
        self._consumptions.pop(name, None)
        del self._outputs[name]
        self.normals = tuple(normal for normal in self.normals if normal.name != name)
        self._settle()

    def _admit(
        self,
        normal: NormalForm,
        plans: Mapping[Branch, Plan | None],
        runs: list[tuple[int, list[int], bool, Any]] | None = None,
    ) -> None:
        for place, branch in enumerate(normal.branches):
            if branch.never is not None:
                continue
            key = normal.name, place
            since, numbers, share, plan = self._store.base + self._store.size, None, True, plans[branch]
            if runs is not None:  # equal branches of different patterns may have come to different plans
                since, numbers, share, plan = runs[len(self.runs)]
                plan = plan_from_json(plan)
            program = self._lowered(normal, branch, plan, key, share=share)
            reads = self._reads[key] = self._intake.admit(program)
            run_of = StepwiseRun if branch.stepwise else BranchRun
            self.runs[key] = run_of(program, self._setting, reads, since=since, numbers=numbers)
        self.normals = (*self.normals, normal)
        self._outputs[normal.name] = Output(
            normal, self.schema, self._columns.time, self._known, self._unit, self._times_in
        )
        if normal.selection.consume:
            self._consumptions[normal.name] = self._consumption(normal)

    def _settle(self) -> None:
        """Once the patterns are there."""
        self._intake.retain(
            (p, run.program.window) for key, run in self.runs.items() for p in self._reads[key].values()
        )
        # A match that is kept back ends up to a window before the watermark, and starts up to a window before that.
        horizons = [run.horizon for run in self.runs.values()]
        self._horizon = max(horizons, default=0) * (2 if self._consumptions else 1)
        self._scopes = {n: [run.scope for key, run in self.runs.items() if key[0] == n] for n in self._outputs}
        self._postponed = postponed_of(self.normals, self.schema, self._columns.time, self._unit)
        if self._postponed is not None:  # other types may come last from now on
            self._postponed.latest = int(self._store.values[TIME, : self._store.size].max(initial=-FOREVER))
        if self.shedder is not None:
            self.shedder.critical = frozenset(normal.name for normal in self.normals if normal.critical)
        self.nothing = {name: output.table([]) for name, output in self._outputs.items()}
        self._find_partial()

    @property
    def all_tallies(self) -> list[Tally]:
        """All that was counted, what several branches share once."""
        runs = [tally for run in self.runs.values() for tally in run.own_tallies]
        return [*self._intake.tallies, *self._network.tallies, *runs]

    @property
    def partial_matches(self) -> int:
        return sum([tally.kept for tally in self._partial])

    def _find_partial(self) -> None:
        self._partial = [tally for tally in self.all_tallies if tally.kind in PARTIAL]

    def change(self, plans: Mapping[Branch, Plan], *, rebuild: bool) -> list[Branch]:
        """Give branches other plans; those for which it was done.

        A branch whose events are selected step by step has no use for one, and while a change is under way there is no
        other. If a new plan would go beyond the limits, the old one stays.
        """
        self.catch_up()
        done = []
        for key, run in self.runs.items():
            branch = run.program.branch
            plan = plans.get(branch)
            if plan is None or plan == run.program.plan or branch.stepwise or run.is_changing:
                continue
            normal = next(n for n in self.normals if n.name == key[0])
            self._changes += 1
            anew = rebuild or run.keeps_for_ever
            owner = key if anew else (*key, self._changes)
            with suppress(LimitError):
                run.change(self._lowered(normal, branch, plan, owner, share=anew), rebuild=anew)
                done.append(branch)
        self._find_partial()
        return done

    def overload(self, ratio: float) -> None:
        """Drop this share of the work from now on."""
        if self.shedder is not None:
            self.shedder.ratio = ratio

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        return {name: output.schema for name, output in self._outputs.items()}

    def _lowered(
        self, normal: NormalForm, branch: Branch, plan: Plan | None, owner: Hashable, *, share: bool = True
    ) -> BranchProgram:
        window = self._length(branch.window)
        share = share and self._share
        program = lower(branch, plan, self._intake.table, window, self._negation, owner=owner, share=share)
        program = replace(program, critical=normal.critical)
        if normal.selection.strategy is s.Strategy.STRICT:
            return replace(program, leaves={**program.leaves, EVERY: LeafProgram(EVERY, None, (), ())})
        return program

    def _length(self, window: s.Window) -> int:
        match window.kind:
            case s.WindowKind.TIME:
                return self._unit.ticks(window.size)
            case s.WindowKind.EVENTS:
                return window.size - 1  # from the first to the last of n places
        return window.size

    def _consumption(self, normal: NormalForm) -> Consumption:
        runs = [run for (name, _), run in self.runs.items() if name == normal.name]
        late = any(run.program.branch.stepwise or run.program.negations for run in runs)
        slack = max((run.horizon for run in runs), default=0) if late else 0
        return Consumption(normal.variables, runs, slack)

    # --- snapshots

    def catch_up(self) -> None:
        """Do what was put off, so that all that is kept and counted is as if it had not been."""
        if self._postponed is not None and len(self._postponed):
            found = self._push(self._postponed.taken(), None)
            assert not any(map(len, found.values())), "what was put aside completes no match"

    def meta(self) -> dict[str, Any]:
        if self.shedder is not None:
            self.shedder.look(self.runs, self._reads)
        return {
            "intake": self._intake.meta(),
            "counts": [run.meta() for run in self.runs.values()],
            "elders": [
                None if found is None else [as_lists(found[0].plan), found[0].shares, *found[1:]]
                for found in (run.elder() for run in self.runs.values())
            ],
            "network": self._network.meta(),
            "patterns": [normal.name for normal in self.normals],
            "runs": [
                [run.since, run.numbers, run.program.shares, as_lists(run.program.plan)] for run in self.runs.values()
            ],
            "buffered": self.buffered.dump(),
            "new rows": self._new_rows,
            "latest": None if self._postponed is None else self._postponed.latest,
            "shedding": None if self.shedder is None else self.shedder.meta(),
        }

    def dump(self) -> Arrays:
        found = prefixed("store", self._store.dump()) | prefixed("network", self._network.dump())
        for place, run in enumerate(self.runs.values()):
            found |= prefixed(f"run {place}", run.dump())
        for name, consumption in self._consumptions.items():
            found |= prefixed(f"consumption {name}", consumption.dump())
        if self._positions is not None:
            found |= prefixed("positions", self._positions.dump())
        if self.shedder is not None:
            found |= prefixed("shedding", self.shedder.dump())
        if self._postponed is not None:
            found["postponed"] = to_array(self.schema, self._postponed.events)
        return found

    def load(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        self._intake.load(below("store", arrays), meta["intake"])
        self._new_rows = meta["new rows"]
        self.buffered.load(meta["buffered"])
        if self._postponed is not None:
            self._postponed.latest = meta["latest"]
            for events in from_array(arrays["postponed"]).to_batches():
                self._postponed.takes(Batch(events, self._columns, self._unit, self._types))
        for (key, run), elder in zip(self.runs.items(), meta["elders"], strict=True):
            if elder is not None:
                normal = next(n for n in self.normals if n.name == key[0])
                plan, share, first_new, numbers = elder
                program = self._lowered(normal, run.program.branch, plan_from_json(plan), key, share=share)
                run.run_beside(program, first_new, numbers)
        self._network.load(below("network", arrays), meta["network"])
        for place, (run, counts) in enumerate(zip(self.runs.values(), meta["counts"], strict=True)):
            run.load(below(f"run {place}", arrays))
            run.load_meta(counts)
        for name, consumption in self._consumptions.items():
            consumption.load(below(f"consumption {name}", arrays))
        if self._positions is not None:
            self._positions.load(below("positions", arrays))
        if self.shedder is not None and meta.get("shedding"):
            self.resume_shedding(below("shedding", arrays), meta["shedding"], same_rows=True)

    def resume_shedding(self, arrays: Arrays, meta: dict[str, Any], *, same_rows: bool = False) -> None:
        assert self.shedder is not None
        self.shedder.load(arrays, meta, self.runs, self._reads, same_rows=same_rows)

    # --- one push

    def number(self, batch: Batch, watermark: Watermark | None) -> tuple[Batch, Watermark | None]:
        """Where events are counted: those whose places are known now, and how far the count has come."""
        if self._positions is None:
            return batch, watermark
        events, ticks, watermark = self._positions.push(batch, watermark)
        return Batch(events, self._columns, self._unit, self._types, ticks), watermark

    def push(self, batch: Batch, watermark: Watermark | None) -> dict[str, pa.Table]:
        """Add events; by pattern, the matches that are decided now."""
        if self._postponed is not None:
            if self._postponed.takes(batch):
                return self.nothing
            if len(self._postponed):
                batch = self._postponed.taken(batch)
        return self._push(batch, watermark)

    def _push(self, batch: Batch, watermark: Watermark | None) -> dict[str, pa.Table]:
        shedder = self.shedder
        if shedder is not None:
            shedder.begin(self.runs, self._reads, len(batch))
        taken = self._intake.take(batch, None if shedder is None else shedder.thinning)
        thinned = taken if shedder is None else shedder.after_intake(taken)
        self._network.begin(taken, thinned)
        found: dict[str, list[Matches]] = {name: [] for name in self._outputs}
        for key, run in self.runs.items():
            if shedder is None or not shedder.active:
                new = {name: taken[place] for name, place in self._reads[key].items()}
            else:
                new = shedder.rows_for(key, run, taken, thinned)
            found[key[0]].append(run.push(new, watermark))
        if shedder is not None and shedder.active:
            shedder.after_joins()
        self._network.end()
        for name, consumption in self._consumptions.items():
            found[name] = consumption.decide(found[name], watermark)
        if shedder is not None:
            of_branches = {name: iter(some) for name, some in found.items()}  # in the order of the runs
            matches = {key: next(of_branches[key[0]]) for key in self.runs}
            shedder.found(matches)
            if shedder.active:
                shedder.end(matches, taken)
        tables = {n: output.table(zip(found[n], self._scopes[n], strict=True)) for n, output in self._outputs.items()}
        self.buffered.keep(self._intake.live + (0 if self._positions is None else self._positions.waiting))
        for run in self.runs.values():
            run.count_kept()
        self._new_rows += max(len(batch), 1)
        self._forget(watermark)
        return tables

    def _forget(self, watermark: Watermark | None) -> None:
        """Drop what no later event can need. What is old does no harm, so this waits until it takes room."""
        if self._new_rows < max(64, self._store.size // 16):
            return
        self._new_rows = 0
        if watermark is not None:
            self._network.forget(watermark)
        for run in self.runs.values():
            run.forget(watermark)
        if watermark is None or not self.runs:
            return
        oldest = watermark.back(self._horizon).ticks
        if isinstance(oldest, int):
            self._intake.evict(oldest)
        self._collect()
        codes = self._intake.codes
        if codes.crowded and self._positions is None:  # every partition ever seen has its place in the count
            codes.keep(self._store, self._intake.table)
        for consumption in self._consumptions.values():
            consumption.forget(self._store.base)

    def _collect(self) -> None:
        """Give up the rows that nothing refers to, once they are most of what there is."""
        if not self._store.crowded or any(run.is_changing for run in self.runs.values()):
            return
        if max([self._network.since, *(run.since for run in self.runs.values())]) > self._store.base:
            return  # the numbers of rows say which patterns see them
        live = np.zeros(self._store.size, dtype=np.bool_)
        network = [relation.tuples.rows.reshape(-1) for relation in self._network.relations()]
        for relations in (network, *(run.rows() for run in self.runs.values())):
            for rows in relations:
                live[rows[rows >= self._store.base] - self._store.base] = True
        kept = np.flatnonzero(live) + self._store.base
        change = self._store.keep(kept)
        if change is None:
            return
        if self.shedder is not None:
            self.shedder.renumber(kept, self._store.base)
        self._intake.live = min(self._intake.live, self._store.size)
        for relation in self._network.relations():
            relation.tuples = relation.tuples.renumbered(change)
        for run in self.runs.values():
            run.renumber(change)
        for consumption in self._consumptions.values():
            consumption.renumber(change)

    # --- what was counted

    def estimates(self, tried: int) -> dict[Branch, Estimates]:
        """What is known of each branch from the events of the last window."""
        return {
            run.program.branch: observe(run, self._intake.counts(self._reads[key], run.program.window), tried)
            for key, run in self.runs.items()
        }

    def tallies(self, name: str) -> list[list[Tally]]:
        """For each branch of a pattern its tallies, those of the leaves first."""
        return [
            [*self._intake.tallies_of(run.program, self._reads[key]), *run.tallies]
            for key, run in self.runs.items()
            if key[0] == name
        ]
