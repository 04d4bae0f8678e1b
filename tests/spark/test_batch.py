"""Spark finds in a DataFrame what one machine finds in the same table, however the rows are spread."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings

import cepheid
from tests.contracts.test_engine_is_exact import Case, canonical, expected, schema
from tests.spark.long import ALL
from tests.strategies import patterns_with_streams

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from cepheid.engine.ingest import EventColumns
from cepheid.pattern.normalise import normalise
from cepheid.spark import batch, match, sizing
from cepheid.spark.batch import _Job
from cepheid.spark.columns import arrow_schema
from cepheid.spark.pushdown import wanted_rows
from cepheid.spark.sizing import parallelism
from cepheid.spark.spread import spread
from cepheid.spark.type_numbers import can_be_stamped, types_by_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = dt.datetime(2024, 5, 17, 9, 30)


def stream(count: int = 400, keys: int = 7, seed: int = 0) -> pa.Table:
    """Events with ties, missing keys and missing values."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, count, count)),
            "type": np.array(list("ABCD"))[rng.integers(0, 4, count)],
            "x": pa.array(rng.random(count), mask=rng.random(count) < 0.1),
            "k": pa.array(rng.integers(0, keys, count), mask=rng.random(count) < 0.1),
            "seq": np.arange(count),
        }
    )


def same(found: DataFrame, table: pa.Table, patterns: Any, **options: Any) -> int:
    """Asserts that the matches are those of one machine; how many there are."""
    rows, wanted = found.toArrow(), cepheid.match(patterns, table, **options)
    assert rows.schema.names == wanted.schema.names
    assert canonical(rows.to_pylist()) == canonical(wanted.to_pylist())
    return wanted.num_rows


def same_here(spark: SparkSession, patterns: Any, table: pa.Table, shards: int | None = 3, **options: Any) -> int:
    # Two pieces, of which neither is in the order of time.
    frame = spark.createDataFrame(table.take(np.random.default_rng(1).permutation(table.num_rows))).coalesce(2)
    return same(match(patterns, frame, shards=shards, **options), table, patterns, **options)


@pytest.mark.parametrize(
    "pattern",
    [
        "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 10",
        "PATTERN SEQ(A a, NOT(C c), B b) WHERE c.k = a.k AND a.k = b.k WITHIN 30 RETURN a.x, b.k",
        "PATTERN AND(A a, B b, NOT(C c)) WHERE a.x < 0.2 AND b.x > 0.8 AND c.x > 0.5 WITHIN 6",
        "PATTERN SEQ(A a, KL(B b, 1, 3)) USING skip_till_next WHERE a.x < 0.5 WITHIN 9",
        "PATTERN SEQ(A a, B b) USING strict WITHIN 5",
        "PATTERN SEQ(A a, KL(B b, 2)) USING skip_till_any CONSUME WITHIN 6 SLIDE 4 RETURN b.x",
        "PATTERN SEQ(A a, B b) USING skip_till_any CONSUME WITHIN 10",
        "PATTERN SEQ(A a, KL(B b)) USING skip_till_next PARTITION BY k WITHIN 40",
        "PATTERN SEQ(A a, B b) USING strict CONSUME PARTITION BY k WITHIN 40",
    ],
)
def test_the_matches_of_one_machine(spark: SparkSession, pattern: str) -> None:
    assert same_here(spark, pattern, stream())


def test_windows_of_a_number_of_events(spark: SparkSession) -> None:
    for partition in ("", "PARTITION BY k"):
        pattern = f"PATTERN SEQ(A a, B b) WHERE a.x < b.x {partition} WITHIN 4 events"
        assert same_here(spark, pattern, stream(), tie_breaker="seq")


@settings(max_examples=30 if ALL else 5)
@given(case=patterns_with_streams())
def test_any_pattern(spark: SparkSession, case: Case) -> None:
    pattern, events, options = case
    frame = spark.createDataFrame(pa.Table.from_pylist(events, schema(pattern)))
    found = match(pattern, frame, shards=2, **options).toArrow().to_pylist()
    assert canonical(without_zone(found)) == expected(case)


def without_zone(value: Any) -> Any:
    """Spark's timestamps are in UTC here, and the others have no zone."""
    match value:
        case dt.datetime():
            return value.replace(tzinfo=None)
        case dict():
            return {key: without_zone(part) for key, part in value.items()}
        case list():
            return [without_zone(part) for part in value]
    return value


