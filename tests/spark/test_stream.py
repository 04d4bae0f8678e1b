"""Streams: whatever the cut into micro-batches and the order of arrival, the matches of the same events in a table."""

from __future__ import annotations

import datetime as dt
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cepheid
from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from tests.contracts.test_engine_is_exact import canonical
from tests.spark.long import ALL, long
from tests.strategies import patterns, streams

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from cepheid.spark.stream import _interval

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
START = dt.datetime(2024, 5, 17, tzinfo=dt.timezone.utc)
NEVER = "Never"
"""A type that no pattern asks for. An event of it, far behind all others, says that these are over."""

PATTERNS = """
NAME followed PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x PARTITION BY k WITHIN 30 seconds
RETURN a, b, c;
NAME not_between PATTERN SEQ(A a, NOT(B n), C c) WHERE n.x > a.x PARTITION BY k WITHIN 20 seconds
RETURN a AS a1, c AS c1;
NAME not_after PATTERN SEQ(A a, B b, NOT(C n)) PARTITION BY k WITHIN 10 seconds RETURN a AS a2, b AS b2;
NAME growing PATTERN SEQ(A a, KL(B b, 2, 3)) WHERE b[i].x > b[i-1].x PARTITION BY k WITHIN 20 seconds
RETURN a AS a3, COUNT(b) AS n, b.x AS each;
NAME next PATTERN SEQ(A a, KL(B b), C c) USING skip_till_next PARTITION BY k WITHIN 20 seconds
RETURN a AS a4, SUM(b.x) AS total, c AS c4;
NAME straight PATTERN SEQ(A a, B b) USING strict PARTITION BY k WITHIN 20 seconds RETURN a AS a5, b AS b5;
NAME sliding PATTERN SEQ(A a, B b) WHERE a.x = b.x PARTITION BY k WITHIN 10 seconds SLIDE 5 seconds
RETURN a AS a6, b AS b6;
NAME counted PATTERN SEQ(A a, C c) PARTITION BY k WITHIN 4 events RETURN a AS a7, c AS c7;
NAME used PATTERN SEQ(A a, B b) USING skip_till_any CONSUME PARTITION BY k WITHIN 20 seconds RETURN a AS a8, b AS b8;
NAME anywhere PATTERN SEQ(A a, B b) WHERE a.x = 0 AND b.x = 0 AND a.k <> b.k WITHIN 5 seconds RETURN a AS a9, b AS b9;
NAME linked PATTERN AND(A a, C c) WHERE a.x = c.x AND a.k = c.k WITHIN 5 seconds RETURN a.x AS x10, c.seq AS seq10
"""


def made_events(count: int, seed: int = 0) -> list[Row]:
    """With equal times, missing values and a tie-breaker."""
    rng = random.Random(seed)
    events: list[Row] = [
        {
            "ts": START + dt.timedelta(milliseconds=500 * rng.randrange(count)),
            "type": rng.choice("AABBCX"),
            "k": rng.choice(["p", "q", "r", None]),
            "x": rng.choice([0, 1, 2, 3, None]),
        }
        for _ in range(count)
    ]
    return [{**event, "seq": place} for place, event in enumerate(sorted(events, key=lambda event: event["ts"]))]


SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "type": pa.string(), "k": pa.string(), "x": pa.int64(), "seq": pa.int64()}
)


def shuffled(events: Sequence[Row], lateness: Any, seed: int = 0) -> list[Row]:
    """In an order in which none is more than ``lateness`` behind another."""
    rng = random.Random(seed)
    return sorted(events, key=lambda event: event["ts"] + rng.random() * lateness)


