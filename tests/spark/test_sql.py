"""The table function finds what ``match`` finds, and says what is wrong with a call."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import cepheid
from tests.contracts.test_engine_is_exact import canonical
from tests.spark.test_batch import stream, without_zone

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from pyspark.errors import PySparkException
from pyspark.sql import Row

from cepheid.spark import register
from cepheid.spark.sql import _array

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATTERN = "PATTERN SEQ(A a, B b) WHERE a.x < b.x PARTITION BY k WITHIN 40 RETURN a.k, b.x - a.x AS gain"


@pytest.fixture
def sql(spark: SparkSession) -> Any:
    """Runs a call of the function on a view with the events of a table."""

    def run(call: str, table: pa.Table | None = None) -> list[dict[str, Any]]:
        frame = spark.createDataFrame(stream() if table is None else table)
        frame.repartition(3).createOrReplaceTempView("events")
        rows: list[dict[str, Any]] = spark.sql(f"SELECT * FROM cepheid_match({call})").toArrow().to_pylist()
        return rows

    register(spark)
    yield run
    spark.catalog.dropTempView("events")


@pytest.mark.parametrize(
    "table",
    [
        "TABLE(events) PARTITION BY k ORDER BY (ts)",
        "TABLE(events) PARTITION BY pmod(k, 3) ORDER BY (ts)",
        "TABLE(events) WITH SINGLE PARTITION ORDER BY (ts)",
    ],
)
def test_the_matches_of_one_machine(sql: Any, table: str) -> None:
    found = sql(f"{table}, '{PATTERN}'")
    assert found
    assert canonical(found) == canonical(cepheid.match(PATTERN, stream()).to_pylist())


def test_the_function_can_spread_the_rows_itself(sql: Any) -> None:
    wanted = canonical(cepheid.match(PATTERN, stream()).to_pylist())
    assert canonical(sql(f"TABLE(events), '{PATTERN}', shards => 3")) == wanted
    everywhere = "PATTERN SEQ(A a, B b) WITHIN 3"
    wanted = canonical(cepheid.match(everywhere, stream(), tie_breaker="seq").to_pylist())
    assert canonical(sql(f"TABLE(events), '{everywhere}', shards => 3, tie_breaker => 'seq'")) == wanted


def test_several_patterns_and_times(sql: Any) -> None:
    micros = [1_700_000_000_000_000 + 1_000_000 * time for time in stream()["ts"].to_pylist()]
    table = stream().set_column(0, "ts", pa.array(micros, pa.timestamp("us", "UTC")))
    patterns = (
        "NAME up PATTERN SEQ(A a, B b) WHERE a.x < b.x PARTITION BY k WITHIN 9 seconds RETURN b.ts - a.ts AS took; "
        "NAME next PATTERN SEQ(A a, KL(B b)) USING skip_till_next PARTITION BY k WITHIN 9 seconds RETURN a.x, b.x AS xs"
    )
    found = sql(f"TABLE(events), '{patterns}', shards => 2", table)
    assert {row["pattern"] for row in found} == {"up", "next"}
    assert canonical(without_zone(found)) == canonical(without_zone(cepheid.match(patterns, table).to_pylist()))
    assert all(isinstance(row["start"], dt.datetime) for row in found)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("'no table', 'PATTERN A a WITHIN 5'", "the first argument of cepheid_match is a table"),
        ("TABLE(events) WITH SINGLE PARTITION ORDER BY (ts), 7", "is the text of a pattern"),
        ("TABLE(events) WITH SINGLE PARTITION ORDER BY (ts), 'PATTERN SEQ(A a'", "PATTERN SEQ"),
        ("TABLE(events) WITH SINGLE PARTITION ORDER BY (ts), 'PATTERN A a WHERE a.xx = 1 WITHIN 5'", "xx"),
        ("TABLE(events), 'PATTERN A a WITHIN 5', shard => 2", "did you mean 'shards'"),
        ("TABLE(events), 'PATTERN A a WITHIN 5', shards => 0", "shards is a whole number, 1 or more, got 0"),
        ("TABLE(events), 'PATTERN A a WITHIN 5', shards => '8'", "shards is a whole number, 1 or more, got '8'"),
        ("TABLE(events), 'PATTERN A a WITHIN 5', time => 5", "time is the name of a column, as text: .* got 5"),
        ("TABLE(events), 'PATTERN A a WITHIN 5', time => NULL", "time is the name of a column, as text: .* got None"),
        ("TABLE(events) PARTITION BY k ORDER BY (x), 'PATTERN A a WITHIN 5'", "not in the order of time"),
        ("TABLE(events), 'PATTERN A a WITHIN 5'", "lies in several pieces|not in the order of time"),
    ],
)
def test_what_is_wrong_is_said(sql: Any, call: str, said: str) -> None:
    with pytest.raises(PySparkException, match=said):
        sql(call)


def test_maps_and_times_within_other_columns(sql: Any) -> None:
    at = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    more = pa.struct({"at": pa.timestamp("us", "UTC"), "tags": pa.map_(pa.string(), pa.int64())})
    columns = {
        "ts": pa.array([1, 2]),
        "type": pa.array(["A", "B"]),
        "more": pa.array([{"at": at, "tags": [("x", 1)]}, {"at": None, "tags": None}], more),
        "times": pa.array([[at], None], pa.list_(pa.timestamp("us", "UTC"))),
        "m": pa.array([[("y", 2)], []], pa.map_(pa.string(), pa.int64())),
    }
    pattern = "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.more AS one, b.more AS other, a.times AS times, a.m AS m"
    (found,) = sql(f"TABLE(events) WITH SINGLE PARTITION ORDER BY (ts), '{pattern}'", pa.table(columns))
    assert found["one"] == {"at": at, "tags": [("x", 1)]}
    assert found["other"] == {"at": None, "tags": None}
    assert (found["times"], found["m"]) == ([at], [("y", 2)])


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone of a process cannot be set here")
def test_times_come_in_the_zone_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    type_ = pa.struct(
        {"at": pa.timestamp("us", "UTC"), "all": pa.list_(pa.timestamp("us", "UTC")), "far": pa.timestamp("us")}
    )
    moments = [
        dt.datetime(2024, 7, 1, 12, tzinfo=dt.timezone.utc),
        dt.datetime(2024, 11, 3, 6, 30, tzinfo=dt.timezone.utc),
    ]
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        for moment in moments:  # of the second one there are two there
            local = dt.datetime.fromtimestamp(moment.timestamp())
            (found,) = _array([Row(at=local, all=[local, None], far=local)], type_, ticks=False).to_pylist()
            assert found == {"at": moment, "all": [moment, None], "far": local}
    finally:
        monkeypatch.undo()
        time.tzset()