def test_patterns_that_are_torn_apart_in_different_ways(spark: SparkSession) -> None:
    patterns = [
        "NAME by_key PATTERN SEQ(A a, B b) WHERE a.x < b.x PARTITION BY k WITHIN 20 RETURN a.k, b.x - a.x AS gain",
        "NAME by_key_and_x PATTERN AND(C a, D b) PARTITION BY k, x WITHIN 100 RETURN a.k",
        "NAME everywhere PATTERN SEQ(A a, B b) WHERE a.x < 0.1 WITHIN 5 SLIDE 3 RETURN b.x AS found",
        "NAME used PATTERN SEQ(C a, D b) USING skip_till_any CONSUME WITHIN 5 RETURN b.x AS found",
    ]
    assert same_here(spark, patterns, stream()) > 50


def test_with_nothing_said_about_shards(spark: SparkSession) -> None:
    for pattern in ("PATTERN SEQ(A a, B b) WITHIN 3", "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 20"):
        assert same_here(spark, pattern, stream(), shards=None)


def test_no_events(spark: SparkSession) -> None:
    nothing = stream().slice(0, 0)
    for pattern in ("PATTERN SEQ(A a, B b) WITHIN 3", "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 3"):
        assert same_here(spark, pattern, nothing) == 0
        assert same_here(spark, pattern, nothing, shards=None) == 0


# --- keys


