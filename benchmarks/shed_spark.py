"""Does a stream on Spark keep its latency bound when more events come than it can take?

Spark on this machine, in local mode. Every quarter of a second a file of events comes, at a rate that can be taken for
some seconds and at three times that rate afterwards; as most of the work is on pairs of events in a window, that is
about nine times the work. What is measured is, for each micro-batch, how old the oldest of its events was when the
micro-batch had ended: over those that began in the second half of the overload.
"""

from __future__ import annotations

import datetime as dt
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cepheid
from cepheid.cli.bench import Result, Steps, Value
from cepheid.spark import match, session

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyspark.sql import SparkSession

CORES = 2
RATE = 4_000
TIMES = 3
"""So many times as many events come under overload."""
TICK = 0.25
BOUND = 4.0
KEYS = 20
WINDOW = 4
SETTINGS = {
    "spark.driver.memory": "3g",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": CORES,
    "spark.sql.streaming.numRecentProgressUpdates": 1000,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass":
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
}  # fmt: skip
STRATEGIES: dict[str, Any] = {
    "nothing is dropped": None,
    "hSPICE": cepheid.HSpice(latency_bound=BOUND),
    "cost-aware": cepheid.CostAware(latency_bound=BOUND),
}
PATTERNS = f"""
NAME rising PATTERN SEQ(A a, B b, C c) WHERE b.x - a.x > 0.9 AND c.x - b.x > 0.05 PARTITION BY k
WITHIN {WINDOW} seconds RETURN a.n AS a, b.n AS b, c.n AS c;
NAME alarm PATTERN SEQ(D d, E e) WHERE e.x - d.x > 0.5 PARTITION BY k WITHIN 2 seconds
RETURN d.n AS d, e.n AS e NEVER SHED
"""
SCHEMA = "ts timestamp, type string, k long, x double, n long"


def run(quick: bool, progress: Steps) -> Result:
    calm, over = (8.0, 10.0) if quick else (12.0, 30.0)
    names = list(STRATEGIES)[:2] if quick else list(STRATEGIES)
    rows: list[dict[str, Value]] = []
    spark = session("benchmark", cores=CORES, **{key.replace(".", "__"): value for key, value in SETTINGS.items()})
    spark.sparkContext.setLogLevel("OFF")
    try:
        for name in progress(names):
            rows.append({"shed": name, **_measured(spark, STRATEGIES[name], calm, over)})
    finally:
        spark.stop()
    notes = [
        f"the bound is {BOUND:g} s; {RATE:,} events a second for {calm:g} s, then {TIMES * RATE:,} for {over:g} s",
        "the recall is what the query itself estimates",
    ]
    return Result(rows, notes + (["a quick run"] if quick else []))


def _measured(spark: SparkSession, shed: Any, calm: float, over: float) -> dict[str, Value]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder) / "events"
        place.mkdir()
        events = spark.readStream.schema(SCHEMA).parquet(str(place))
        found = match(PATTERNS, events, allowed_lateness="0 seconds", shed=shed)
        writer = found.writeStream.format("noop").option("checkpointLocation", str(Path(folder) / "checkpoint"))
        query = writer.outputMode("append").start()
        try:
            _write(place, "first", 0, time.time(), RATE)
            while not any(step.numInputRows for step in query.recentProgress):  # until all is loaded
                if query.awaitTermination(1):
                    raise RuntimeError(f"the query ended: {query.exception()}")
            _feed(place, calm, over)
            query.awaitTermination(2)
        finally:
            query.stop()
        return _row([step for step in query.recentProgress if step.numInputRows], time.time() - 2 - over / 2)


def _feed(place: Path, calm: float, over: float) -> None:
    began, number = time.time(), RATE
    for tick in range(round((calm + over) / TICK)):
        due = began + (tick + 1) * TICK
        time.sleep(max(0.0, due - time.time()))
        count = round(RATE * TICK * (1 if tick * TICK < calm else TIMES))
        _write(place, f"{tick:05}", number, due, count)
        number += count


def _write(place: Path, name: str, number: int, until: float, count: int) -> None:
    rng = np.random.default_rng(number)
    times = np.linspace(until - TICK, until, count, endpoint=False)
    table = pa.table(
        {
            "ts": pa.array((times * 1e6).astype(np.int64)).cast(pa.timestamp("us", "UTC")),
            "type": pa.array(list("ABCDE")).take(pa.array(rng.choice(5, count, p=[0.33, 0.33, 0.32, 0.01, 0.01]))),
            "k": rng.integers(0, KEYS, count),
            "x": rng.random(count),
            "n": np.arange(number, number + count),
        }
    )
    hidden = place / f".{name}"
    pq.write_table(table, hidden)
    hidden.replace(place / f"{name}.parquet")


def _row(steps: list[Any], since: float) -> dict[str, Value]:
    def moment(text: str) -> float:
        return dt.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()

    def counted(step: Any) -> dict[str, int]:
        found: dict[str, int] = step.observedMetrics["cepheid"].asDict()
        return found

    late = [step for step in steps if moment(step.timestamp) >= since] or steps[-1:]
    took = [step.durationMs["triggerExecution"] / 1000 for step in late]
    ages = [moment(s.timestamp) + t - moment(s.eventTime["min"]) for s, t in zip(late, took, strict=True)]
    last = steps[-1]
    behind = moment(last.timestamp) + took[-1] - moment(last.eventTime["max"])
    matches = sum(counted(step)["matches"] for step in late)
    lost = sum(counted(step)["lost matches"] for step in late)
    return {
        "micro-batches": len(late),
        "seconds for one": statistics.median(took),
        "oldest event (s), median": statistics.median(ages),
        "the highest": max(ages),
        "newest at the end (s)": behind,
        "overhead (s)": statistics.median(counted(step)["overhead milliseconds"] for step in late) / 1000,
        "dropped (%)": statistics.mean(counted(step)["dropping per mille"] for step in late) / 10,
        "events/s": sum(step.numInputRows for step in late) / sum(took),
        "recall": matches / max(matches + lost, 1),
    }


def plot(result: Result, figure: Figure) -> None:
    axes = figure.subplots()
    names = [str(row["shed"]) for row in result.rows]
    places = np.arange(len(names))
    for offset, column in enumerate(("oldest event (s), median", "the highest")):
        axes.bar(places + 0.35 * (offset - 0.5), [float(row[column] or 0) for row in result.rows], 0.35, label=column)
    axes.axhline(BOUND, color="black", lw=1, label="bound")
    axes.set_xticks(places, names)
    axes.set(ylabel="seconds", yscale="log")
    axes.legend()
