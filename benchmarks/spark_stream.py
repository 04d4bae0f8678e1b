"""How long does a micro-batch of a stream take, against its events, the state, the operator, and over time?

Spark on this machine, in local mode, with a source that makes events of three types in the JVM; each key comes again
every ten seconds of event time. The pattern is a keyed sequence with a selective condition. A micro-batch is one second
of event time and the next one starts at once, so that with n events in it and t seconds for it a job holds n/t events
a second. Each figure is the median over micro-batches, after some to warm up.

The operators: mapInArrow is what moving the rows to Python and back costs; the stateful ones keep each micro-batch's
rows as one value of bytes for each shard, and look for nothing. The last ones are the whole of a match.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from cepheid.cli.bench import Result, Steps, Value
from cepheid.spark import match, session
from cepheid.spark.pack import Packer, Target, to_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CORES = 2
SHARDS = 2
RATE = 100_000
KEYS = 1_000_000
SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": SHARDS,
    "spark.sql.streaming.numRecentProgressUpdates": 1000,
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass":
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
}  # fmt: skip
"""For checkpoints on this machine; the last one is not for an object store."""


@dataclass(frozen=True)
class Case:
    what: str
    value: str | int
    rate: int = RATE
    window: int = 20
    hosts: int = CORES
    query: Callable[[DataFrame, Case], DataFrame] | None = None
    batches: int = 20


def run(quick: bool, progress: Steps) -> Result:
    spark = session("benchmark", cores=CORES, **{key.replace(".", "__"): value for key, value in SETTINGS.items()})
    spark.sparkContext.setLogLevel("OFF")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # Spark's workers cannot import this file
    rows: list[dict[str, Value]] = []
    try:
        for case in progress(_cases(quick), lambda case: f"{case.what} {case.value}"):
            rows += _measured(spark, case)
    finally:
        spark.stop()
    notes = ["a quick run: fewer and smaller micro-batches"] if quick else []
    for goal in (row for row in rows if row["changes"] == "over time"):
        notes.append(
            f"over time: {goal['events/s']:,.0f} events/s with {KEYS:,} keys; the slowest micro-batch took "
            f"{goal['slowest']:.2f} s"
        )
        break
    return Result(rows, notes)


def _cases(quick: bool) -> list[Case]:
    if quick:
        return [
            Case("events", 10_000, rate=10_000, batches=4),
            Case("operator", "stateful, packed", rate=10_000, query=_packed, batches=4),
        ]
    return [
        *(Case("events", rate, rate=rate) for rate in (1_000, 10_000, 30_000, 100_000, 200_000)),
        *(Case("window", window, window=window) for window in (1, 5, 20, 60)),
        Case("operator", "mapInArrow only", query=_mapped),
        Case("operator", "transformWithStateInPandas, rows packed", query=_packed),
        Case("operator", "transformWithStateInPandas, rows as they are", query=_unpacked),
        Case("operator", "applyInPandasWithState, a count only", query=_counted),
        Case("operator", "match, sessions in the workers", hosts=0),
        Case("operator", "match", hosts=CORES),
        Case("over time", 100, batches=100),
    ]


def _measured(spark: SparkSession, case: Case) -> list[dict[str, Value]]:
    """A row; over time, one for each ten micro-batches."""
    spark.conf.set("spark.cepheid.hosts", case.hosts)
    # The window has to be full before it is measured.
    warm = 5 + (case.window + 1 if case.query is None else 0)
    steps = _progress(spark, case, warm + case.batches)[warm:]
    parts = [steps]
    if case.what == "over time":
        parts = [steps[start : start + 10] for start in range(0, len(steps), 10)]
    return [_row(case, part, number) for number, part in enumerate(parts)]


def _row(case: Case, steps: list[Any], number: int) -> dict[str, Value]:
    seconds = [step.durationMs["triggerExecution"] / 1000 for step in steps]
    found = [step.observedMetrics.get("cepheid") for step in steps]
    counted = [row.asDict() for row in found if row is not None]
    state = [operator for step in steps for operator in step.stateOperators]
    return {
        "changes": case.what,
        "value": (number + 1) * 10 if case.what == "over time" else case.value,
        "seconds": statistics.median(seconds),
        "slowest": max(seconds),
        "events/s": case.rate / statistics.median(seconds),
        "log (MB)": statistics.median(c["kept bytes"] for c in counted) / 1e6 if counted else None,
        "state rows": state[-1].numRowsTotal if state else None,
        "restored": sum(c["restored"] for c in counted) if counted else None,
        "matches": sum(c["matches"] for c in counted) if counted else None,
    }


def _progress(spark: SparkSession, case: Case, batches: int) -> list[Any]:
    """What Spark says of so many micro-batches."""
    found = (case.query or _matched)(_events(spark, case), case)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        writer = found.writeStream.format("noop").option("checkpointLocation", str(Path(folder) / "checkpoint"))
        query = writer.outputMode("append").start()
        try:
            while len(query.recentProgress) < batches:
                if query.awaitTermination(1):
                    raise RuntimeError(f"the query ended: {query.exception()}")
        finally:
            query.stop()
        return list(query.recentProgress)[:batches]


def _events(spark: SparkSession, case: Case) -> DataFrame:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", case.rate)
    rows = source.option("numPartitions", CORES).option("advanceMillisPerBatch", 1000).load()
    within = F.make_dt_interval(secs=F.pmod(F.col("value"), F.lit(1000)) / F.lit(1000.0))
    kind = F.element_at(F.array(*map(F.lit, "ABC")), F.pmod(F.hash("value"), F.lit(3)) + 1)
    return rows.select(
        (F.col("timestamp") + within).alias("ts"),
        kind.alias("type"),
        F.pmod(F.col("value"), F.lit(10 * case.rate)).alias("k"),
        (F.pmod(F.xxhash64("value"), F.lit(1_000_000)) / 1e6).alias("x"),
    )


def _matched(events: DataFrame, case: Case) -> DataFrame:
    pattern = f"PATTERN SEQ(A a, B b) WHERE b.x - a.x > 0.9 PARTITION BY k WITHIN {case.window} seconds RETURN a.k, b.x"
    return match(pattern, events, allowed_lateness="0 seconds")


# --- other ways, for comparison


def _with_shard(events: DataFrame) -> DataFrame:
    shard = F.pmod(F.hash("k"), F.lit(SHARDS)).cast("int")
    return events.withWatermark("ts", "0 seconds").select("*", shard.alias("shard"))


def _identity(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _mapped(events: DataFrame, case: Case) -> DataFrame:
    rows = _with_shard(events)
    return rows.mapInArrow(_identity, rows.schema)


def _packed(events: DataFrame, case: Case) -> DataFrame:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "type": pa.string(), "k": pa.int64(), "x": pa.float64()})
    packer = Packer((Target((0, 1, 2, 3), schema, 4, None, tuple(range(SHARDS))),))
    packed = _with_shard(events).mapInArrow(packer.run, "shard long, events binary")
    return packed.groupBy("shard").transformWithStateInPandas(_Log(packed=True), "rows long", "append", "EventTime")


def _unpacked(events: DataFrame, case: Case) -> DataFrame:
    rows = _with_shard(events).groupBy("shard")
    return rows.transformWithStateInPandas(_Log(packed=False), "rows long", "append", "EventTime")


def _counted(events: DataFrame, case: Case) -> DataFrame:
    def count(key: Any, frames: Any, state: Any) -> Iterator[Any]:
        import pandas as pd

        total = sum(len(frame) for frame in frames)
        state.update(((state.get[0] if state.exists else 0) + total,))
        yield pd.DataFrame({"rows": [total]})

    rows = _with_shard(events).groupBy("shard")
    return rows.applyInPandasWithState(count, "rows long", "rows long", "append", "NoTimeout")


class _Log(StatefulProcessor):
    """Keeps the rows of each micro-batch, for twenty of them."""

    def __init__(self, *, packed: bool) -> None:
        self._packed = packed

    def init(self, handle: Any) -> None:
        self._next = handle.getValueState("next", "number long")
        self._log = handle.getMapState("log", "number long", "events binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        import pandas as pd

        frames = list(rows)
        if self._packed:
            value = b"".join(bytes(part) for frame in frames for part in frame["events"])
        else:
            value = to_bytes(pa.concat_tables([pa.Table.from_pandas(frame) for frame in frames]))
        number = self._next.get()[0] if self._next.exists() else 0
        self._log.updateValue((number,), (value,))
        if number >= 20:
            self._log.removeKey((number - 20,))
        self._next.update((number + 1,))
        yield pd.DataFrame({"rows": [len(value)]})

    def close(self) -> None:
        pass


def plot(result: Result, figure: Figure) -> None:
    figure.set_size_inches(9, 7)
    panels = figure.subplots(2, 2)
    labels = {"events": "events in a micro-batch", "window": "window (seconds of 100,000 events each)"}
    for axes, (what, label) in zip(panels[0], labels.items(), strict=True):
        rows = result.where(changes=what)
        axes.plot([r["value"] for r in rows], [r["seconds"] for r in rows], marker="o", label="median")
        axes.plot([r["value"] for r in rows], [r["slowest"] for r in rows], marker="_", ls="", label="slowest")
        axes.set(xlabel=label, ylabel="seconds", xscale="log", ylim=(0, None))
    panels[0, 0].legend()
    rows = result.where(changes="operator")[::-1]
    panels[1, 0].barh([str(row["value"]) for row in rows], [row["seconds"] for row in rows])
    panels[1, 0].set(xlabel="seconds")
    panels[1, 0].tick_params("y", labelsize=7)
    rows = result.where(changes="over time")
    panels[1, 1].plot([r["value"] for r in rows], [r["seconds"] for r in rows], marker="o", label="micro-batch (s)")
    panels[1, 1].plot(
        [r["value"] for r in rows], [float(r["log (MB)"] or 0) / 100 for r in rows], marker="s", label="log (100 MB)"
    )
    panels[1, 1].set(xlabel="micro-batches", ylim=(0, None))
    panels[1, 1].legend()