def test_keys_that_are_equal_to_the_engine_meet(spark: SparkSession) -> None:
    odd = [0.0, -0.0, float("nan"), None, 1.5]
    rows = [{"ts": i, "type": "AB"[i // 5 % 2], "k": odd[i % 5], "d": Decimal(i % 2) / 4} for i in range(10)]
    table = pa.Table.from_pylist(
        rows, pa.schema({"ts": "int64", "type": "string", "k": "double", "d": pa.decimal128(9, 2)})
    )
    frame = spark.createDataFrame(table)
    for pattern in ("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 20", "PATTERN SEQ(A a, B b) PARTITION BY d WITHIN 20"):
        assert same(match(pattern, frame, shards=5), table, pattern) >= 5


def test_a_key_with_very_many_rows_is_sliced(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "FEWEST", 20)
    monkeypatch.setattr(batch, "parallelism", lambda session: 3)
    rng = np.random.default_rng(5)
    table = stream(600, keys=50)
    heavy = np.where(rng.random(600) < 0.7, 7, table["k"].fill_null(3).to_numpy())
    table = table.set_column(3, "k", pa.array(heavy, mask=rng.random(600) < 0.2))
    frame = spark.createDataFrame(table)
    pattern = "PATTERN SEQ(A a, B b, NOT(C c)) WHERE a.x < b.x PARTITION BY k WITHIN 5"
    engine = cepheid.Engine([cepheid.parse(pattern).named("pattern_1")])
    (part,) = _Job(engine, frame, None, True).parts()
    assert [len(slices) > 1 for slices in part.route.slices.values()] == [True, True]  # the key 7, and rows without one
    (part,) = _Job(engine, frame, 4, True).parts()
    assert part.route.shards == 4
    assert list(part.route.slices) == [7]
    for shards in (None, 4):
        assert same(match(pattern, frame, shards=shards), table, pattern)
    both = [pattern, "NAME used PATTERN SEQ(A a, D b) USING skip_till_any CONSUME PARTITION BY k WITHIN 5"]
    assert same(match(both, frame), table, both)


@pytest.mark.parametrize("using", ["", "USING skip_till_any CONSUME"])
def test_many_rows_are_in_many_shards_with_one_core_too(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, using: str
) -> None:
    monkeypatch.setattr(batch, "FEWEST", 20)
    monkeypatch.setattr(batch, "HANDY", 100)
    monkeypatch.setattr(sizing, "EVERY", 1)
    monkeypatch.setattr(batch, "parallelism", lambda session: 1)
    table = stream(600, keys=50)
    frame = spark.createDataFrame(table)
    pattern = f"PATTERN SEQ(A a, B b) {using} PARTITION BY k WITHIN 90"
    engine = cepheid.Engine([cepheid.parse(pattern).named("pattern_1")])
    (part,) = _Job(engine, frame, None, True).parts()
    wanted = table.filter(pc.is_in(table["type"], pa.array(["A", "B"]))).num_rows
    assert part.route.shards == -(-wanted // 100) > 1
    assert not part.route.slices
    assert same(match(pattern, frame), table, pattern) > 10


def test_parts_of_the_work_have_partitions_of_their_own(spark: SparkSession) -> None:
    for count in (1, 3, 8, 50):
        numbers = spark.createDataFrame([(n,) for n in spread(count)], "n long")
        places = numbers.select(F.expr(f"pmod(hash(n), {count})")).toArrow()[0].to_pylist()
        assert places == list(range(count))


def test_parallelism(spark: SparkSession) -> None:
    assert parallelism(spark) == spark.sparkContext.defaultParallelism


# --- times and types


def test_times_with_and_without_a_zone(spark: SparkSession) -> None:
    # The clocks go back in this zone while the events happen: an hour comes twice.
    begin = dt.datetime(2024, 11, 3, 4, 0)
    table = stream(200)
    micros = [
        (begin - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) + 60_000_000 * t
        for t in table["ts"].to_pylist()
    ]
    pattern = "PATTERN SEQ(A a, B b) WHERE a.x < b.x AND b.ts - a.ts > 1 minute WITHIN 5 minutes RETURN b.ts - a.ts AS took, a"
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for type_ in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            timed = table.set_column(0, "ts", pa.array(micros, type_))
            kind = "timestamp_ntz" if type_.tz is None else "timestamp"
            frame = spark.createDataFrame(timed, f"ts {kind}, type string, x double, k long, seq long")
            found = match(pattern, frame, shards=4)
            rows, wanted = found.toArrow(), cepheid.match(pattern, timed)
            for column in ("start", "end", "took"):
                assert sorted(rows[column].cast("int64").to_pylist()) == sorted(
                    wanted[column].cast("int64").to_pylist()
                )
            assert sorted(row["a"]["seq"] for row in rows.to_pylist()) == sorted(
                row["a"]["seq"] for row in wanted.to_pylist()
            )
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")


def test_columns_of_all_kinds_and_names(spark: SparkSession) -> None:
    rows = [
        {
            "a.b": place,
            "the type": "AB"[place % 2],
            "X": place % 3,
            "day": dt.date(2024, 1, 1 + place),
            "price": Decimal(place) / 8,
            "list": [1.0, 2.0 + place],
            "nested": {"a": place, "b": ["x", None]},
            "map": [("k", place)],
            "raw": bytes([place]),
            "took": dt.timedelta(seconds=place),
            "cell": place % 2 == 0,
            "c0": None if place == 3 else "ü`",
        }
        for place in range(8)
    ]
    kinds = {
        "a.b": pa.int32(), "the type": pa.string(), "X": pa.int64(), "day": pa.date32(), "price": pa.decimal128(10, 3),
        "list": pa.list_(pa.float64()), "nested": pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())}),
        "map": pa.map_(pa.string(), pa.int64()), "raw": pa.binary(), "took": pa.duration("us"), "cell": pa.bool_(), "c0": pa.string(),
    }  # fmt: skip
    table = pa.Table.from_pylist(rows, pa.schema(kinds))
    frame = spark.createDataFrame(table)
    options: dict[str, Any] = {"time": "a.b", "type": "the type"}
    assert same(
        match("PATTERN SEQ(A a, KL(B b, 2)) WITHIN 5", frame, shards=2, **options),
        table,
        "PATTERN SEQ(A a, KL(B b, 2)) WITHIN 5",
        **options,
    )
    pattern = "PATTERN SEQ(A a, B b) PARTITION BY X WITHIN 5 RETURN a.day, b.price, b.c0, a.map, b.took - a.took AS longer, NULL AS nothing"
    assert same(match(pattern, frame, shards=2, **options), table, pattern, **options)


@pytest.mark.skipif(not hasattr(t, "TimeType"), reason="this Spark has no TIME")
def test_times_of_day_are_given_out(spark: SparkSession) -> None:
    rows = "VALUES (1L, 'A', TIME'10:11:12.000013'), (2L, 'B', NULL) AS t(ts, type, at)"
    frame = spark.sql(f"SELECT * FROM {rows}")
    (found,) = match("PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.at AS first, b.at AS last", frame).collect()
    assert (found.first, found.last) == (dt.time(10, 11, 12, 13), None)


def test_what_arrow_does_not_have_is_left_alone(spark: SparkSession) -> None:
    frame = spark.range(4).selectExpr("id AS ts", "'A' AS type", "INTERVAL '1' YEAR AS odd", "id AS x")
    assert match("PATTERN A a WITHIN 5 RETURN a.x", frame, shards=1).count() == 4
    with pytest.raises(cepheid.SchemaError, match=r"odd.*RETURN"):
        match("PATTERN A a WITHIN 5", frame)


def test_functions_of_the_caller_get_to_the_workers(spark: SparkSession) -> None:
    offset = 0.25
    cepheid.register_function("above_by", lambda x, y: y - x - offset)
    assert same_here(
        spark, "PATTERN SEQ(A a, B b) WHERE above_by(a.x, b.x) > 0 WITHIN 4 RETURN above_by(a.x, b.x) AS z", stream()
    )


def test_options_that_change_how_but_not_what(spark: SparkSession) -> None:
    pattern = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x PARTITION BY k WITHIN 40"
    for options in (
        {"adapt": True},
        {"adapt": True, "check_every": 20},
        {"adapt": True, "check_every": "20 events"},
        {"adapt": cepheid.Threshold(0.1), "check_every": 10, "migrate": "parallel"},
        {"planner": "dp_bushy", "negation": "post"},
        {"order": ["c", "a", "b"]},
    ):
        assert same_here(spark, pattern, stream(), shards=2, **options)


# --- only what is needed, and only when


def test_rows_that_no_pattern_can_use_stay_behind(spark: SparkSession) -> None:
    rows = [
        (t, type_, x, y)
        for t, (type_, x, y) in enumerate(
            [("A", 1, 0.5), ("A", 7, 0.5), ("B", 1, float("nan")), ("B", 1, 9.0), ("C", 1, 1.0), ("D", 7, 0.5)]
        )
    ]
    frame = spark.createDataFrame([*rows, (None, "E", 1, 1.0)], "ts long, type string, x long, y double")
    named = {name: F.col(name) for name in frame.columns}

    def left(*texts: str, type: str | None = "type") -> list[tuple[Any, ...]]:
        columns = cepheid.engine.ingest.EventColumns(type=type)
        normals = [normalise(cepheid.parse(text)) for text in texts]
        wanted = wanted_rows(normals, columns, arrow_schema(frame.schema), named)
        return [(row.ts, row.type) for row in (frame if wanted is None else frame.filter(wanted)).collect()]

    everything = [*((t, type_) for t, type_, _, _ in rows), (None, "E")]
    assert left("PATTERN SEQ(A a, B b) WITHIN 5") == [(0, "A"), (1, "A"), (2, "B"), (3, "B"), (None, "E")]
    assert left("PATTERN SEQ(A a, B b, NOT(C c)) WHERE a.x > 5 AND b.y < 10 AND c.x <> 1 WITHIN 5") == [
        (1, "A"),
        (3, "B"),
        (None, "E"),
    ]
    assert left("PATTERN SEQ(A a, A b) WHERE a.x = 1 AND b.x IN (8, 9) WITHIN 5", "PATTERN D d WITHIN 3") == [
        (0, "A"),
        (5, "D"),
        (None, "E"),
    ]
    assert left("PATTERN SEQ(A a, B b) WHERE a.x > 5.5 AND (b.y > 5 OR b.type = 'C') WITHIN 5") == [
        (0, "A"),
        (1, "A"),
        (2, "B"),
        (3, "B"),
        (None, "E"),
    ]
    assert left("PATTERN A a WHERE a.x > 5 WITHIN 5", "PATTERN A a USING strict WITHIN 5") == everything
    assert left("PATTERN A a WHERE a.x > 5 WITHIN 5 events") == everything
    assert left("PATTERN A a WHERE a.x > 5 WITHIN 5", type=None) == everything


def test_many_conditions_are_not_too_deep_for_spark(spark: SparkSession) -> None:
    """Of very many, the types of the events are asked for, and no more."""
    frame = spark.createDataFrame(
        [(1, "A", 7), (2, "A", 10**6), (3, "B", 7), (4, "C", 7)], "ts long, type string, x long"
    )
    named = {name: F.col(name) for name in frame.columns}

    def left(*texts: str) -> list[int]:
        normals = [normalise(cepheid.parse(text)) for text in texts]
        wanted = wanted_rows(normals, EventColumns(), arrow_schema(frame.schema), named)
        assert wanted is not None
        return [row.ts for row in frame.filter(wanted).collect()]

    numbers = range(5, 2005)
    assert left(f"PATTERN A a WHERE a.x IN ({', '.join(map(str, numbers))}) WITHIN 5") == [1]
    assert left(f"PATTERN A a WHERE {' OR '.join(f'a.x = {n}' for n in numbers[:250])} WITHIN 5") == [1]
    assert left(*(f"PATTERN A a WHERE a.x = {n} WITHIN 5" for n in numbers[:250])) == [1]
    patterns = [f"PATTERN SEQ(A a, B b) WHERE a.x = {n} AND b.x = 8 WITHIN 5" for n in numbers[:250]]
    assert left(*patterns, "PATTERN C c WHERE c.x = 8 WITHIN 5") == [1]
    assert left(*(f"PATTERN SEQ(A a, C c) WHERE a.x = {n} AND c.x = 8 WITHIN 5" for n in numbers[:500])) == [1, 2]
    either = " OR ".join(f"a.x = {n}" for n in numbers[:500])
    assert left(f"PATTERN SEQ(A a, C c) WHERE ({either}) AND c.x = 8 WITHIN 5") == [1, 2]


def test_nothing_runs_before_it_is_asked_for(spark: SparkSession) -> None:
    def fail(rows: Any) -> Any:
        raise AssertionError("this ran")
        yield rows

    frame = spark.createDataFrame(stream()).mapInArrow(fail, "ts long, type string, x double, k long, seq long")
    found = match("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 5 RETURN a.x, b.k AS other", frame, shards=1)
    assert found.schema.simpleString() == "struct<pattern:string,start:bigint,end:bigint,x:double,other:bigint>"
    assert "[c0" not in found.columns
    with pytest.raises(PySparkException, match="this ran"):
        found.collect()


# --- what is wrong is said


def test_all_problems_at_once(spark: SparkSession) -> None:
    frame = spark.createDataFrame(stream())
    with pytest.raises(cepheid.PatternError) as error:
        match(["PATTERN SEQ(A a, B b) WHERE a.xx < b.x PARTITION BY nobody WITHIN 5"], frame)
    assert len(error.value.problems) == 2
    with pytest.raises(cepheid.SchemaError, match=r"time='when'.*\n.*type='kind'"):
        match("PATTERN A a WITHIN 5", frame, time="when", type="kind")
    with pytest.raises(ValueError, match="shards is 1 or more, got 0"):
        match("PATTERN A a WITHIN 5", frame, shards=0)
    with pytest.raises(ValueError, match="planner is 'auto' or one of"):
        match("PATTERN A a WITHIN 5", frame, planner="best")
    with pytest.raises(ValueError, match="adapt is 'static', True, or a policy"):
        match("PATTERN A a WITHIN 5", frame, adapt="always")
    with pytest.raises(ValueError, match="late_events is for streams"):
        match("PATTERN A a WITHIN 5", frame, late_events="late")
    with pytest.raises(ValueError, match="allowed_lateness is for streams"):
        match("PATTERN A a WITHIN 5", frame, allowed_lateness="banana")
    with pytest.raises(ValueError, match="metrics is for streams"):
        match("PATTERN A a WITHIN 5", frame, metrics="fraud")
    for shards in ("8", 2.5, True):
        with pytest.raises(TypeError, match=f"shards is a whole number, 1 or more, got {shards!r}"):
            match("PATTERN A a WITHIN 5", frame, shards=shards)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"df is a DataFrame of Spark's, got a pyarrow.*Table"):
        match("PATTERN A a WITHIN 5", stream())
    with pytest.raises(cepheid.SchemaError, match="several columns are called 'x'"):
        match("PATTERN A a WITHIN 5", frame.select("*", "x"))
    with pytest.raises(cepheid.SchemaError, match="dates"):
        match("PATTERN A a WITHIN 5 days", frame.withColumn("ts", F.lit(dt.date(2024, 1, 1))))


