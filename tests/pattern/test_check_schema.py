"""What is found wrong once the columns of the events are known."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", tz="UTC"),
        "type": pa.dictionary(pa.int32(), pa.string()),
        "n": pa.int64(),
        "y": pa.float32(),
        "k": pa.large_string(),
        "f": pa.bool_(),
        "h": pa.list_(pa.float64()),
        "d": pa.duration("ms"),
        "m": pa.decimal128(10, 2),
        "b": pa.binary(),
        "words": pa.list_(pa.string()),
    }
)

GOOD = [
    "a.n < a.y", "a.m = a.n", "a.k = 'x'", "a.f", "NOT a.f", "a.ts > TIMESTAMP '2024-01-01'", "a.d > 5 seconds",
    "a.ts + a.d < a.ts", "CORR(a.h, a.h) > 0", "a.ts - a.ts < 5 minutes", "a.d * 2 > a.d", "a.d / a.d > 1.5",
    "a.b IS NULL", "COALESCE(a.n, 0) = 1", "a.n IN (1, 2.5)", "a.k BETWEEN 'a' AND 'b'", "a.type = 'A'",
    "a.words IS NOT NULL", "LEAST(a.n, a.y) < 3", "NULLIF(a.k, 'x') IS NULL", "ABS(a.d) > 1 second",
]  # fmt: skip
BAD = [
    ("a.n = a.k", 19, "an integer and a string cannot be compared"),
    ("a.nn = 1", 19, "unknown attribute 'nn'"),
    ("a.ts > '2024-01-01'", 19, "a timestamp and a string cannot be compared"),
    ("a.d > 5", 19, "an interval and an integer cannot be compared"),
    ("a.h = a.h", 19, "a list of numbers and cannot be compared"),
    ("a.b = a.b", 19, "conditions cannot use"),
    ("a.n", 19, "a condition is true or false"),
    ("a.k + 1 > 2", 19, "'+' has no meaning between a string and an integer"),
    ("a.d * 1.5 > 1 second", 19, "'*' has no meaning between an interval and a floating-point number"),
    ("CORR(a.words, a.h) > 0", 24, "CORR takes a list of numbers"),
    ("LENGTH(a.n) > 0", 26, "LENGTH takes a string"),
    ("a.n LIKE 'x'", 19, "LIKE takes a string"),
    ("CASE WHEN a.n THEN 1 END = 1", 29, "WHEN takes a truth value"),
    ("CASE WHEN a.f THEN 1 ELSE 'x' END = 1", 19, "an integer and a string cannot be compared"),
    ("SUBSTR(a.k, a.y) = 'x'", 31, "SUBSTR takes an integer"),
]


def run(condition: str, within: str = "5 seconds", clauses: str = "") -> None:
    cepheid.check(cepheid.parse(f"PATTERN A a WHERE {condition} {clauses} WITHIN {within}"), SCHEMA)


@pytest.mark.parametrize("condition", GOOD)
def test_conditions_that_fit(condition: str) -> None:
    run(condition)


@pytest.mark.parametrize(("condition", "column", "message"), BAD)
def test_conditions_that_do_not(condition: str, column: int, message: str) -> None:
    with pytest.raises(cepheid.PatternError) as caught:
        run(condition)
    assert message in caught.value.problems[0].message
    assert caught.value.problems[0].column == column


def test_a_window_must_be_of_the_kind_of_the_time() -> None:
    with pytest.raises(cepheid.PatternError, match="holds timestamps, and 5 has no unit"):
        run("a.f", within="5")
    with pytest.raises(cepheid.PatternError, match="holds integers, and 5 seconds is a length of time"):
        cepheid.check(cepheid.parse("PATTERN A a WITHIN 5 seconds"), SCHEMA, time="n")
    cepheid.check(cepheid.parse("PATTERN A a WITHIN 5 events"), SCHEMA)


def test_partition_columns_must_exist() -> None:
    with pytest.raises(cepheid.PatternError, match="unknown attribute 'region'"):
        run("a.f", clauses="PARTITION BY k, region")


def test_partition_columns_must_have_values_that_can_be_equal() -> None:
    with pytest.raises(cepheid.PatternError, match="'h' is a list of numbers"):
        run("a.f", clauses="PARTITION BY h")


def test_ts_is_the_time_even_where_its_column_has_another_name() -> None:
    schema = pa.schema({"when": pa.timestamp("ns"), "type": pa.string()})
    pattern = cepheid.parse("PATTERN SEQ(A a, B b) WHERE b.ts - a.ts < 5 seconds WITHIN 1 minute")
    cepheid.check(pattern, schema, time="when")


def test_aggregates_of_what_they_cannot_aggregate() -> None:
    with pytest.raises(cepheid.PatternError, match="AVG takes a number"):
        cepheid.check(cepheid.parse("PATTERN KL(A a) WHERE AVG(a.k) > 1 WITHIN 5 seconds"), SCHEMA)


def test_missing_columns_of_the_events_are_all_named() -> None:
    with pytest.raises(cepheid.SchemaError) as caught:
        cepheid.check(cepheid.parse("PATTERN A a WITHIN 5"), SCHEMA, time="tss", type="kind", tie_breaker="f")
    assert str(caught.value).splitlines() == [
        "time='tss': the table of events has no such column; did you mean 'ts'?",
        "type='kind': the table of events has no such column; its columns are: ts, type, n, y, k, f, h, d, m, b, words",
        "tie_breaker='f': this column must hold timestamps or integers, and it holds bool",
    ]


def test_all_patterns_are_checked_together() -> None:
    patterns = cepheid.parse_all(
        "PATTERN A a WHERE a.p = 1 WITHIN 5 seconds; PATTERN A a WHERE a.q = 1 WITHIN 5 seconds"
    )
    with pytest.raises(cepheid.PatternError) as caught:
        cepheid.check(patterns, SCHEMA)
    assert [p.message for p in caught.value.problems] == ["unknown attribute 'p'", "unknown attribute 'q'"]
