"""A session: the state of running patterns."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.conditions import Scope
from cepheid.engine.consume import Consumption
from cepheid.engine.fields import PartitionCodes
from cepheid.engine.ingest import Batch, Codes, EventColumns, EventTypes, InputError
from cepheid.engine.output import Output
from cepheid.engine.program import BranchProgram, FieldTable, LeafProgram, lower
from cepheid.engine.run import BranchRun, Matches
from cepheid.engine.snapshot import (
    Arrays,
    below,
    pack,
    plan_to_json,
    prefixed,
    table_from_array,
    table_to_array,
)
from cepheid.engine.stepwise import EVERY, StepwiseRun
from cepheid.engine.store import RowStore
from cepheid.engine.vector import MICROSECONDS, NANOSECONDS, Unit
from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.language.values import Interval, Timestamp
from cepheid.pattern.check import check
from cepheid.pattern.normal import Branch, NormalForm
from cepheid.pattern.schema import columns_of
from cepheid.plan.tree import Plan


class Session:
    """Takes batches of events, in any order, and gives the matches that each of them decides. Made by an Engine."""

    def __init__(
        self,
        patterns: tuple[Pattern, ...],
        normals: tuple[NormalForm, ...],
        plans: dict[Branch, Plan | None],
        columns: EventColumns,
        limit: int,
    ) -> None:
        self._patterns = patterns
        self._normals = normals
        self._plans = plans
        self._columns = columns
        self._limit = limit
        self._state: _State | None = None
        self._watermark: int | None = None
        self._closed = False
        self._late: list[pa.Table] = []
        self.counts: Counter[str] = Counter()

    def push(self, events: pa.Table | pa.RecordBatch, watermark: Any = None) -> pa.Table:
        """Add events; the matches that are decided by them.

        ``watermark`` says that, after this batch, no event with an earlier time will come. It must not go back. What
        can still match is kept until then, and patterns with NOT wait for it.
        """
        if self._closed:
            raise ValueError("this session is closed; open another one")
        table = pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events
        state = self._prepared(table.schema)
        batch = state.batch(table)
        batch = self._without_late(batch, state)
        self.counts["events"] += len(batch)
        if watermark is not None:
            self._advance(state.ticks(watermark))
        return state.push(batch, self._watermark, closing=False)

    def close(self) -> pa.Table:
        """No more events: the matches that were still waiting. Without any event there is no schema, and so nothing."""
        self._closed = True
        if self._state is None:
            return pa.table({})
        return self._state.push(self._state.batch(self._state.schema.empty_table()), None, closing=True)

    def late_events(self) -> pa.Table | None:
        """The events that came behind the watermark since they were last asked for."""
        late, self._late = self._late, []
        return pa.concat_tables(late) if late else None

    def report(self) -> dict[str, Any]:
        """What was done: the papers' metrics, over all patterns."""
        counts = Counter(self.counts)
        if self._state is not None:
            for run in self._state.runs.values():
                counts.update(run.counts)
        return dict(counts)

    def snapshot(self) -> bytes:
        """The state as bytes; :meth:`Engine.restore` goes on exactly there."""
        state = self._state
        meta = {
            "patterns": [str(pattern) for pattern in self._patterns],
            "plans": [plan_to_json(self._plans[b]) for n in self._normals for b in n.branches],
            "columns": [self._columns.time, self._columns.type, self._columns.tie_breaker],
            "watermark": self._watermark,
            "closed": self._closed,
            "counts": dict(self.counts),
            "state": None if state is None else state.meta(),
        }
        arrays = {} if state is None else state.dump()
        for place, late in enumerate(self._late):
            arrays[f"late {place}"] = table_to_array(late)
        return pack(arrays, meta)

    def load(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        """Take the state of a snapshot of the same patterns."""
        self._watermark, self._closed = meta["watermark"], meta["closed"]
        self.counts = Counter(meta["counts"])
        self._late = [table_from_array(array) for name, array in arrays.items() if name.startswith("late ")]
        if meta["state"] is not None:
            schema = table_from_array(arrays["store.events"]).schema
            self._prepared(schema).load(arrays, meta["state"])

    def _prepared(self, schema: pa.Schema) -> _State:
        if self._state is None:
            names = {"time": self._columns.time, "type": self._columns.type, "tie_breaker": self._columns.tie_breaker}
            check(self._patterns, schema, **names)  # type: ignore[arg-type]
            self._state = _State(self._normals, self._plans, self._columns, schema, self._limit)
        elif not schema.equals(self._state.schema):
            raise InputError(
                f"the columns of this batch differ from those of the first: expected\n{self._state.schema}"
                f"\ngot\n{schema}"
            )
        return self._state

    def _without_late(self, batch: Batch, state: _State) -> Batch:
        if self._watermark is None or not len(batch):
            return batch
        late = batch.times(self._columns.time, "time") < self._watermark
        if not late.any():
            return batch
        self.counts["late events"] += int(late.sum())
        self._late.append(batch.events.filter(pa.array(late)))
        return state.batch(batch.events.filter(pa.array(~late)))

    def _advance(self, watermark: int) -> None:
        if self._watermark is not None and watermark < self._watermark:
            raise ValueError(f"the watermark went back, from {self._watermark} to {watermark}")
        self._watermark = watermark


class _State:
    """What a session keeps once it knows the schema of its events."""

    def __init__(
        self,
        normals: tuple[NormalForm, ...],
        plans: dict[Branch, Plan | None],
        columns: EventColumns,
        schema: pa.Schema,
        limit: int,
    ) -> None:
        self.schema = schema
        self.unit = unit_of(normals, schema)
        known = columns_of(schema, time=columns.time, type=columns.type, tie_breaker=columns.tie_breaker)
        self._table = FieldTable(known)
        live = [(normal, branch) for normal in normals for branch in normal.branches if branch.never is None]
        programs = [(normal, self._lowered(normal, b, plans[b])) for normal, b in live]
        self._store = RowStore(len(self._table), schema)
        self._codes = Codes()
        ties = columns.tie_breaker is not None
        self.runs = {
            (normal.name, place): _run_of(program)(program, self._store, self.unit, ties=ties, limit=limit)
            for place, (normal, program) in enumerate(programs)
        }
        self._consumptions = {n.name: self._consumption(n) for n in normals if n.selection.consume}
        # A match that is kept back ends up to a window before the watermark, and starts up to a window before that.
        horizons = [run.horizon for run in self.runs.values()]
        self._horizon = max(horizons, default=0) * (2 if self._consumptions else 1)
        self._outputs = {n.name: Output(n, schema, columns.time, known, self.unit) for n in normals}
        _refuse_clashes(normals, [self._outputs[n.name].schema for n in normals])
        leaves = [leaf for run in self.runs.values() for leaf in _leaves(run)]
        self._leaves = list(dict.fromkeys(leaves))
        self._types = EventTypes(leaf.type for leaf in leaves if leaf.type is not None)
        self._columns = columns
        # Per run, which of the leaves each of its variables reads: looked up once, not in every push.
        self._reads = {
            key: [(leaf.variable, self._leaves.index(leaf)) for leaf in _leaves(run)] for key, run in self.runs.items()
        }

    def _lowered(self, normal: NormalForm, branch: Branch, plan: Plan | None) -> BranchProgram:
        program = lower(branch, plan, self._table, self._length(branch.window))
        if normal.selection.strategy is s.Strategy.STRICT:
            return replace(program, leaves={**program.leaves, EVERY: LeafProgram(EVERY, None, (), ())})
        return program

    def _consumption(self, normal: NormalForm) -> Consumption:
        runs = [run for (name, _), run in self.runs.items() if name == normal.name]
        late = any(run.program.branch.stepwise or run.program.negations for run in runs)
        slack = max((run.horizon for run in runs), default=0) if late else 0
        return Consumption(normal.variables, runs, slack)

    def batch(self, events: pa.Table) -> Batch:
        return Batch(events, self._columns, self.unit, self._types)

    def meta(self) -> dict[str, Any]:
        partitions = [[list(names), codes.dump()] for names, codes in self._codes.partitions.items()]
        counts = [dict(run.counts) for run in self.runs.values()]
        return {"strings": self._codes.strings.dump(), "partitions": partitions, "counts": counts}

    def dump(self) -> Arrays:
        found = prefixed("store", self._store.dump())
        for place, run in enumerate(self.runs.values()):
            found |= prefixed(f"run {place}", run.dump())
        for name, consumption in self._consumptions.items():
            found |= prefixed(f"consumption {name}", consumption.dump())
        return found

    def load(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        self._store.load(below("store", arrays))
        self._codes.strings.load(meta["strings"])
        for names, keys in meta["partitions"]:
            self._codes.partitions.setdefault(tuple(names), PartitionCodes()).load(keys)
        for place, (run, counts) in enumerate(zip(self.runs.values(), meta["counts"], strict=True)):
            run.load(below(f"run {place}", arrays))
            run.counts = Counter(counts)
        for name, consumption in self._consumptions.items():
            consumption.load(below(f"consumption {name}", arrays))

    def _length(self, window: s.Window) -> int:
        return self.unit.ticks(window.size) if window.kind is s.WindowKind.TIME else window.size

    def ticks(self, time: Any) -> int:
        """A time as the caller writes it, on the engine's clock."""
        scalar = time if isinstance(time, pa.Scalar) else pa.scalar(time)
        if pa.types.is_integer(scalar.type):
            return int(scalar.as_py())
        zone = scalar.type.tz if pa.types.is_timestamp(scalar.type) else None
        return int(scalar.cast(pa.timestamp(self.unit.name, zone)).value)

    def push(self, batch: Batch, watermark: int | None, closing: bool) -> pa.Table:
        taken = [np.empty(0, dtype=np.int64)] * len(self._leaves)
        if len(batch):
            batch.times(self._columns.time, "time")
            masks = [batch.taken_by(leaf) for leaf in self._leaves]
            kept = np.flatnonzero(np.logical_or.reduce(masks)) if masks else np.empty(0, dtype=np.int64)
            events = batch.events if len(kept) == len(batch) else batch.events.take(pa.array(kept))
            numbers = self._store.append(list(batch.columns(self._table, self._codes, kept)), events)
            taken = [numbers[mask[kept]] for mask in masks]
        found: dict[str, list[Matches]] = {name: [] for name in self._outputs}
        scopes: dict[str, list[Scope]] = {name: [] for name in self._outputs}
        for key, run in self.runs.items():
            new = {variable: taken[place] for variable, place in self._reads[key]}
            found[key[0]].append(run.push(new, watermark, closing))
            scopes[key[0]].append(run.scope)
        for name, consumption in self._consumptions.items():
            found[name] = consumption.decide(found[name], watermark, closing)
        tables = [output.table(list(zip(found[n], scopes[n], strict=True))) for n, output in self._outputs.items()]
        for run in self.runs.values():
            run.forget(watermark)
        if watermark is not None and self.runs:
            self._store.evict(watermark - self._horizon)
            for consumption in self._consumptions.values():
                consumption.forget(self._store.base)
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")


def _refuse_clashes(normals: tuple[NormalForm, ...], schemas: list[pa.Schema]) -> None:
    """Patterns that are matched together share a table, so a column has one type in all of them."""
    seen: dict[str, tuple[str, pa.DataType]] = {}
    for normal, schema in zip(normals, schemas, strict=True):
        for field in schema:
            owner, type_ = seen.setdefault(field.name, (normal.name, field.type))
            if type_ != field.type:
                raise InputError(
                    f"the column {field.name!r} is {type_} in {owner} and {field.type} in {normal.name}. "
                    "Give one of them another name, or match the patterns apart."
                )


def _run_of(program: BranchProgram) -> type[BranchRun]:
    return StepwiseRun if program.branch.stepwise else BranchRun


def _leaves(run: BranchRun) -> list[LeafProgram]:
    return [*run.program.leaves.values(), *(n.leaf for n in run.program.negations)]


def unit_of(normals: tuple[NormalForm, ...], schema: pa.Schema) -> Unit:
    """Nanoseconds if a column or a constant has them, else microseconds, which reach further."""
    for field in schema:
        if (pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type)) and field.type.unit == "ns":
            return NANOSECONDS
    lengths = [
        w.size for n in normals for b in n.branches for w in (b.window, b.slide) if w and w.kind is s.WindowKind.TIME
    ]
    expressions = [c.expression for n in normals for b in n.branches for c in b.conditions]
    expressions += [c.expression for n in normals for b in n.branches for g in b.negations for c in g.conditions]
    expressions += [item.expression for n in normals for item in n.output or ()]
    for expression in expressions:
        for node in s.walk(expression):
            if isinstance(node, s.Literal) and isinstance(node.value, (Timestamp, Interval)):
                lengths.append(node.value.nanoseconds)
    return MICROSECONDS if all(length % 1000 == 0 for length in lengths) else NANOSECONDS
