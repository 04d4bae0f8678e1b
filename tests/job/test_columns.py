"""Mistakes about columns that can be known without Spark are found with all others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from cepheid.job import JobError, parse_job
from cepheid.job.ddl import DdlError, UnknownTypeError, columns_in
from tests.job.test_reading import problems, text

GOOD = "ts: timestamp, type: string, k: bigint, x: bigint"


@pytest.fixture(autouse=True)
def _events(patterns: Path) -> None:
    (patterns.parent / "events.parquet").touch()


def source(schema: str = GOOD, more: str = "") -> str:
    return f"{{format: csv, path: ., schema: {{{schema}}}{more}}}"


STREAM = {"mode": "stream", "checkpoint": "state"}


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"source": source("ts: timestmap")}, "source.schema.ts", "did you mean 'timestamp'"),
        ({"source": source(GOOD + ", place: {x: dubble}")}, "source.schema.place", "did you mean 'double'"),
        ({"source": "{format: csv, path: ., schema: 'ts TIMESTMAP, x INT'}"}, "source.schema", "there is no type 'TIMESTMAP'"),
        ({"source": source(more=", select: [1 AS ts]").replace("bigint", "bigit")}, "source.schema.k", "did you mean 'bigint'"),
        ({"events": "{time: tss}"}, "events.time", "did you mean 'ts'?"),
        ({"events": "{time: type}"}, "events.time", "must hold timestamps or integers, and it holds string"),
        ({"events": "{type: x}"}, "events.type", "must hold strings"),
        ({"events": "{tie_breaker: offset}"}, "events.tie_breaker", "no such column"),
        ({"source": source(GOOD.replace("timestamp", "date"))}, "events.time", "this column holds dates"),
        ({**STREAM, "engine": "{allowed_lateness: 5}"}, "engine.allowed_lateness", "the times in 'ts' are timestamps"),
        ({**STREAM, "engine": "{allowed_lateness: 5 s}", "source": source(GOOD.replace("timestamp", "int"))},
         "engine.allowed_lateness", "the times in 'ts' are numbers"),
        ({"engine": "{order: [a, z]}"}, "engine.order", "z"),
        ({"sink": "{format: kafka, servers: x, topic: t, key: [low, hihg]}"}, "sink.key[1]", "did you mean 'high'?"),
        ({"sink": "{format: parquet, path: out, partition_by: day}"}, "sink.partition_by", "matches have no column 'day'"),
        ({"source": "{workload: card_payments}"}, "", "k"),
    ],
)  # fmt: skip
def test_one_mistake(patterns: Path, fields: dict[str, str], field: str, said: str) -> None:
    if not field:  # of the patterns
        with pytest.raises(JobError) as caught:
            parse_job(text(**fields), folder=patterns.parent)
        assert said in str(caught.value)
        return
    found = problems(patterns.parent, **{"source": source(), **fields})
    assert set(found) == {field}
    assert said in found[field]


def test_together_with_all_others(patterns: Path) -> None:
    patterns.write_text("NAME up PATTERN SEQ(A a, B b) WHERE a.price < b.x WITHIN 5 seconds", encoding="utf-8")
    with pytest.raises(JobError) as caught:
        parse_job(text(source=source(), mode="strem", events="{type: kind}"), folder=patterns.parent)
    assert [problem.field for problem in caught.value.problems] == ["mode", "events.type"]
    assert "did you mean 'stream'?" in str(caught.value)
    assert "price" in str(caught.value.patterns[0])
    assert caught.value.problems[0].line is not None


def test_columns_of_a_record_can_have_a_role(patterns: Path) -> None:
    kafka = f"{{format: kafka, servers: x, topics: t, schema: {{{GOOD}}}, record_offset: place}}"
    parse_job(text(source=kafka, events="{tie_breaker: place}"), folder=patterns.parent)


@pytest.mark.parametrize(
    "other",
    [
        "{format: csv, path: .}",
        source("a: string", ", select: [now() AS ts, a AS type, 1 AS k, 2 AS x]"),
        "{format: csv, path: ., schema: 'ts TIMESTAMP, x INTERVAL DAY TO SECOND'}",
    ],
)
def test_what_only_spark_can_know(patterns: Path, other: str) -> None:
    parse_job(text(source=other), folder=patterns.parent)


def test_schemas() -> None:
    ddl = "a INT NOT NULL COMMENT 'it, or so', `b ``c` STRUCT<x: DOUBLE, y: ARRAY<STRING>>, d MAP<STRING, DECIMAL(5,2)>, e VARCHAR(9)"
    found = columns_in(ddl)
    assert found.names == ["a", "b `c", "d", "e"]
    assert found.types[1] == pa.struct({"x": pa.float64(), "y": pa.list_(pa.field("element", pa.string()))})
    assert found.types[2].item_type == pa.decimal128(5, 2)
    assert found.types[3] == pa.string()


@pytest.mark.parametrize(
    "ddl", ["", "a", "a INT,", "a INT b INT", "a ARRAY<INT", "5 INT", "a DECIMAL(x)", "a DECIMAL(99)"]
)
def test_what_is_no_simple_schema(ddl: str) -> None:
    with pytest.raises(DdlError):
        columns_in(ddl)


def test_a_type_that_there_is_not() -> None:
    with pytest.raises(UnknownTypeError) as caught:
        columns_in("a INT, b ARRAY<STRUCT<c: NUMBR>>")
    assert (caught.value.column, caught.value.word) == ("b", "NUMBR")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (("a.x AS `Pattern`",), "'pattern' and 'Pattern' differ in case only"),
        (("a.x AS low", "b.x AS LOW"), "'low' and 'LOW' differ in case only"),
        (("a.x AS low", "'a' AS low"), "the column 'low' is int64 in p0 and string in p1"),
    ],
)
def test_columns_that_do_not_go_together(patterns: Path, returned: tuple[str, ...], said: str) -> None:
    texts = (f"NAME p{n} PATTERN SEQ(A a, B b) WITHIN 1 minute RETURN {item}" for n, item in enumerate(returned))
    patterns.write_text(";".join(texts), encoding="utf-8")
    found = problems(patterns.parent, source=source(), events="{type: tpye}")
    assert set(found) == {"patterns", "events.type"}
    assert said in found["patterns"]
    if "case" in said:
        parse_job(text(source=source(), spark="{settings: {spark.sql.caseSensitive: true}}"), folder=patterns.parent)
