"""What a session keeps once it knows the schema of its events: rows, runs, and what is held back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.clock import Watermark
from cepheid.engine.consume import Consumption
from cepheid.engine.fields import PartitionCodes
from cepheid.engine.ingest import Batch, Codes, EventColumns, EventTypes
from cepheid.engine.joiner import FOREVER, NONE, LimitError
from cepheid.engine.kernels.join import TIME
from cepheid.engine.lower import lower
from cepheid.engine.matches import Matches
from cepheid.engine.observe import Arrivals, observe
from cepheid.engine.output import Output
from cepheid.engine.positions import Positions
from cepheid.engine.postponed import postponed_of
from cepheid.engine.program import EVERY, BranchProgram, FieldTable, LeafProgram
from cepheid.engine.run import BranchRun
from cepheid.engine.snapshot import Arrays, below, plan_from_json, plan_to_json, prefixed
from cepheid.engine.stepwise import StepwiseRun
from cepheid.engine.store import RowStore
from cepheid.engine.tally import PARTIAL, Tally
from cepheid.engine.vector import Unit
from cepheid.language import syntax as s
from cepheid.pattern.normal import Branch, NormalForm
from cepheid.pattern.schema import columns_of
from cepheid.plan.tree import Plan
from cepheid.stats.estimates import Estimates


class State:
    """Patterns that share a clock: time for all of them, or the places of events in the stream of a partition."""

    def __init__(
        self,
        normals: tuple[NormalForm, ...],
        plans: dict[Branch, Plan | None],
        columns: EventColumns,
        schema: pa.Schema,
        unit: Unit,
        types: EventTypes,
        *,
        limit: int,
        negation: str,
    ) -> None:
        self.schema = schema
        self._normals = normals
        self._columns = columns
        self._unit = unit
        known = columns_of(schema, time=columns.time, type=columns.type, tie_breaker=columns.tie_breaker)
        self._table = FieldTable(known, columns.type is not None)
        self._codes = Codes()
        counted = normals[0].branches[0].window.kind is s.WindowKind.EVENTS
        self._positions: Positions | None = None
        if counted:
            names = normals[0].branches[0].partition
            self._positions = Positions(
                names, columns, self._codes, unit, self._table.partition(names) if names else None
            )
        live = [(normal, branch) for normal in normals for branch in normal.branches if branch.never is None]
        self._negation = negation
        programs = [(normal, self._lowered(normal, b, plans[b])) for normal, b in live]
        # Where events are counted, matches still start and end at a time.
        time = self._table.column(s.Attribute("", columns.time)) if counted else None
        self._store = RowStore(len(self._table), schema)
        ties = columns.tie_breaker is not None and not counted
        self.runs = {
            (normal.name, place): _run_of(program)(program, self._store, unit, ties=ties, limit=limit)
            for place, (normal, program) in enumerate(programs)
        }
        self._consumptions = {n.name: self._consumption(n) for n in normals if n.selection.consume}
        # A match that is kept back ends up to a window before the watermark, and starts up to a window before that.
        horizons = [run.horizon for run in self.runs.values()]
        self._horizon = max(horizons, default=0) * (2 if self._consumptions else 1)
        self._outputs = {n.name: Output(n, schema, columns.time, known, unit, time) for n in normals}
        self._types = types
        self._leaves = list(dict.fromkeys(leaf for run in self.runs.values() for leaf in _leaves(run)))
        self._leaf_tallies = [_leaf_tally(leaf) for leaf in self._leaves]
        # Per run, which of the leaves each of its variables reads: looked up once, not in every push.
        self._reads = {
            key: [(leaf.variable, self._leaves.index(leaf)) for leaf in _leaves(run)] for key, run in self.runs.items()
        }
        self.buffered = Tally("buffer", "events", ())
        read = {(place, run.program.window) for key, run in self.runs.items() for _, place in self._reads[key]}
        self._arrivals = {key: Arrivals(key[1]) for key in sorted(read)}
        self._count_partial()
        self._scopes = {n: [run.scope for key, run in self.runs.items() if key[0] == n] for n in self._outputs}
        self._postponed = postponed_of(normals, schema, columns.time, unit)
        self._nothing = {name: output.table([]) for name, output in self._outputs.items()}
        self._new_rows = 0  # since what is old was last forgotten
        self._live = 0  # rows in the store that were not old then

    def _count_partial(self) -> None:
        self._partial = [t for run in self.runs.values() for t in run.tallies if t.kind in PARTIAL]

    @property
    def partial_matches(self) -> int:
        return sum(tally.kept for tally in self._partial)

    def change(self, plans: Mapping[Branch, Plan], *, rebuild: bool) -> list[Branch]:
        """Give branches other plans; those for which it was done.

        A branch whose events are selected step by step has no use for one, and while a change is under way there is no
        other. If a new plan would go beyond the limits, the old one stays.
        """
        self.catch_up()
        done = []
        for (name, _), run in self.runs.items():
            branch = run.program.branch
            plan = plans.get(branch)
            if plan is None or plan == run.program.plan or branch.stepwise or run.is_changing:
                continue
            normal = next(n for n in self._normals if n.name == name)
            with suppress(LimitError):
                run.change(self._lowered(normal, branch, plan), rebuild=rebuild)
                done.append(branch)
        self._count_partial()
        return done

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        return {name: output.schema for name, output in self._outputs.items()}

    def _lowered(self, normal: NormalForm, branch: Branch, plan: Plan | None) -> BranchProgram:
        program = lower(branch, plan, self._table, self._length(branch.window), self._negation)
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
            found = self._push(self._batch(self._postponed.taken()), None)
            assert not any(map(len, found.values())), "what was put aside completes no match"

    def meta(self) -> dict[str, Any]:
        partitions = [[list(names), codes.dump()] for names, codes in self._codes.partitions.items()]
        leaves = [tally.dump() for tally in self._leaf_tallies]
        return {
            "strings": self._codes.strings.dump(),
            "partitions": partitions,
            "counts": [run.meta() for run in self.runs.values()],
            "elders": [
                None if found is None else [plan_to_json(found[0].plan), found[1]]
                for found in (run.elder() for run in self.runs.values())
            ],
            "leaves": [*leaves, self.buffered.dump()],
            "arrivals": [arrivals.dump() for arrivals in self._arrivals.values()],
            "new rows": [self._new_rows, self._live],
            "latest": None if self._postponed is None else self._postponed.latest,
        }

    def dump(self) -> Arrays:
        found = prefixed("store", self._store.dump())
        for place, run in enumerate(self.runs.values()):
            found |= prefixed(f"run {place}", run.dump())
        for name, consumption in self._consumptions.items():
            found |= prefixed(f"consumption {name}", consumption.dump())
        if self._positions is not None:
            found |= prefixed("positions", self._positions.dump())
        return found

    def load(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        self._store.load(below("store", arrays))
        self._new_rows, self._live = meta["new rows"]
        if self._postponed is not None:
            self._postponed.latest = meta["latest"]
        self._codes.strings.load(meta["strings"])
        for names, keys in meta["partitions"]:
            self._codes.partitions.setdefault(tuple(names), PartitionCodes()).load(keys)
        for (key, run), elder in zip(self.runs.items(), meta["elders"], strict=True):
            if elder is not None:
                normal = next(n for n in self._normals if n.name == key[0])
                program = self._lowered(normal, run.program.branch, plan_from_json(elder[0]))
                run.run_beside(program, elder[1])
        for place, (run, counts) in enumerate(zip(self.runs.values(), meta["counts"], strict=True)):
            run.load(below(f"run {place}", arrays))
            run.load_meta(counts)
        for tally, counts in zip([*self._leaf_tallies, self.buffered], meta["leaves"], strict=True):
            tally.load(counts)
        for arrivals, found in zip(self._arrivals.values(), meta["arrivals"], strict=True):
            arrivals.load(found)
        for name, consumption in self._consumptions.items():
            consumption.load(below(f"consumption {name}", arrays))
        if self._positions is not None:
            self._positions.load(below("positions", arrays))

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
                return self._nothing
            if len(self._postponed):
                batch = self._batch(self._postponed.taken(batch.events))
        return self._push(batch, watermark)

    def _batch(self, events: pa.Table) -> Batch:
        return Batch(events, self._columns, self._unit, self._types)

    def _push(self, batch: Batch, watermark: Watermark | None) -> dict[str, pa.Table]:
        taken = self._taken(batch)
        found: dict[str, list[Matches]] = {name: [] for name in self._outputs}
        for key, run in self.runs.items():
            found[key[0]].append(run.push({variable: taken[place] for variable, place in self._reads[key]}, watermark))
        for name, consumption in self._consumptions.items():
            found[name] = consumption.decide(found[name], watermark)
        tables = {n: output.table(zip(found[n], self._scopes[n], strict=True)) for n, output in self._outputs.items()}
        self.buffered.keep(self._live + (0 if self._positions is None else self._positions.waiting))
        for run in self.runs.values():
            run.count_kept()
        self._new_rows += max(len(batch), 1)
        self._forget(watermark)
        return tables

    def _taken(self, batch: Batch) -> list[Any]:
        """Put the events that some variable takes into the store; for each leaf the rows that it takes."""
        if not len(batch):
            return [NONE] * len(self._leaves)
        batch.times(self._columns.time, "time")
        masks = [batch.taken_by(leaf, tally) for leaf, tally in zip(self._leaves, self._leaf_tallies, strict=True)]
        some = [mask for mask in masks if mask is not None]
        if not some:
            return [NONE] * len(masks)
        kept = np.flatnonzero(reduce(np.logical_or, some))
        every = len(kept) == len(batch)
        columns = batch.columns(self._table, self._codes, kept)
        numbers = self._store.append(columns, batch.events if every else batch.events.take(pa.array(kept)))
        self._live += len(kept)
        taken = [NONE if mask is None else numbers[mask if every else mask[kept]] for mask in masks]
        for (place, _), arrivals in self._arrivals.items():
            if len(taken[place]):
                arrivals.add(self._store.times(taken[place]))
        return taken

    def _forget(self, watermark: Watermark | None) -> None:
        """Drop what no later event can need. What is old does no harm, so this waits until it takes room."""
        if self._new_rows < max(64, self._store.size // 16):
            return
        self._new_rows = 0
        for run in self.runs.values():
            run.forget(watermark)
        if watermark is None or not self.runs:
            return
        oldest = watermark.back(self._horizon).ticks
        if isinstance(oldest, int):
            self._live = self._store.evict(oldest)
        self._collect()
        if self._codes.crowded and self._positions is None:  # every partition ever seen has its place in the count
            self._codes.keep(self._store, self._table)
        for consumption in self._consumptions.values():
            consumption.forget(self._store.base)

    def _collect(self) -> None:
        """Give up the rows that nothing refers to, once they are most of what there is."""
        if not self._store.crowded or any(run.is_changing for run in self.runs.values()):
            return
        live = np.zeros(self._store.size, dtype=np.bool_)
        for run in self.runs.values():
            for rows in run.rows():
                live[rows[rows >= self._store.base] - self._store.base] = True
        change = self._store.keep(np.flatnonzero(live) + self._store.base)
        if change is None:
            return
        self._live = min(self._live, self._store.size)
        for run in self.runs.values():
            run.renumber(change)
        for consumption in self._consumptions.values():
            consumption.renumber(change)

    # --- what was counted

    def estimates(self) -> dict[Branch, Estimates]:
        """What is known of each branch from the events of the last window."""
        now = int(self._store.values[TIME, : self._store.size].max(initial=-FOREVER))
        return {
            run.program.branch: observe(
                run, {n: self._arrivals[place, run.program.window].count(now) for n, place in self._reads[key]}
            )
            for key, run in self.runs.items()
        }

    def tallies(self, name: str) -> list[list[Tally]]:
        """For each branch of a pattern its tallies, those of the leaves first."""
        return [
            [*(self._leaf_tallies[place] for _, place in self._reads[key]), *run.tallies]
            for key, run in self.runs.items()
            if key[0] == name
        ]


def _leaf_tally(leaf: LeafProgram) -> Tally:
    kind = "every event" if leaf.type is None else f"{leaf.type} events"
    needed = ("with every value that is compared",) if leaf.needed else ()
    return Tally("events", leaf.variable, (kind, *leaf.labels, *needed))


def _run_of(program: BranchProgram) -> type[BranchRun]:
    return StepwiseRun if program.branch.stepwise else BranchRun


def _leaves(run: BranchRun) -> list[LeafProgram]:
    return [*run.program.leaves.values(), *(n.leaf for n in run.program.negations)]
