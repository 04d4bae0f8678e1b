"""Matching in SQL: a table function."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import udtf
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, OrderingColumn, PartitioningColumn, SelectedColumn

from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns, InputError
from cepheid.language.pattern import with_names
from cepheid.language.problems import CepheidError, closest
from cepheid.pattern.normalise import normalise
from cepheid.pattern.read import parse_all
from cepheid.spark.columns import arrow_schema, needed_columns, refuse_dates, spark_schema
from cepheid.spark.groups import shared_attributes
from cepheid.spark.plain_errors import plain_errors
from cepheid.spark.task import BATCH, Task, functions_in, registered_functions

NAME = "cepheid_match"
OPTIONS = ("time", "type", "tie_breaker", "shards")


class CallError(CepheidError, ValueError):
    """The table function was called with what it does not take."""


def register(spark: SparkSession) -> None:
    """Make the table function ``cepheid_match`` known to ``spark.sql``.

    Its arguments are a table and the text of the patterns; ``time``, ``type`` and ``tie_breaker`` name columns, as for
    :func:`cepheid.spark.match`. The table is partitioned by the caller, with the time in ORDER BY, or by the function
    if it is told into how many ``shards``: then the patterns say what may be torn apart. It knows the functions of your
    own that were registered before.

    >>> from cepheid.spark import register, session
    >>> spark = session(cores=1)
    >>> register(spark)
    >>> rows = [(1, "A", "ann"), (2, "B", "bob"), (3, "B", "ann")]
    >>> spark.createDataFrame(rows, "ts long, type string, user string").createOrReplaceTempView("events")
    >>> spark.sql('''
    ...     SELECT * FROM cepheid_match(
    ...         TABLE(events) PARTITION BY user ORDER BY ts,
    ...         pattern => 'PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.user'
    ...     )
    ... ''').collect()
    [Row(pattern='pattern_1', start=1, end=3, user='ann')]
    """
    functions = registered_functions()

    class WithFunctions(TableFunction):
        @staticmethod
        def analyze(events: AnalyzeArgument, pattern: AnalyzeArgument, **options: AnalyzeArgument) -> AnalyzeResult:
            for function in functions:
                function.register()
            return analysis(events, pattern, options)

    spark.udtf.register(NAME, udtf(WithFunctions))  # type: ignore[arg-type]


@dataclass
class Analysis(AnalyzeResult):
    """What is known of a call before it runs: the columns of its result, and the work to do."""

    task: Task | None = None
    ticks: tuple[str, ...] = field(default_factory=tuple)


class TableFunction:
    """What Spark calls, with the rows of one partition of the table."""

    def __init__(self, found: Analysis) -> None:
        assert found.task is not None
        self._events, self._time = found.task.events, found.task.engine.columns.time
        self._ticks = frozenset(found.ticks)
        self._work = found.task.start()
        self._rows: list[Row] = []
        self._last: int | None = None

    def eval(self, events: Row, *_: object, **__: object) -> Iterable[tuple[object, ...]]:
        if not self._rows and self._last is None:
            _refuse_loose_rows(inspect.currentframe())
        self._rows.append(events)
        return self._found() if len(self._rows) == BATCH else ()

    def terminate(self) -> Iterator[tuple[object, ...]]:
        if self._rows:
            yield from self._found()
        yield from _tuples(self._work.close())

    def _found(self) -> Iterator[tuple[object, ...]]:
        with plain_errors():
            yield from _tuples(self._work.push(self._table()))

    def _table(self) -> pa.Table:
        """The rows that came since the last table, as Arrow."""
        columns = zip(self._events, zip(*self._rows, strict=True), strict=True)
        self._rows = []
        arrays = [_array(values, f.type, ticks=f.name in self._ticks) for f, values in columns]
        found = pa.Table.from_arrays(arrays, schema=self._events)
        self._check_order(found[self._time].combine_chunks().cast(pa.int64()))
        return found

    def _check_order(self, times: pa.Array) -> None:
        before = pa.array([self._last if self._last is not None else times[0].as_py()], pa.int64())
        earlier = pa.concat_arrays([before, times.slice(0, len(times) - 1)])
        if pc.any(pc.less(times, earlier)).as_py():
            raise InputError(
                f"the rows are not in the order of time: write TABLE(…) PARTITION BY … ORDER BY ({self._time})"
            )
        self._last = times[-1].as_py()


def analysis(events: AnalyzeArgument, pattern: AnalyzeArgument, options: dict[str, AnalyzeArgument]) -> Analysis:
    """The columns of the result and what has to be done for it; an error says all that is wrong with the call."""
    if not events.isTable or not isinstance(events.dataType, StructType):
        raise CallError(f"the first argument of {NAME} is a table: TABLE(events) PARTITION BY … ORDER BY (…)")
    text = pattern.value
    if not isinstance(text, str):
        raise CallError(f"the second argument of {NAME} is the text of a pattern, a string that is no column")
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        hints = [closest(name, OPTIONS) or f"there are {', '.join(OPTIONS)}" for name in unknown]
        raise CallError("; ".join(f"{NAME} has no argument {n!r}: {h}" for n, h in zip(unknown, hints, strict=True)))
    given = {name: argument.value for name, argument in options.items()}
    shards = given.pop("shards", None)
    if shards is not None and (isinstance(shards, bool) or not isinstance(shards, int) or shards < 1):
        raise CallError(f"shards is a whole number, 1 or more, got {shards!r}")
    for name, value in given.items():
        if not isinstance(value, str) and (value is not None or name == "time"):
            raise CallError(f"{name} is the name of a column, as text: {name} => 'name'; got {value!r}")
    columns = EventColumns(**given)  # type: ignore[arg-type]
    engine = Engine(with_names(parse_all(text)), columns)
    schema = arrow_schema(events.dataType)
    refuse_dates(schema, columns)
    normals = [normalise(p) for p in engine.patterns]
    needed = needed_columns(engine, normals, schema)
    matches = spark_schema(engine.output_schema(schema))
    ticks = tuple(name for name in needed if schema.field(name).type == pa.timestamp("us", "UTC"))
    found = Analysis(
        matches,
        select=[SelectedColumn(_selected(name, name in ticks), name) for name in needed],
        task=Task(
            engine,
            pa.schema([schema.field(name) for name in needed]),
            arrow_schema(matches),
            functions=functions_in(normals),
        ),
        ticks=ticks,
    )
    if shards is not None:
        shared = frozenset.intersection(*map(shared_attributes, normals)) & set(schema.names)
        keys = [_key(name, schema.field(name).type) for name in schema.names if name in shared]
        found.orderBy = [OrderingColumn(_quoted(columns.time))]
        found.withSinglePartition = not keys
        found.partitionBy = [PartitioningColumn(f"pmod(hash({', '.join(keys)}), {shards})")] if keys else []
    return found


def _selected(name: str, ticks: bool) -> str:
    """A time with a zone comes as a number: as a value of Python's it would be in the zone of the worker."""
    return f"unix_micros({_quoted(name)})" if ticks else _quoted(name)


