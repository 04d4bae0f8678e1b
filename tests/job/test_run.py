"""Batch jobs from source to sink: the matches of ``cepheid.match``."""

from __future__ import annotations

import datetime as dt
import io
import json
import logging
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest

import cepheid
from cepheid.job import Outcome, RunError, parse_job, run_job
from cepheid.job.outcome import MicroBatch
from cepheid.job.report import page
from cepheid.job.timeline import extent_of
from tests.spark.long import long

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")
START = dt.datetime(2024, 5, 17, 8, tzinfo=dt.timezone.utc)


def made_events() -> pa.Table:
    """Times to the microsecond, so that a sink that cuts them is found out."""
    rng = random.Random(5)
    rows = [
        {
            "ts": START + dt.timedelta(seconds=i, microseconds=137 * i),
            "type": rng.choice("ABC"),
            "k": rng.randrange(3),
            "x": rng.randrange(10),
        }
        for i in range(200)
    ]
    return pa.Table.from_pylist(
        rows, pa.schema({"ts": pa.timestamp("us", "UTC"), "type": pa.string(), "k": pa.int64(), "x": pa.int64()})
    )


@pytest.fixture
def events(tmp_path: Path) -> pa.Table:
    table = made_events()
    folder = tmp_path / "events"
    folder.mkdir()
    pa.parquet.write_table(table, folder / "part.parquet")
    return table


def run(
    folder: Path, source: str = "{format: parquet, path: events}", sink: str = "{format: none}", **rest: Any
) -> Outcome:
    more = "".join(f"{name}: {value}\n" for name, value in rest.pop("more", {}).items())
    text = f"source: {source}\npatterns: rules.cep\nsink: {sink}\nspark: {{master: 'local[1]'}}\n{more}"
    return run_job(parse_job(text, folder=folder), **rest)


