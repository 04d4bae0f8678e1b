"""Matching a stream: few shards, their rows packed, sessions that live on, and a state from which they can be made."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from cepheid.engine.engine import Engine
from cepheid.language import syntax as s
from cepheid.language.problems import CepheidError
from cepheid.language.reader import read_length
from cepheid.language.values import Interval
from cepheid.pattern.normal import NormalForm
from cepheid.pattern.normalise import normalise
from cepheid.spark.cargo import check_size, packed
from cepheid.spark.columns import arrow_schema, microseconds_of, needed_columns, spark_schema
from cepheid.spark.entrance import entered
from cepheid.spark.groups import shared_attributes
from cepheid.spark.late import make_folder
from cepheid.spark.pack import PACKED, Packer, Target, Unpacker
from cepheid.spark.part import Job
from cepheid.spark.pushdown import any_of, wanted_rows
from cepheid.spark.routes import key_column, key_hash
from cepheid.spark.shard_keys import group_number, shard_keys
from cepheid.spark.stateful import COUNTS, HIGHEST, OUTPUT, PackedJob, ShardProcessor
from cepheid.spark.task import functions_in

METRICS = "cepheid"
"""The name under which a query's progress shows what was counted, if no other is given."""
CLOCK = "clock"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def match_stream(
    engine: Engine,
    df: DataFrame,
    *,
    shards: int | None = None,
    allowed_lateness: str | int | dt.timedelta | None = None,
    late_events: str | None = None,
    metrics: str = METRICS,
) -> DataFrame:
    """The matches of an engine's patterns, which have names and fit the columns, in a stream; append mode.

    ``shards``: among how many the keys are divided; if not said, as many as Spark makes partitions in a shuffle. It
    stays the same for the life of a checkpoint. ``allowed_lateness``: how late an event may come, such as ``"10
    seconds"`` or, where time is a number, a number; not needed if the DataFrame has a watermark on the column of time.
    ``late_events``: a folder to which events that come too late are written, as Parquet, for a second stream to read.
    ``metrics``: the name under which the query's progress shows what was counted.
    """
    count = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1) if shards is None else shards
    job = _StreamJob(engine, df, count, allowed_lateness)
    packed = job.packed()
    if late_events is not None:
        make_folder(df.sparkSession, late_events)
    _use_rocksdb(df.sparkSession)
    processor = ShardProcessor(job.jobs(), _hosts(df.sparkSession), late_events, metrics)
    check_size(df.sparkSession, processor, functions_in(map(normalise, engine.patterns)))
    pushed = packed.groupBy("shard").transformWithStateInPandas(processor, OUTPUT, "append", "EventTime")
    sums = [F.sum(f"`{name}`").alias(name) for name in COUNTS]
    counted = pushed.observe(metrics, *sums, *(F.max(f"`{name}`").alias(name) for name in HIGHEST))
    found = counted.select("packed").where("packed IS NOT NULL")
    return found.mapInArrow(Unpacker(job.matches).run, spark_schema(job.matches))


@dataclass(frozen=True)
class _Group:
    """Patterns whose rows are sent to shards by the same attributes."""

    engine: Engine
    normals: tuple[NormalForm, ...]
    attributes: tuple[str, ...]
    keys: tuple[int, ...]