def _key(name: str, type_: pa.DataType) -> str:
    """As :func:`cepheid.spark.routes.key_column`: NaN is NULL, -0.0 is 0.0."""
    key = _quoted(name)
    if pa.types.is_decimal(type_):
        key = f"CAST({key} AS DOUBLE)"
    if pa.types.is_decimal(type_) or pa.types.is_floating(type_):
        return f"CASE WHEN NOT isnan({key}) THEN {key} + 0.0D END"
    return key


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _array(values: Iterable[Any], type_: pa.DataType, *, ticks: bool) -> pa.Array:
    if ticks:
        return pa.array(values, pa.int64()).view(type_)
    if pa.types.is_nested(type_):
        values = [_plain(value, type_) for value in values]
    return pa.array(values, type_)


def _tuples(found: Iterable[pa.RecordBatch]) -> Iterator[tuple[object, ...]]:
    for batch in found:
        # Spark takes maps as dictionaries, wherever they are.
        yield from zip(*(column.to_pylist(maps_as_pydicts="strict") for column in batch.columns), strict=True)


def _plain(value: Any, type_: pa.DataType) -> Any:
    """A value of Spark's as Arrow takes it. Times with a zone come in that of the worker, and do not say so."""
    if value is None:
        return None
    if pa.types.is_struct(type_):
        return {field.name: _plain(part, field.type) for field, part in zip(type_, value, strict=True)}
    if pa.types.is_list(type_):
        return [_plain(part, type_.value_type) for part in value]
    if pa.types.is_map(type_):
        return [(_plain(key, type_.key_type), _plain(part, type_.item_type)) for key, part in value.items()]
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return value.astimezone(dt.timezone.utc)
    return value


def _refuse_loose_rows(frame: Any) -> None:
    """Without a partitioning, Spark hands out the rows of each task as if they were a table of their own.

    A call does not say how its table is partitioned. Spark's worker does: it has an object that tells partitions apart.
    """
    context = TaskContext.get()
    if context is None or context.partitionId() == 0:
        return
    while frame is not None:
        if "WithPartition" in type(frame.f_locals.get("self")).__name__:
            return
        frame = frame.f_back
    raise CallError(
        f"{NAME} was called with a table that lies in several pieces, and would match each by itself. Write "
        "TABLE(…) PARTITION BY … ORDER BY (…), TABLE(…) WITH SINGLE PARTITION ORDER BY (…), or shards => 8."
    )