class Stream:
    """A folder of files, each of which is a micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path, schema: pa.Schema) -> None:
        self.spark = spark
        self.folder = folder
        self.schema = schema
        self._files = 0
        (folder / "in").mkdir(parents=True)

    def write(self, *batches: Sequence[Row]) -> Stream:
        for batch in batches:
            path = self.folder / "in" / f"{self._files:04}.parquet"
            pq.write_table(pa.Table.from_pylist(list(batch), self.schema), path)
            os.utime(path, (1_600_000_000 + self._files,) * 2)  # the order in which they are read
            self._files += 1
        return self

    def read(self) -> DataFrame:
        from cepheid.spark.columns import spark_schema

        reader = self.spark.readStream.schema(spark_schema(self.schema)).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder / "in"))

    def run(self, frame: DataFrame, checkpoint: str = "checkpoint") -> tuple[list[tuple[int, Row]], list[Any]]:
        """All that there is to read: the rows with the number of the micro-batch that they came in, and its progress."""
        found: list[tuple[int, Row]] = []

        def keep(batch: DataFrame, number: int) -> None:
            found.extend((number, row.asDict(recursive=True)) for row in batch.collect())

        writer = frame.writeStream.option("checkpointLocation", str(self.folder / checkpoint)).foreachBatch(keep)
        query = writer.outputMode("append").trigger(availableNow=True).start()
        query.awaitTermination()
        return found, list(query.recentProgress)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Callable[[pa.Schema], Stream]:
    numbers = iter(range(1000))
    return lambda schema: Stream(spark, tmp_path / str(next(numbers)), schema)


def aware(value: Any) -> Any:
    """Spark gives times without a zone, in the driver's; Arrow gives them in UTC."""
    match value:
        case dt.datetime():
            return value.astimezone(dt.timezone.utc)
        case dict():
            return {name: aware(part) for name, part in value.items()}
        case list():
            return [aware(part) for part in value]
    return value


def by_pattern(rows: Sequence[Row]) -> dict[str, list[str]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["pattern"], []).append({k: aware(v) for k, v in row.items() if v is not None})
    return {name: canonical(some) for name, some in found.items()}


def cut(events: Sequence[Row], parts: int, seed: int = 0) -> Iterator[Sequence[Row]]:
    rng = random.Random(seed)
    borders = sorted(rng.randrange(len(events)) for _ in range(parts - 1))
    for start, end in zip([0, *borders], [*borders, len(events)], strict=True):
        yield events[start:end]


def flush(after: dt.timedelta = dt.timedelta(hours=1)) -> Row:
    return {"ts": START + after, "type": NEVER, "k": None, "x": None, "seq": 10**6}


@long
def test_all_kinds_of_patterns(stream: Callable[[pa.Schema], Stream]) -> None:
    from cepheid.spark import match

    events = made_events(240)
    lateness = dt.timedelta(seconds=6)
    source = stream(SCHEMA).write(*cut(shuffled(events, lateness), 5), [flush()])
    following: dict[str, Any] = {"adapt": True, "check_every": 10, "migrate": "parallel"}
    frame = match(PATTERNS, source.read(), tie_breaker="seq", allowed_lateness="6 seconds", shards=3, **following)
    rows, progress = source.run(frame)
    wanted = cepheid.match(PATTERNS, pa.Table.from_pylist([*events, flush()], SCHEMA), tie_breaker="seq")
    assert wanted.schema.names == frame.columns
    found = by_pattern([row for _, row in rows])
    expected = by_pattern(wanted.to_pylist())
    assert len(expected) == PATTERNS.count("NAME")
    for name, matches in expected.items():
        assert found[name] == matches, name
    assert found.keys() == expected.keys()
    counted = [step.observedMetrics["cepheid"].asDict() for step in progress if "cepheid" in step.observedMetrics]
    assert sum(step["matches"] or 0 for step in counted) == wanted.num_rows
    assert not any(step["late events"] for step in counted)


