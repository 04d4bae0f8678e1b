"""What a Python worker does: events in Arrow batches in, matches out. Nothing here knows Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.engine import Engine
from cepheid.engine.sample import estimate_all
from cepheid.engine.session import Session
from cepheid.language import syntax as s
from cepheid.language.functions import DataType, find_function, function_names, register_function
from cepheid.pattern.normal import NormalForm
from cepheid.spark.slices import Span

BATCH = 65_536
"""Events in a push. Spark hands over fewer at a time, and a push has a price of its own."""
CELL = "cell"
"""The column that says to which part of the work a row belongs."""

_RETURNS = {
    DataType.INTEGER: "integer",
    DataType.FLOAT: "double",
    DataType.STRING: "string",
    DataType.BOOLEAN: "boolean",
}


@dataclass(frozen=True)
class UserFunction:
    """A function that the caller registered, on its way to another process."""

    name: str
    body: Callable[..., Any]
    returns: str

    def register(self) -> None:
        register_function(self.name, self.body, returns=self.returns)


def registered_functions(names: Iterable[str] | None = None) -> tuple[UserFunction, ...]:
    """The functions of the caller's, or those among some names."""
    found = [find_function(name) for name in (function_names() if names is None else names)]
    return tuple(
        UserFunction(f.name, f.body, _RETURNS[f.result or DataType.FLOAT])
        for f in found
        if f is not None and f.body is not None
    )


def functions_in(normals: Iterable[NormalForm]) -> tuple[UserFunction, ...]:
    """The functions of the caller's that patterns call."""
    branches = [branch for normal in normals for branch in normal.branches]
    expressions = [
        *(c.expression for b in branches for c in b.conditions),
        *(c.expression for b in branches for n in b.negations for c in n.conditions),
        *(item.expression for normal in normals for item in normal.output or ()),
    ]
    names = {node.function for e in expressions for node in s.walk(e) if isinstance(node, s.Call)}
    return registered_functions(sorted(names))


@dataclass(frozen=True)
class Task:
    """Matches the rows of some shards or slices, which come in the order of time.

    ``events``: the columns as the engine is to see them; ``matches``: those of the result, which may be more than these
    patterns have. ``cells``: with slices, the times that belong to each part of the work; a part that is not among
    them is a shard, and all matches are its own. ``estimate``: look at the first events to choose a plan.
    """

    engine: Engine
    events: pa.Schema
    matches: pa.Schema
    cells: Mapping[int, Span] | None = None
    estimate: bool = True
    functions: tuple[UserFunction, ...] = ()

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All that a worker gets, to the end."""
        work = self.start()
        for table in gathered(batches, BATCH):
            yield from work.push(table)
        yield from work.close()

    def start(self) -> Work:
        for function in self.functions:
            function.register()
        return Work(self)


class Work:
    """A task at work: a session for each part."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._sessions: dict[int, Session] = {}

    def push(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        for cell, events in self._parts(table):
            if cell not in self._sessions:
                self._sessions[cell] = self._open(events)
            times = events[self._task.engine.columns.time]
            # Where a time is missing, there is no last one; the engine says what is wrong.
            found = self._sessions[cell].push(events, watermark=None if times.null_count else times[-1])
            yield from self._result(cell, found)

    def close(self) -> Iterator[pa.RecordBatch]:
        for cell, session in self._sessions.items():
            yield from self._result(cell, session.close())

    def _parts(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The rows of each part of the work. Nearly always there is one: each has a partition of its own."""
        if self._task.cells is None:
            yield 0, self._as_events(table)
            return
        for cell in pc.unique(table[CELL]).to_pylist():
            same = pc.equal(table[CELL], cell)
            yield cell, self._as_events(table if pc.all(same).as_py() else table.filter(same))

    def _as_events(self, table: pa.Table) -> pa.Table:
        """With the names that they have for the user, and in the types that do not depend on the session."""
        wanted = self._task.events
        columns = table.columns[: len(wanted)]
        fitting = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, wanted, strict=True)]
        return pa.Table.from_arrays(fitting, schema=wanted)

    def _open(self, events: pa.Table) -> Session:
        engine = self._task.engine
        if self._task.estimate:
            engine = replace(engine, estimates=estimate_all(engine.patterns, events, engine.columns))
        return engine.open()

    def _result(self, cell: int, found: pa.Table) -> Iterator[pa.RecordBatch]:
        cells = self._task.cells
        if found.num_rows and cells is not None and cell in cells:
            found = belonging(found, cells[cell])
        if found.num_rows:
            yield from fitted(found, self._task.matches).to_batches()


def gathered(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Small batches put together."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        count += batch.num_rows
        if count >= size:
            yield pa.Table.from_batches(waiting)
            waiting, count = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def belonging(found: pa.Table, span: Span) -> pa.Table:
    """The matches whose window starts in a span of time; of patterns whose windows do not slide, that end in it."""
    when = found["end"]
    if "window_start" in found.column_names:
        when = pc.coalesce(found["window_start"], when)
    ticks = when.cast(pa.int64())
    low, high = span
    mine = pa.scalar(True)
    if low is not None:
        mine = pc.greater_equal(ticks, low)
    if high is not None:
        mine = pc.and_(mine, pc.less(ticks, high))
    return found if isinstance(mine, pa.Scalar) else found.filter(mine)


def fitted(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """The matches with the columns of all patterns, those of others NULL."""
    if found.schema.equals(schema):
        return found
    columns = [
        # An interval may be finer than Spark's microseconds, which are then what is left of it.
        found[field.name].cast(field.type, safe=False) if field.name in found.column_names
        else pa.nulls(found.num_rows, field.type)
        for field in schema
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=schema)
