"""The second half of a batch job: the events of a part of the work in, its matches out. Nothing here knows Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.engine import Engine
from cepheid.engine.sample import estimate_all
from cepheid.engine.session import Session
from cepheid.language import syntax as s
from cepheid.language.functions import DataType, find_function, function_names, register_function
from cepheid.pattern.normal import NormalForm
from cepheid.spark.inbox import Inbox
from cepheid.spark.narrow import widened
from cepheid.spark.pack import from_bytes, settle
from cepheid.spark.slices import Span

BATCH = 65_536
"""Events in a push. Fewer cost more each, since a push has a price of its own."""

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
    """What is done with the events of a shard or slice.

    ``events``: their columns; ``matches``: those of the result, which may be more than these patterns have.
    ``estimate``: look at the first events to choose a plan.
    """

    engine: Engine
    events: pa.Schema
    matches: pa.Schema
    estimate: bool = True
    functions: tuple[UserFunction, ...] = ()

    def start(self, span: Span | None = None) -> Work:
        """``span``: only matches that belong there are wanted."""
        for function in self.functions:
            function.register()
        return Work(self, span)


class Work:
    """A task in progress: a session of the engine."""

    def __init__(self, task: Task, span: Span | None) -> None:
        self._task = task
        self._span = span
        self._session: Session | None = None

    def push(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        """Some events, later ones than before and in the order of time."""
        if not events.num_rows:
            return
        if self._session is None:
            self._session = self._open(events.slice(0, BATCH))
        size = self._session.push_size(BATCH)
        for start in range(0, events.num_rows, size):
            batch = events.slice(start, size)
            times = batch[self._task.engine.columns.time]
            # Where a time is missing, there is no last one; the engine says what is wrong.
            yield from self._result(self._session.push(batch, watermark=None if times.null_count else times[-1]))

    def close(self) -> Iterator[pa.RecordBatch]:
        if self._session is not None:
            yield from self._result(self._session.close())

    def _open(self, events: pa.Table) -> Session:
        engine = self._task.engine
        if self._task.estimate:
            engine = replace(engine, estimates=estimate_all(engine.patterns, events, engine.columns))
        return engine.open()

    def _result(self, found: pa.Table) -> Iterator[pa.RecordBatch]:
        if found.num_rows and self._span is not None:
            found = belonging(found, self._span)
        if found.num_rows:
            yield from fitted(found, self._task.matches).to_batches()


@dataclass(frozen=True)
class Receiver:
    """Opens the parcels of some parts of the work, which come by the time of their first event, and does the work.

    ``tasks``: by the number by which Spark sent it, the task of each part, and the matches that are wanted of it.
    """

    tasks: Mapping[int, tuple[Task, Span | None]]

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        open_parts: dict[int, tuple[Inbox, Work]] = {}
        for part, first, parcel in _parcels(batches):
            # Nothing earlier will come: not here, and not in any other part.
            for inbox, work in open_parts.values():
                yield from work.push(inbox.before(first, BATCH))
            if part not in open_parts:
                task, span = self.tasks[part]
                open_parts[part] = Inbox(task.engine.columns.time, task.events), task.start(span)
            open_parts[part][0].add(widened(from_bytes(parcel)[0], self.tasks[part][0].events))
        for inbox, work in open_parts.values():
            yield from work.push(inbox.rest())
            yield from work.close()


def _parcels(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.Buffer]]:
    for batch in batches:
        parts, firsts, parcels = batch.columns
        for place in pc.indices_nonzero(parcels.is_valid()).to_pylist():  # the others are there for their number
            yield parts[place].as_py(), firsts[place].as_py(), parcels[place].as_buffer()


def belonging(found: pa.Table, span: Span) -> pa.Table:
    """The matches whose window starts in a span of time; of patterns whose windows do not slide, that end in it."""
    when = found["end"]
    if "window_start" in found.column_names:
        when = pc.coalesce(found["window_start"], when)
    ticks = when.cast(pa.int64()).to_numpy()
    low, high = span
    mine = np.ones(len(ticks), dtype=np.bool_)
    if low is not None:
        mine &= ticks >= low
    if high is not None:
        mine &= ticks < high
    return found if mine.all() else found.filter(pa.array(mine))


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