@settings(max_examples=10 if ALL else 1, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_patterns(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Several at once, since a query takes longer than a pattern."""
    from cepheid.spark import match

    drawn = data.draw(st.lists(patterns(events_window=False).filter(on_numbers), min_size=6, max_size=6))
    renamed = [with_own_columns(pattern, place) for place, pattern in enumerate(drawn)]
    events = data.draw(streams(script=["A", "B", "C"] * 4, most=16))
    schema = pa.schema(
        {"ts": pa.int64(), "type": pa.string(), "x": pa.int64(), "y": pa.float64(), "k": pa.string(), "f": pa.bool_(),
         "h": pa.list_(pa.float64()), "seq": pa.int64()}
    )  # fmt: skip
    late = max(0, *(before["ts"] - event["ts"] for place, event in enumerate(events) for before in events[:place]), 0)
    source = Stream(spark, tmp_path_factory.mktemp("stream"), schema)
    last = dict.fromkeys(schema.names) | {"ts": 1000, "type": NEVER, "seq": 1000}
    source.write(*cut(events, data.draw(st.integers(1, 3))), [last])
    tie_breaker = data.draw(st.sampled_from([None, "seq"]))
    options: dict[str, Any] = {"tie_breaker": tie_breaker}
    late_option: dict[str, Any] = {"allowed_lateness": late}
    frame = match(renamed, source.read(), shards=2, **options, **late_option)
    rows, _ = source.run(frame)
    wanted = cepheid.match(renamed, pa.Table.from_pylist([*events, last], schema), **options)
    assert by_pattern([row for _, row in rows]) == by_pattern(wanted.to_pylist())


def on_numbers(pattern: Pattern) -> bool:
    return pattern.window is not None and pattern.window.kind is s.WindowKind.NUMBER


def with_own_columns(pattern: Pattern, place: int) -> Pattern:
    names = [s.event_of(leaf).variable for leaf in s.leaves(pattern.structure) if not isinstance(leaf, s.Negated)]
    output = tuple(s.ReturnItem(s.EventRef(name), f"p{place}_{name}") for name in names)
    return replace(pattern, name=f"p{place}", output=output)


SIMPLE = "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 10 RETURN a.seq AS a, b.seq AS b"
WAITING = "NAME waiting PATTERN SEQ(A a, B b, NOT(C n)) PARTITION BY k WITHIN 10 RETURN a.seq AS a, b.seq AS b"
NUMBERED = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.string(), "seq": pa.int64()})


def numbered(*events: tuple[int, str]) -> list[Row]:
    return [{"ts": time, "type": type_, "k": "p", "seq": time} for time, type_ in events]


def test_matches_come_when_they_are_decided_and_late_events_are_set_aside(
    spark: SparkSession, stream: Callable[[pa.Schema], Stream]
) -> None:
    """Also without processes that keep the shards; and the late events are a stream of their own."""
    from cepheid.spark import match

    source = stream(NUMBERED).write(
        numbered((1, "A"), (3, "B")),
        numbered((20, NEVER)),  # advances the watermark to 15, of which the next micro-batch is told …
        numbered((16, "A"), (17, "B"), (4, "B")),  # … after which 4 comes too late
        numbered((18, "B")),
        numbered((100, NEVER)),
    )
    late = source.folder / "late"
    spark.conf.set("spark.cepheid.hosts", 0)
    try:
        frame = match((SIMPLE, WAITING), source.read(), allowed_lateness=5, shards=2, late_events=late)
        behind = spark.readStream.schema("ts long, type string, k string, seq long").parquet(str(late))
        rows, progress = source.run(frame)
    finally:
        spark.conf.unset("spark.cepheid.hosts")
    at = sorted((row["pattern"], row["a"], row["b"], number) for number, row in rows)
    assert at == [
        ("pattern_1", 1, 3, 0),
        ("pattern_1", 16, 17, 2),
        ("pattern_1", 16, 18, 3),
        ("waiting", 1, 3, 2),
        ("waiting", 16, 17, 5),
        ("waiting", 16, 18, 5),
    ]
    assert sum(step.observedMetrics["cepheid"]["late events"] or 0 for step in progress) == 1
    second = Stream(spark, source.folder / "second", NUMBERED)
    assert [row for _, row in second.run(behind)[0]] == numbered((4, "B"))


@long
def test_patterns_change_at_a_restart(stream: Callable[[pa.Schema], Stream]) -> None:
    from cepheid.spark import match

    other = "NAME other PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 10 RETURN a.seq AS a, b.seq AS b"

    def run(*texts: str, shards: int = 2) -> list[tuple[str, int, int]]:
        options: dict[str, Any] = {"allowed_lateness": 0, "shards": shards}
        rows, _ = source.run(match(texts, source.read(), **options))
        return sorted((row["pattern"], row["a"], row["b"]) for _, row in rows)

    source = stream(NUMBERED).write(numbered((1, "A"), (2, "B")))
    assert run(SIMPLE, WAITING) == [("pattern_1", 1, 2)]
    source.write(numbered((3, "A"), (4, "B")))
    # What was kept goes on, what is new sees what comes from now on, what is gone reports no more.
    assert run(SIMPLE, other) == [("other", 3, 4), ("pattern_1", 1, 4), ("pattern_1", 3, 4)]
    source.write(numbered((5, "B")), numbered((30, NEVER)))
    assert run(other) == [("other", 3, 5)]
    source.write(numbered((31, "A")))
    with pytest.raises(Exception, match="is in 2 shards, and it is now asked to run with 3"):
        run(other, shards=3)
    assert run(other) == []


@long
@pytest.mark.parametrize("key", ["", "PARTITION BY k"])
def test_a_pattern_that_comes_back_begins_anew(stream: Callable[[pa.Schema], Stream], key: str) -> None:
    """Once time has gone on without it, be it alone with its key or not: what it had is not kept, nor gone on with."""
    from cepheid.spark import match

    source = stream(NUMBERED)
    stays = f"NAME stays PATTERN SEQ(D a, E b) {key} WITHIN 10 RETURN a.seq AS a, b.seq AS b"
    leaves = "NAME leaves PATTERN SEQ(A a, NOT(C c), B b) PARTITION BY k WITHIN 100 RETURN a.seq AS a, b.seq AS b"
    runs = (
        ((stays, leaves), numbered((50, "A"), (60, "D"))),
        ((stays,), numbered((57, "C"), (70, NEVER))),
        ((stays, leaves), numbered((71, "B"), (72, "A"), (73, "B"), (300, NEVER))),
    )
    found = []
    for asked, events in runs:
        source.write(events)
        rows, _ = source.run(match(asked, source.read(), allowed_lateness=5, shards=1))
        found += [(row["pattern"], row["a"], row["b"]) for _, row in rows]
    assert found == [("leaves", 72, 73)]


@pytest.mark.parametrize("hosts", [None, 0])
def test_what_does_not_fit_the_state_is_said_first(
    spark: SparkSession, stream: Callable[[pa.Schema], Stream], hosts: int | None
) -> None:
    """Whether it is found out in a worker or in a process that keeps the shards."""
    from cepheid.spark import match

    def run(**options: Any) -> None:
        found = match(SIMPLE, source.read(), allowed_lateness=0, shards=1, **options)
        writer = found.writeStream.format("noop").option("checkpointLocation", str(source.folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    source = stream(NUMBERED).write(numbered((1, "A"), (2, "B")))
    run()
    source.write(numbered((3, "B")))
    if hosts is not None:
        spark.conf.set("spark.cepheid.hosts", hosts)
    try:
        with pytest.raises(Exception, match="now are ts, type, seq") as error:
            run(tie_breaker="seq")
    finally:
        spark.conf.unset("spark.cepheid.hosts")
    first, *_ = str(error.value).splitlines()
    assert first.endswith("They stay the same for the life of a checkpoint; start with a new one.")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are no processes for shards")
@pytest.mark.parametrize("shed", [pytest.param(None, marks=long), cepheid.HSpice(latency_bound="1 hour")])
def test_a_process_that_is_killed_at_work(stream: Callable[[pa.Schema], Stream], tmp_path: Path, shed: Any) -> None:
    """Another one does the same. If that is killed too it is said, and the next run goes on where the last was."""
    from cepheid.spark import match

    deaths = tmp_path / "deaths"
    deaths.mkdir()

    def deadly(x: Any, driver: int = os.getpid()) -> Any:
        found = os.getpid()
        if found != driver and len(list(deaths.iterdir())) < {4: 1, 5: 3}.get(max(x), 0):
            (deaths / str(found)).touch()
            os.kill(found, signal.SIGKILL)
        return x * 1.0

    cepheid.register_function("deadly", deadly)
    pattern = "PATTERN SEQ(A a, B b) WHERE deadly(b.seq) > a.seq PARTITION BY k WITHIN 10 RETURN a.seq AS a, b.seq AS b"
    batches = [numbered((1, "A"), (2, "B")), numbered((3, "A")), numbered((4, "B"))]
    source = stream(NUMBERED).write(*batches)

    def run() -> tuple[list[tuple[int, int]], list[Row]]:
        rows, progress = source.run(match(pattern, source.read(), allowed_lateness=0, shards=1, shed=shed))
        return [(row["a"], row["b"]) for _, row in rows], [
            step.observedMetrics["cepheid"].asDict() for step in progress
        ]

    found, counted = run()
    assert sorted(found) == [(1, 2), (1, 4), (3, 4)]
    assert [step["restored"] for step in counted[:3]] == [0, 0, 1]
    for name, total in (("events", 4), ("matches", 3), ("dropping per mille", 0), ("dropped events", 0)):
        assert sum(step[name] or 0 for step in counted) == total
    source.write(numbered((5, "B")))
    with pytest.raises(Exception, match=r"was killed while it worked .* too little memory"):
        run()
    found, counted = run()
    assert sorted(found) == [(1, 5), (3, 5)]
    assert counted[0]["events"] == 1


def test_two_results_in_one_query(stream: Callable[[pa.Schema], Stream]) -> None:
    from cepheid.spark import match

    source = stream(NUMBERED).write(numbered((1, "A"), (2, "B"), (3, "C")))
    other = "NAME other PATTERN SEQ(B a, C b) PARTITION BY k WITHIN 10 RETURN a.seq AS a, b.seq AS b"
    one = match(SIMPLE, source.read(), allowed_lateness=0, shards=1)
    two = match(other, source.read(), allowed_lateness=0, shards=1, metrics="other")
    rows, progress = source.run(one.union(two))
    assert sorted((row["pattern"], row["a"], row["b"]) for _, row in rows) == [("other", 2, 3), ("pattern_1", 1, 2)]
    for name in ("cepheid", "other"):
        assert sum(step.observedMetrics[name]["matches"] or 0 for step in progress) == 1


def test_two_results_of_the_same_patterns_live_on(stream: Callable[[pa.Schema], Stream]) -> None:
    """Neither takes the sessions of the other for its own."""
    from cepheid.spark import match

    batches = numbered((1, "A"), (2, "B")), numbered((3, "B")), numbered((4, "B"))
    sources = [stream(NUMBERED).write(*batches) for _ in range(2)]
    names = ("one", "two")
    found = [
        match(SIMPLE, s.read(), allowed_lateness=0, shards=1, metrics=m) for s, m in zip(sources, names, strict=True)
    ]
    rows, progress = sources[0].run(found[0].union(found[1]))
    assert sorted(row["b"] for _, row in rows) == [2, 2, 3, 3, 4, 4]
    for name in names:
        assert not any(step.observedMetrics[name]["restored"] for step in progress if name in step.observedMetrics)


def test_two_results_with_one_folder_for_late_events(stream: Callable[[pa.Schema], Stream]) -> None:
    from cepheid.spark import match

    batches = ((20, "A"), (20, "B"), (20, "C")), ((40, NEVER),), ((1, "A"), (2, "C"))
    source = stream(NUMBERED).write(*(numbered(*batch) for batch in batches))
    late = source.folder / "late"
    other = "NAME other PATTERN SEQ(C a, B b) PARTITION BY k WITHIN 10 RETURN a.seq AS a, b.seq AS b"
    one = match(SIMPLE, source.read(), allowed_lateness=0, shards=1, late_events=late)
    two = match(other, source.read(), allowed_lateness=0, shards=1, late_events=late, metrics="other/one")
    source.run(one.union(two))
    assert sorted(pq.read_table(late)["seq"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("type_", ["timestamp_ntz", pytest.param("int", marks=long)])
def test_other_kinds_of_time(stream: Callable[[pa.Schema], Stream], type_: str) -> None:
    from cepheid.spark import match

    start = START.replace(tzinfo=None)
    times: list[Any] = [1, 3, 14, 16, 1000]
    options: dict[str, Any]
    length, time, options = "10", pa.int32(), {"allowed_lateness": 20}
    if type_ == "timestamp_ntz":
        times = [start + dt.timedelta(seconds=time) for time in times]
        length, time, options = "10 seconds", pa.timestamp("us"), {"allowed_lateness": dt.timedelta(seconds=20)}
    events = [
        {"at": time, "kind": kind, "dotted.name": n} for n, (time, kind) in enumerate(zip(times, "ABABX", strict=True))
    ]
    source = stream(pa.schema({"at": time, "kind": pa.string(), "dotted.name": pa.int64()}))
    source.write(events[2:4], events[:2], events[4:])
    pattern = f"PATTERN SEQ(A a, B b, NOT(X x)) WITHIN {length} RETURN a.`dotted.name` AS a, b.`dotted.name` AS b"
    frame = match(pattern, source.read(), time="at", type="kind", **options)
    rows, _ = source.run(frame)
    assert sorted((row["a"], row["b"]) for _, row in rows) == [(0, 1), (2, 3)]


def test_times_that_a_zone_leaps_over(spark: SparkSession, stream: Callable[[pa.Schema], Stream]) -> None:
    """In New York, the clock went from 2 to 3 in the morning."""
    from cepheid.spark import match

    events = [{"ts": dt.datetime(2024, 3, 10, 2, minute), "type": kind} for minute, kind in enumerate("AXABB")]
    source = stream(pa.schema({"ts": pa.timestamp("us"), "type": pa.string()}))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        source.write(events[:2], events[2:3], events[3:])
        found = match("PATTERN SEQ(A a, B b) WITHIN 1 hour", source.read(), allowed_lateness="1 second", shards=1)
        _, progress = source.run(found)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    counted = [step.observedMetrics["cepheid"] for step in progress]
    assert sum(step["matches"] or 0 for step in counted) == 4
    assert not any(step["late events"] for step in counted)


def test_what_a_stream_needs(spark: SparkSession) -> None:
    from cepheid.spark import match

    frame = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type", "value AS x", "1 AS n")
    pattern = "PATTERN A a WITHIN 10 seconds RETURN a.x"
    with pytest.raises(ValueError, match="needs to know how late an event may come"):
        match(pattern, frame)
    with pytest.raises(ValueError, match="has a watermark on 'ts' already"):
        match(pattern, frame.withWatermark("ts", "1 second"), allowed_lateness="1 second")
    with pytest.raises(ValueError, match="the times in 'n' are numbers"):
        match("PATTERN A a WITHIN 10 RETURN a.x", frame, time="n", allowed_lateness="1 second")
    for negative in ("-1 second", dt.timedelta(seconds=-1)):
        with pytest.raises(ValueError, match="allowed_lateness is 0 or more, got"):
            match(pattern, frame, allowed_lateness=negative)
    with pytest.raises(ValueError, match="allowed_lateness is 0 or more, got -1"):
        match("PATTERN A a WITHIN 10 RETURN a.x", frame, time="n", allowed_lateness=-1)
    keyed = "PATTERN SEQ(A a, A b) PARTITION BY x WITHIN 10 seconds"
    with pytest.raises(ValueError, match=r"9,600 shards at most, got 9,601\. Pass shards="):
        match(keyed, frame, allowed_lateness="1 second", shards=9601)
    found = match(pattern, frame.withWatermark("ts", "1 second"))
    assert found.isStreaming
    assert found.columns == ["pattern", "start", "end", "x"]


def test_functions_that_hold_much(stream: Callable[[pa.Schema], Stream], monkeypatch: pytest.MonkeyPatch) -> None:
    from cepheid.spark import cargo, match

    held = random.Random(0).randbytes(2**21)
    cepheid.register_function("first_of", lambda x: x * 0.0 + held[0])
    cepheid.register_function("itself", lambda x: x)
    source = stream(NUMBERED).write(numbered((1, "A"), (2, "B")))
    pattern = "PATTERN SEQ(A a, B b) WHERE first_of(a.seq) <> itself(b.seq) WITHIN 10 RETURN a.seq AS a"
    options: dict[str, Any] = {"allowed_lateness": 0, "shards": 1}
    rows, _ = source.run(match(pattern, source.read(), **options))
    assert [row["a"] for _, row in rows] == [1]
    monkeypatch.setattr(cargo, "most_bytes", lambda spark: 2**20)
    with pytest.raises(
        ValueError, match=r"2\.1 MB, most of it the function 'first_of', .* 1\.0 MB .*UDFCompressionThreshold"
    ):
        match(pattern, source.read(), **options)
    match(SIMPLE, source.read(), **options)


def test_a_folder_for_late_events_that_cannot_be_made(spark: SparkSession, tmp_path: Path) -> None:
    from cepheid.spark import match

    frame = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type")
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "late", "strange://late"):
        with pytest.raises(
            cepheid.CepheidError, match=r"late_events=.* cannot be written there: .*Expected is a folder"
        ):
            match("PATTERN A a WITHIN 10 seconds", frame, allowed_lateness="1 second", late_events=folder)


@long
def test_matches_of_a_stream_are_matched_in_a_query_of_their_own(stream: Callable[[pa.Schema], Stream]) -> None:
    """As the guide says, until Spark takes a second watermark."""
    from cepheid.spark import match

    source = stream(NUMBERED).write(numbered((1, "A"), (2, "B")))
    found = match(SIMPLE, source.read(), allowed_lateness=0, shards=1).selectExpr("end AS ts", "pattern AS type", "a")
    again = match("PATTERN pattern_1 p WITHIN 10 RETURN p.a", found, allowed_lateness=0, shards=1, metrics="again")
    with pytest.raises(Exception, match="Redefining watermark is disallowed"):
        source.run(again)


def test_text_is_compared_by_its_bytes_whatever_its_collation(stream: Callable[[pa.Schema], Stream]) -> None:
    from cepheid.spark import match

    source = stream(NUMBERED).write(numbered((1, "A"), (2, "a"), (3, "B"), (4, "b")))
    frame = source.read().selectExpr("ts", "type COLLATE UTF8_LCASE AS type", "k COLLATE UTF8_LCASE AS k", "seq")
    rows, _ = source.run(match(SIMPLE, frame, allowed_lateness=0, shards=2))
    assert [(row["a"], row["b"]) for _, row in rows] == [(1, 3)]


def test_shards_go_to_partitions_of_their_own(spark: SparkSession) -> None:
    import numpy as np

    from cepheid.spark.shard_keys import group_of, shard_keys, spark_hash

    keys = shard_keys(12345, 8)
    assert {group_of(key) for key in keys} == {12345}
    rows = (
        spark.createDataFrame([(key,) for key in keys], "key long")
        .selectExpr("hash(key)", "pmod(hash(key), 4)")
        .collect()
    )
    assert [row[0] for row in rows] == spark_hash(np.array(keys)).tolist()
    assert [row[1] for row in rows] == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("length", "said"),
    [
        ("250 ms", "250 milliseconds"),
        ("1.5 hours", "5400000 milliseconds"),
        ("10 s", "10000 milliseconds"),
        (dt.timedelta(microseconds=1), "1 milliseconds"),
        ("1 week 2 days", "777600000 milliseconds"),
        ("interval 10 seconds", "interval 10 seconds"),  # as Spark has it
    ],
)
def test_lengths_of_time_are_those_of_the_language(length: Any, said: str) -> None:
    assert _interval(length) == said