def test_events_without_a_time(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "A"), (None, "Z")], "ts long, type string")
    for shards in (1, 2):
        found = match("PATTERN A a WITHIN 5", frame, shards=shards)
        with pytest.raises(PySparkException, match="1 of 2 events have no time: column 'ts' is NULL"):
            found.collect()


def test_the_type_comes_with_the_time() -> None:
    def stamped(time: pa.DataType, **columns: Any) -> bool:
        return can_be_stamped(EventColumns(**columns), pa.schema({"ts": time, "type": pa.string(), "seq": pa.int64()}))

    assert stamped(pa.timestamp("us", "UTC"))
    assert not stamped(pa.timestamp("us", "UTC"), tie_breaker="seq")
    assert not stamped(pa.timestamp("us"))
    assert not stamped(pa.int64())


@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize("key", ["", "PARTITION BY k"])
def test_time_stamps_on_both_sides_of_1970(spark: SparkSession, zone: str | None, key: str) -> None:
    table = stream()
    times = pa.array(1_000_000 * (table["ts"].to_numpy() - 200) + 7, pa.timestamp("us", zone))
    table = table.set_column(0, "ts", times)
    pattern = f"PATTERN SEQ(A a, NOT(B b), C c) {key} WITHIN 5 seconds RETURN a.seq AS first, c.seq AS last, c.ts"
    frame = spark.createDataFrame(table)
    frame = frame if zone else frame.withColumn("ts", F.col("ts").cast("timestamp_ntz"))
    assert same(match(pattern, frame, shards=3 if key else None), table, pattern) > 10