def expected(patterns: Path, events: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cepheid.match(patterns.read_text(encoding="utf-8"), events).to_pylist()
    return rows


def same(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return sorted(map(plain, found)) == sorted(map(plain, wanted))


def plain(row: Any) -> str:
    """Moments as text, NULL left away, as JSON has it."""

    def value(it: Any) -> Any:
        if isinstance(it, dt.datetime):
            return it.astimezone(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {k: value(v) for k, v in it.items() if v is not None} if isinstance(it, dict) else it

    return json.dumps(value(row), sort_keys=True)


def test_parquet_to_parquet(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    outcome = run(tmp_path, sink="{format: parquet, path: out}")
    wanted = expected(patterns, events)
    assert same(pa.parquet.read_table(tmp_path / "out").to_pylist(), wanted)
    assert (outcome.events, outcome.matches) == (200, len(wanted))
    assert outcome.matches_of == {name: sum(r["pattern"] == name for r in wanted) for name in ("up", "pair")}
    assert [row["end"] for row in outcome.first] == sorted(row["end"] for row in wanted)[:20]


def test_values_become_folders(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    run(tmp_path, sink="{format: csv, path: out, partition_by: [pattern, low]}")
    assert {folder.name for folder in (tmp_path / "out").glob("pattern=*")} == {"pattern=up", "pattern=pair"}
    assert (tmp_path / "out" / "pattern=up" / "low=3").is_dir()


def test_json_to_json(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    lines = [json.dumps({**row, "ts": row["ts"].isoformat()}) for row in events.to_pylist()]
    (tmp_path / "events.json").write_text("\n".join(lines), encoding="utf-8")
    source = "{format: json, path: events.json, schema: 'ts TIMESTAMP, type STRING, k BIGINT, x BIGINT'}"
    run(tmp_path, source, "{format: json, path: out}")
    found = [json.loads(line) for file in (tmp_path / "out").glob("*.json") for line in file.read_text().splitlines()]
    assert same(found, expected(patterns, events))


def test_csv_to_csv(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    pa.csv.write_csv(events, tmp_path / "events.csv")
    run(tmp_path, "{format: csv, path: events.csv}", "{format: csv, path: out}")
    files = [pa.csv.read_csv(file) for file in (tmp_path / "out").glob("*.csv")]
    found = pa.concat_tables(files, promote_options="permissive").to_pylist()
    wanted = expected(patterns, events)
    assert len(found) == len(wanted)
    nested = [json.loads(row["first"]) for row in found if row["first"]]
    assert same(nested, [row["first"] for row in wanted if row["first"]])  # lists and structs become JSON


def test_select_and_where(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    source = "{format: parquet, path: events, where: k = 1, select: [ts AS at, type AS kind, k, x]}"
    outcome = run(tmp_path, source, more={"events": "{time: at, type: kind}"})
    assert outcome.matches == len(expected(patterns, events.filter(pa.compute.equal(events["k"], 1))))
    assert outcome.events == sum(k == 1 for k in events["k"].to_pylist())


def test_what_is_there_is_not_overwritten_unless_said(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(RunError, match="already exists"):
        run(tmp_path, sink="{format: parquet, path: out}")
    run(tmp_path, sink="{format: parquet, path: out, mode: overwrite}")


def test_what_is_known_of_a_run_that_failed(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(RunError) as caught:
        run(tmp_path, sink="{format: parquet, path: out}", explained=True)
    outcome = caught.value.outcome
    assert outcome is not None
    assert (outcome.failed, outcome.matches) == (str(caught.value), 0)
    html = page(outcome)
    assert "Why it failed" in html
    assert "<svg" in html


def test_an_error_of_ours_is_said_in_our_words_alone(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    patterns.write_text("PATTERN AND(A a, B b, A c) WITHIN 1 day", encoding="utf-8")
    with pytest.raises(RunError, match="LimitError: more than 1 partial matches over ") as caught:
        run(tmp_path, more={"engine": "{max_partial_matches: 1}"})
    assert not any(word in str(caught.value) for word in ("Traceback", "File ", "\tat "))


def test_what_is_not_known_of_a_run_is_no_failure(
    events: pa.Table, patterns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its matches are written."""

    def broken(*_: object) -> None:
        raise OSError("the events are gone")

    monkeypatch.setattr("cepheid.job.batch.extent_of", broken)
    outcome = run(tmp_path, sink="{format: parquet, path: out}")
    assert outcome.matches == len(expected(patterns, events))
    assert outcome.notes == ["Not all could be found out about it: the events are gone"]


def test_a_table_in_memory(spark: SparkSession, events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    outcome = run(tmp_path, sink="{format: memory, name: found}")
    assert spark.table("found").count() == outcome.matches
    assert outcome.where == "the table found"


class Watcher:
    def __init__(self) -> None:
        self.phases: list[str] = []
        self.printed: list[Any] = []
        self.more = 0

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def tasks(self, done: int, total: int) -> None:
        assert 0 <= done <= total

    def micro_batch(self, batch: MicroBatch) -> None:
        pass

    def matches(self, rows: Sequence[Any], more: int) -> None:
        self.printed += rows
        self.more += more


def test_the_console(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    watcher = Watcher()
    outcome = run(tmp_path, sink="{format: console, rows: 3}", watcher=watcher)
    assert len(watcher.printed) == 3
    assert watcher.more == outcome.matches - 3
    assert "matching" in watcher.phases


def test_the_plan_and_the_funnel(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    outcome = run(tmp_path, explained=True)
    assert outcome.explanation is not None
    assert outcome.explanation_note == "All 200 events were run through this plan on one machine, to count."
    assert sum(plan.matches or 0 for plan in outcome.explanation.patterns) == outcome.matches
    assert outcome.timeline is not None
    assert (sum(outcome.timeline.events), sum(outcome.timeline.matches)) == (200, outcome.matches)
    assert "<svg" in page(outcome)


@long
def test_a_sample_is_the_beginning(
    events: pa.Table, patterns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cepheid.job.explaining.SAMPLE", 50)
    outcome = run(tmp_path, explained=True)
    assert outcome.explanation is not None
    seen = outcome.explanation.events
    assert seen is not None
    assert 40 <= seen <= 50
    assert outcome.explanation_note.startswith(f"Counted on one machine in the first {seen} of 200 events")
    first = expected(patterns, events.slice(0, seen))
    assert sum(plan.matches or 0 for plan in outcome.explanation.patterns) == len(first)


def test_times_that_are_numbers(patterns: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.cep").write_text("PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.ts AS t", encoding="utf-8")
    table = pa.table({"ts": list(range(100)), "type": ["A", "B"] * 50})
    pa.parquet.write_table(table, tmp_path / "events.parquet")
    outcome = run(tmp_path, "{format: parquet, path: events.parquet}", explained=True)
    assert outcome.matches == cepheid.match("PATTERN SEQ(A a, B b) WITHIN 5", table).num_rows
    assert outcome.timeline is not None
    assert not outcome.timeline.moments


def test_times_without_a_zone_are_drawn_as_they_are(spark: SparkSession) -> None:
    """Whatever the session's, and also an hour that it does not have: in New York, the clock went from 2 to 3."""
    times = [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2024, 3, 10, 2, 30, 0, 1)]
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        extent = extent_of(
            spark.sql(f"SELECT * FROM VALUES (TIMESTAMP_NTZ '{times[0]}'), (TIMESTAMP_NTZ '{times[1]}') AS t(ts)"), "ts"
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    first, last = ((time - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) for time in times)
    assert (extent.first, extent.last, extent.moments) == (first, last, True)


@long
def test_a_workload_is_the_same_every_time(tmp_path: Path) -> None:
    (tmp_path / "rules.cep").write_text(
        Path("examples/account_taken.cep").read_text(encoding="utf-8"), encoding="utf-8"
    )
    source = (
        "{workload: card_payments, events: 3000, arguments: {accounts: 500, fraud: 0.01, start: 2024-05-17}, files: 3}"
    )
    outcome = run(tmp_path, source, show=1000)
    assert (outcome.events, len({row["account"] for row in outcome.first})) == (3000, 5)


def test_matches_for_kafka(events: pa.Table, patterns: Path, tmp_path: Path, spark: SparkSession) -> None:
    """A key that is the match's own, whichever way it was found."""
    from cepheid.job.description import KafkaSink
    from cepheid.job.sinks import kafka_records

    run(tmp_path, sink="{format: memory, name: found}")
    sink = {"format": "kafka", "servers": "x", "topic": "t"}
    rows = kafka_records(spark.table("found"), KafkaSink.model_validate(sink)).collect()
    assert same([json.loads(row["value"]) for row in rows], expected(patterns, events))
    assert len({row["key"] for row in rows}) == len(rows)
    again = kafka_records(spark.table("found").repartition(3), KafkaSink.model_validate(sink)).collect()
    assert {row["key"] for row in again} == {row["key"] for row in rows}
    keyed = kafka_records(spark.table("found"), KafkaSink.model_validate({**sink, "key": "high"})).collect()
    assert {row["headers"][0]["value"].decode() for row in keyed} == {row["key"] for row in rows}
    assert json.loads(keyed[0]["key"]).keys() <= {"high"}


@pytest.mark.parametrize(("malformed", "count"), [("drop", 1), ("fail", None)])
def test_json_that_is_none(spark: SparkSession, malformed: str, count: int | None) -> None:
    from cepheid.job.sources import _from_json

    values = spark.createDataFrame([('{"ts": "2024-05-17T08:00:00Z", "x": 1}',), ("no json",), (None,)], "value string")
    frame = _from_json(values, "ts TIMESTAMP, x INT", "FAILFAST" if malformed == "fail" else "PERMISSIVE", [])
    assert frame.columns == ["ts", "x"]
    if count is None:
        with pytest.raises(Exception, match=r"MALFORMED|Malformed"):
            frame.collect()
    else:
        assert [row["x"] for row in frame.collect()] == [1]


@pytest.mark.parametrize(
    "ddl",
    [
        "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h STRING, i BINARY, j DATE",
        "a TIMESTAMP, b TIMESTAMP_NTZ, c DECIMAL, d DECIMAL(5, 2), e VARCHAR(9), f VARIANT NOT NULL COMMENT 'x'",
        "`a b` ARRAY<STRUCT<x: INT, y: STRING>>, c MAP<STRING, DOUBLE>, d STRUCT<`e`: ARRAY<REAL>>",
    ],
)
@pytest.mark.usefixtures("spark")
def test_schemas_are_read_as_spark_reads_them(ddl: str) -> None:
    from pyspark.sql.types import StructType

    from cepheid.job.ddl import columns_in
    from cepheid.spark.columns import arrow_schema

    columns = StructType.fromDDL(ddl)
    assert isinstance(columns, StructType)
    assert columns_in(ddl) == arrow_schema(columns)


def test_what_kafka_says_of_a_record(spark: SparkSession) -> None:
    from cepheid.job.description import Kafka
    from cepheid.job.sources import events_in

    said = {"format": "kafka", "servers": "x", "topics": "t", "schema": {"x": "int"}}
    more = {"record_time": "at", "record_key": "k", "record_partition": "part", "record_offset": "place"}
    records = spark.sql(
        "SELECT CAST('me' AS BINARY) AS key, CAST('{\"x\": 1}' AS BINARY) AS value, 2 AS partition, 3L AS offset, "
        "TIMESTAMP '2024-05-17 08:00:00' AS timestamp"
    )
    frame = events_in(records, Kafka.model_validate({**said, **more}))
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("x", "int"), ("at", "timestamp"), ("k", "string"), ("part", "int"), ("place", "bigint")
    ]  # fmt: skip
    assert [(row["x"], row["k"], row["part"], row["place"]) for row in frame.collect()] == [(1, "me", 2, 3)]
    assert events_in(records, Kafka.model_validate(said)).columns == ["x"]


def test_what_spark_says_has_no_secrets(
    events: pa.Table, patterns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_FOLDER", "topsecret77")
    with pytest.raises(RunError) as caught:
        run(tmp_path, "{format: parquet, path: 'x/${JOB_FOLDER}'}")
    assert "topsecret77" not in str(caught.value)
    assert "${JOB_FOLDER}" in str(caught.value)
    assert "\tat " not in str(caught.value)


def test_what_spark_logs_has_no_secrets(
    events: pa.Table, patterns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark logs errors of SQL in full."""
    from pyspark.logger import PySparkLogger

    told = io.StringIO()
    handler = logging.StreamHandler(told)
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    logger.addHandler(handler)
    monkeypatch.setenv("JOB_SECRET", "topsecret77")
    try:
        with pytest.raises(RunError, match="nosuch"):
            run(tmp_path, "{format: parquet, path: events, where: \"nosuch = '${JOB_SECRET}'\"}")
        assert told.getvalue() == ""
        assert not logger.disabled
    finally:
        logger.removeHandler(handler)


def test_patterns_that_do_not_fit_the_events(events: pa.Table, patterns: Path, tmp_path: Path) -> None:
    patterns.write_text("PATTERN SEQ(A a, B b) WHERE a.y < b.x WITHIN 5 seconds", encoding="utf-8")
    with pytest.raises(cepheid.PatternError, match="y"):
        run(tmp_path)


def test_functions_of_modules_beside_the_description(
    events: pa.Table, patterns: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The workers do not look there; and such a module may use others."""
    (tmp_path / "transfer_rates.py").write_text("FACTOR = 3\n", encoding="utf-8")
    (tmp_path / "transfer_functions.py").write_text(
        "import cepheid\nimport transfer_rates\n\ndef tripled(x):\n    return transfer_rates.FACTOR * x\n\n"
        "cepheid.register_function('tripled', tripled, returns='integer')\n",
        encoding="utf-8",
    )
    request.addfinalizer(lambda: sys.path.remove(str(tmp_path)))
    text = "NAME up PATTERN SEQ(A a, B b) WHERE tripled(a.x) < b.x WITHIN 20 seconds RETURN a.x AS low, b.x AS high"
    patterns.write_text(text, encoding="utf-8")
    outcome = run(tmp_path, sink="{format: parquet, path: out}", more={"import": "transfer_functions"})
    assert outcome.matches == cepheid.match(text, events).num_rows > 0
    assert same(pa.parquet.read_table(tmp_path / "out").to_pylist(), expected(patterns, events))


def test_maps_in_events_that_are_given_out_whole(patterns: Path, tmp_path: Path) -> None:
    table = made_events()
    tags = pa.array([[("x", 1)]] * table.num_rows, pa.map_(pa.string(), pa.int64()))
    (tmp_path / "events").mkdir()
    pa.parquet.write_table(table.append_column("tags", tags), tmp_path / "events" / "part.parquet")
    patterns.write_text("NAME up PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 3 seconds", encoding="utf-8")
    outcome = run(tmp_path, show=2)
    assert outcome.matches > 2
    assert len(outcome.first) == 2


def test_variables_in_any_text(
    events: pa.Table, patterns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"WHERE_RULES": str(patterns), "LOW": "5", "COLUMN": "x"}.items():
        monkeypatch.setenv(name, value)
    source = "{format: parquet, path: events, select: [ts, type, k, '${COLUMN} + 0 AS x'], where: 'x > ${LOW}'}"
    text = f"source: {source}\npatterns: ${{WHERE_RULES}}\nsink: {{format: none}}\nspark: {{master: 'local[1]'}}\n"
    outcome = run_job(parse_job(text, folder=tmp_path))
    some = events.filter(pa.compute.greater(events["x"], 5))
    assert outcome.matches == len(expected(patterns, some)) < len(expected(patterns, events))
