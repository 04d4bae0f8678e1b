"""Real event data: one machine, a batch on Spark and a stream find the same matches.

The files are not part of the project. The environment variable CEPHEID_DATA names the folder that they are in.
"""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from tests.spark.long import long

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from cepheid.spark import match
from cepheid.spark.columns import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = os.environ.get("CEPHEID_DATA")
BATCHES = 6


@dataclass(frozen=True)
class Real:
    """A file, a pattern, and how late events come in the stream that is made of it."""

    file: str
    pattern: str
    lateness: Any
    rows: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "stocks, by ticker": Real(
        "stocks_1min.parquet",
        "PATTERN SEQ(Bar a, Bar b, Bar c) WHERE a.close > 1.004 * a.open AND b.close < 0.996 * b.open AND c.volume > 3 * b.volume PARTITION BY ticker WITHIN 20 minutes RETURN a.ticker, a.ts AS t1, b.ts AS t2, c.close",
        dt.timedelta(minutes=5),
        options={"type": None},
    ),
    "stocks, across tickers": Real(
        "stocks_1min.parquet",
        "PATTERN SEQ(AAPL a, NOT(MSFT m), GOOG g) WHERE a.close > a.open AND g.close > 1.0005 * g.open AND m.close > m.open WITHIN 5 minutes RETURN a.ts AS t1, g.ts AS t2, g.close",
        dt.timedelta(minutes=5),
        options={"type": "ticker"},
    ),
    "soccer": Real(
        "soccer_25hz.parquet",
        "PATTERN SEQ(Near a, Near b) USING skip_till_next WHERE a.x > 40 AND b.x > a.x + 3 PARTITION BY object WITHIN 2000 RETURN a.object, a.ts AS t1, b.x - a.x AS way",
        500,
        options={"type": None},
    ),
    "loop detectors": Real(
        "la_loop_speed.parquet",
        "PATTERN SEQ(S a, S b, NOT(S c)) WHERE a.speed > 60 AND b.speed < 15 AND a.sensor = b.sensor AND c.sensor = b.sensor AND c.speed > 40 WITHIN 30 minutes RETURN a.sensor, a.ts AS t1, b.ts AS t2, b.speed",
        dt.timedelta(minutes=20),
        options={"type": None},
    ),
    "traffic": Real(
        "aarhus_traffic.parquet",
        "PATTERN SEQ(T a, T b, T c) WHERE a.avg_speed > 60 AND b.avg_speed < 0.5 * a.avg_speed AND c.vehicle_count > 2 * b.vehicle_count + 5 PARTITION BY sensor WITHIN 20 minutes RETURN a.sensor, a.ts AS t1, b.ts AS t2, c.ts AS t3",
        dt.timedelta(minutes=10),
        rows=2_000_000,
        options={"type": None},
    ),
}  # fmt: skip


@long
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_machine_a_batch_and_a_stream(spark: SparkSession, tmp_path: Path, case: Real) -> None:
    if DATA is None or not (Path(DATA) / case.file).is_file():
        pytest.skip(f"there is no {case.file}: set CEPHEID_DATA to the folder that it is in")
    table = pq.read_table(Path(DATA) / case.file).slice(0, case.rows)
    schema = spark_schema(table.schema)
    wanted = counted(cepheid.match(case.pattern, table, **case.options).to_pylist())
    assert wanted.total() > 20

    files = written(table, tmp_path / "in", case.lateness)
    batch = match(case.pattern, spark.read.schema(schema).parquet(str(files)), **case.options)
    assert counted(batch.toArrow().to_pylist()) == wanted

    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))
    found = match(case.pattern, events, allowed_lateness=case.lateness, shards=2, **case.options)
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.option("path", str(tmp_path / "out")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert not any(step.observedMetrics["cepheid"]["late events"] for step in query.recentProgress)
    assert counted(spark.read.schema(found.schema).parquet(str(tmp_path / "out")).toArrow().to_pylist()) == wanted


def written(table: pa.Table, folder: Path, lateness: Any) -> Path:
    """The events in files of a micro-batch each, in an order in which none comes later than is allowed; and one at the
    end, far behind all others, that says that these are over."""
    folder.mkdir()
    ticks = table["ts"].cast(pa.int64()).to_numpy()
    late = lateness // dt.timedelta(microseconds=1) if isinstance(lateness, dt.timedelta) else lateness
    order = np.argsort(ticks + np.random.default_rng(0).integers(0, late, len(ticks)), kind="stable")
    arrived = table.take(pa.array(order))
    size = -(-table.num_rows // BATCHES)
    last = [
        pa.array([int(ticks.max()) + 10**11]).cast(f.type) if f.name == "ts" else pa.nulls(1, f.type)
        for f in table.schema
    ]
    parts = [
        *(arrived.slice(start, size) for start in range(0, len(ticks), size)),
        pa.Table.from_arrays(last, schema=table.schema),
    ]
    for number, part in enumerate(parts):
        path = folder / f"{number}.parquet"
        pq.write_table(part, path)
        os.utime(path, (1_600_000_000 + number,) * 2)  # the order in which they are read
    return folder


def counted(rows: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(repr({name: plain(value) for name, value in row.items()}) for row in rows)


def plain(value: Any) -> Any:
    """Spark's times are in a zone, UTC here."""
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