class _StreamJob:
    def __init__(
        self, engine: Engine, df: DataFrame, shards: int, allowed_lateness: str | int | dt.timedelta | None
    ) -> None:
        self._engine = engine
        self._events = arrow_schema(df.schema)
        self._time = self._events.field(engine.columns.time).type
        self.matches = arrow_schema(spark_schema(engine.output_schema(self._events)))
        frame, self._named = entered(df)
        self._frame = self._with_watermark(frame, df.schema, allowed_lateness)
        self._groups = _groups(engine, shards, self._events)

    # --- time

    def _with_watermark(
        self, frame: DataFrame, schema: t.StructType, lateness: str | int | dt.timedelta | None
    ) -> DataFrame:
        """With a column for Spark's clock, whose watermark is in milliseconds or, where time is a number, in ticks."""
        name = self._engine.columns.time
        has_one = "spark.watermarkDelayMs" in (schema[name].metadata or {})
        if has_one and lateness is None:
            return frame.withColumn(CLOCK, self._named[name])
        if has_one:
            raise ValueError(
                f"the DataFrame has a watermark on {name!r} already, and allowed_lateness={lateness!r} says another; "
                "leave one of them away"
            )
        if _is_negative(lateness):
            raise ValueError(f"allowed_lateness is 0 or more, got {lateness!r}: no event comes before its time")
        if lateness is None:
            raise ValueError(
                "a stream needs to know how late an event may come: allowed_lateness='10 seconds', say, or call "
                f"withWatermark({name!r}, …) on the DataFrame before"
            )
        if pa.types.is_integer(self._time):
            if isinstance(lateness, bool) or not isinstance(lateness, int):
                raise ValueError(f"the times in {name!r} are numbers, and so is allowed_lateness; got {lateness!r}")
            # A tick is a millisecond to Spark, so that its watermark is in ticks.
            return frame.withColumn(CLOCK, F.timestamp_millis(self._named[name])).withWatermark(
                CLOCK, f"{lateness} milliseconds"
            )
        if not isinstance(lateness, (str, dt.timedelta)):
            raise ValueError(f"allowed_lateness is text such as '10 seconds', or a timedelta; got {lateness!r}")
        clock = self._named[name]
        if self._time.tz is None:
            clock = F.timestamp_micros(F.expr(microseconds_of(f"c{self._events.get_field_index(name)}")))
        return frame.withColumn(CLOCK, clock).withWatermark(CLOCK, _interval(lateness))

    # --- rows to shards

    def packed(self) -> DataFrame:
        """A few values for each shard that has events in a micro-batch."""
        columns = [*self._named.values()]
        wanted = [self._wanted(group) for group in self._groups]
        frame = self._frame
        if all(column is not None for column in wanted):
            some = any_of([column for column in wanted if column is not None])
            # The clock is in the condition so that Spark judges it after it has looked at the time of every event:
            # those that no pattern asks for still say how late it is.
            frame = frame.filter(some | (F.col(CLOCK) < F.timestamp_micros(F.lit(-(2**63)))))
        targets = []
        for group, column in zip(self._groups, wanted, strict=True):
            needed = needed_columns(group.engine, group.normals, self._events)
            schema = pa.schema([self._events.field(name) for name in needed])
            shard = len(columns)
            columns.append(self._shard(group))
            apart = column is not None and len(self._groups) > 1
            if apart:
                assert column is not None
                columns.append(F.coalesce(column, F.lit(False)))
            places = tuple(self._events.get_field_index(name) for name in needed)
            targets.append(Target(places, schema, shard, shard + 1 if apart else None, group.keys))
        targets, columns = _pruned(targets, columns)
        selected = frame.select(*(column.alias(f"c{place}") for place, column in enumerate(columns)))
        return selected.mapInArrow(Packer(tuple(targets)).run, PACKED)

    def _wanted(self, group: _Group) -> Column | None:
        return wanted_rows(group.normals, self._engine.columns, self._events, self._named)

    def _shard(self, group: _Group) -> Column:
        if len(group.keys) == 1:
            return F.lit(0)
        hashed = key_hash([key_column(self._named[n], self._events.field(n).type) for n in group.attributes])
        return F.pmod(hashed, F.lit(len(group.keys))).cast("int")

    # --- what is done with them there

    def jobs(self) -> dict[int, PackedJob]:
        found = {}
        for group in self._groups:
            needed = needed_columns(group.engine, group.normals, self._events)
            events = pa.schema([self._events.field(name) for name in needed])
            functions = functions_in(group.normals)
            job = Job(group.engine, events, self.matches, len(group.keys), functions)
            found[group_number(group.attributes)] = PackedJob(packed(job), group.keys)
        return found


def _groups(engine: Engine, shards: int, events: pa.Schema) -> list[_Group]:
    """By the attributes that all events of a match share, whatever the other patterns: these may change."""
    found: dict[tuple[str, ...], list[int]] = {}
    normals = [normalise(pattern) for pattern in engine.patterns]
    for place, normal in enumerate(normals):
        found.setdefault(tuple(sorted(shared_attributes(normal) & set(events.names))), []).append(place)
    return [
        _Group(
            engine.limited_to([engine.patterns[place] for place in places]),
            tuple(normals[place] for place in places),
            attributes,
            tuple(shard_keys(group_number(attributes), shards if attributes else 1)),
        )
        for attributes, places in found.items()
    ]


def _pruned(targets: Sequence[Target], columns: Sequence[Column]) -> tuple[list[Target], list[Column]]:
    """Without the columns that no group needs."""
    used = sorted(
        {place for x in targets for place in (*x.columns, x.shard, *([] if x.wanted is None else [x.wanted]))}
    )
    new = {place: number for number, place in enumerate(used)}
    moved = [
        replace(
            target,
            columns=tuple(new[place] for place in target.columns),
            shard=new[target.shard],
            wanted=None if target.wanted is None else new[target.wanted],
        )
        for target in targets
    ]
    return moved, [columns[place] for place in used]


def _is_negative(lateness: str | int | dt.timedelta | None) -> bool:
    match lateness:
        case str():
            return lateness.lstrip().removeprefix("interval").lstrip().startswith("-")
        case dt.timedelta():
            return lateness < dt.timedelta()
    return lateness is not None and lateness < 0


def _interval(length: str | dt.timedelta) -> str:
    """As Spark reads it: whole milliseconds, rather too many. What only Spark can read stays as it is."""
    if isinstance(length, str):
        try:
            window = read_length(length)
        except CepheidError:
            return length
        if window.kind is not s.WindowKind.TIME:
            return length
        nanoseconds = window.size
    else:
        nanoseconds = Interval.from_timedelta(length).nanoseconds
    return f"{-(-nanoseconds // 1_000_000)} milliseconds"


def _use_rocksdb(spark: SparkSession) -> None:
    """Spark keeps the state of such queries in RocksDB only; queries that run already keep what they have."""
    if "RocksDB" not in (spark.conf.get(_PROVIDER) or ""):
        spark.conf.set(_PROVIDER, _ROCKSDB)


def _hosts(spark: SparkSession) -> int | None:
    """How many processes keep live shards on each machine, if that was said."""
    said = spark.conf.get("spark.cepheid.hosts", None)
    return None if said is None else int(said)
