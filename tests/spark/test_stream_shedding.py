"""Shedding in a query of Spark's: nothing is lost while there is no overload, and only what may be under one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import cepheid
from tests.spark.test_stream import Row, Stream, stream

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["stream"]

SCHEMA = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "x": pa.int64()})
PATTERNS = """
NAME often PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x PARTITION BY k WITHIN 60
RETURN a.ts AS one, b.ts AS two, c.ts AS three;
NAME alarm PATTERN SEQ(B b, C c) WHERE b.x = c.x PARTITION BY k WITHIN 60 RETURN b.ts AS one, c.ts AS two NEVER SHED;
NAME anywhere PATTERN SEQ(A a, C c) WHERE a.x + 8 < c.x WITHIN 20 RETURN a.ts AS one, c.ts AS two
"""


def made_events(count: int) -> list[Row]:
    rng = random.Random(3)
    return [{"ts": n, "type": rng.choice("ABC"), "k": n % 2, "x": rng.randrange(10)} for n in range(count)]


def matches(rows: list[Row]) -> dict[str, Counter[tuple[Any, ...]]]:
    found: dict[str, Counter[tuple[Any, ...]]] = {"often": Counter(), "alarm": Counter(), "anywhere": Counter()}
    for row in rows:
        found[row["pattern"]][row["one"], row["two"], row.get("three")] += 1
    return found


def test_armed_and_then_too_much(stream: Callable[[pa.Schema], Stream]) -> None:
    from cepheid.spark import match

    events = made_events(2_500)
    source = stream(SCHEMA).write(events[:500], events[500:1_000])

    def run(**shed: Any) -> tuple[dict[str, Counter[tuple[Any, ...]]], Counter[str]]:
        strategy = cepheid.HSpice(weights={"often": 2}, observations=500, **shed)
        frame = match(PATTERNS, source.read(), allowed_lateness=0, shards=1, shed=strategy)
        rows, progress = source.run(frame)
        counts: Counter[str] = Counter()
        for step in progress:
            row = step.observedMetrics.get("cepheid")
            counts.update({} if row is None else {name: value or 0 for name, value in row.asDict().items()})
        return matches([row for _, row in rows]), counts

    armed, counts = run(latency_bound="1 hour")
    assert armed == matches(cepheid.match(PATTERNS, pa.Table.from_pylist(events[:1_000], SCHEMA)).to_pylist())
    assert not counts["dropping per mille"]
    assert not counts["dropped events"] + counts["dropped pairs"] + counts["lost matches"]
    # Where all work takes too long, all that may be dropped is.
    source.write(*(events[start : start + 500] for start in range(1_000, 2_500, 500)))
    under, counts = run(latency_bound="1 ms")
    every = matches(cepheid.match(PATTERNS, pa.Table.from_pylist(events, SCHEMA)).to_pylist())
    rest = {name: found - armed[name] for name, found in every.items()}
    assert under["alarm"] == rest["alarm"] != Counter()
    for name in ("often", "anywhere"):
        assert not under[name] - rest[name]
    assert under["often"].total() < rest["often"].total()
    assert counts["dropping per mille"]
    assert counts["dropped events"] + counts["dropped pairs"]
    assert counts["overhead milliseconds"]


def test_a_table_can_wait(spark: SparkSession) -> None:
    from cepheid.spark import match

    frame = spark.createDataFrame([(1, "A", 1, 2)], "ts long, type string, k long, x long")
    with pytest.raises(ValueError, match="shed is for streams"):
        match("PATTERN A a WITHIN 10", frame, shed=cepheid.HSpice())
    with pytest.raises(TypeError, match="shed is a strategy"):
        match("PATTERN A a WITHIN 10", frame, shed=3)  # type: ignore[arg-type]