def test_time_stamps_that_are_missing_or_too_far_away(spark: SparkSession) -> None:
    found = spark.sql(
        "SELECT timestamp_micros(n) AS ts, 'A' AS type FROM VALUES (0L), (300000000000000000L), (NULL) AS t(n)"
    )
    with pytest.raises(PySparkException, match="2 of 3 events have no time: column 'ts' is NULL or after the year"):
        match("PATTERN A a WITHIN 5 days RETURN 1 AS one", found, shards=1).collect()


def test_types_are_numbered_where_only_the_patterns_look_at_them() -> None:
    columns = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.float64()})

    def numbered(pattern: str, columns: pa.Schema = columns) -> tuple[str, ...]:
        parsed = cepheid.parse(pattern)
        return types_by_number(cepheid.Engine([parsed]), [cepheid.normalise(parsed)], columns)

    assert numbered("PATTERN SEQ(B a, NOT(C c), A b) WITHIN 5 RETURN a.x") == ("B", "A", "C")
    assert numbered("PATTERN SEQ(A a, B b) WITHIN 5") == ()
    assert numbered("PATTERN SEQ(A a, B b) WHERE a.type < b.type WITHIN 5 RETURN a.x") == ()
    assert numbered("PATTERN SEQ(A a, B b) PARTITION BY type WITHIN 5 RETURN a.x") == ()
    assert numbered("PATTERN SEQ(A a, B b) USING skip_till_any CONSUME WITHIN 5 RETURN a.x") == ()
    assert numbered("PATTERN SEQ(A a, KL(B b)) WITHIN 5 RETURN b.x") == ()
    assert numbered("PATTERN SEQ(A a, KL(B b)) WITHIN 5 RETURN SUM(b.x) AS x") == ("A", "B")
    assert numbered("PATTERN SEQ(A a, B b) USING strict WITHIN 5 RETURN a.x") == ()
    integers = columns.set(1, pa.field("type", pa.int64()))
    assert numbered("PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.x", integers) == ()
    many = ", ".join(f"T{n} t{n}" for n in range(40))
    assert numbered(f"PATTERN SEQ({many}) WITHIN 5 RETURN t1.x") == ()


@pytest.mark.parametrize("shards", [None, 2])
def test_text_is_compared_by_its_bytes_whatever_its_collation(spark: SparkSession, shards: int | None) -> None:
    table = pa.table(
        {
            "ts": [1, 2, 3, 4, 5, 6],
            "type": ["A", "a", "B", "b", "A", "B"],
            "k": ["x", "x", "X", "x", "é", "é"],
            "tags": [["A"], ["a"], ["A"], ["a"], [], []],
        }
    )
    collated = spark.createDataFrame(table).selectExpr(
        "ts", "type COLLATE UTF8_LCASE AS type", "k COLLATE UNICODE_CI_AI AS k",
        "transform(tags, tag -> tag COLLATE UTF8_LCASE) AS tags",
    )  # fmt: skip
    for pattern in (
        "PATTERN SEQ(A a, B b) WITHIN 9 RETURN a.ts AS first, b.ts AS last",
        "PATTERN SEQ(A a, B b) WHERE a.k = 'x' WITHIN 9 RETURN a.ts AS first, b.ts AS last, b.tags",
        "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 9",
    ):
        assert same(match(pattern, collated, shards=shards), table, pattern) > 0
