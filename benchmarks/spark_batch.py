"""How many rows a second does a batch on Spark match, against moving them to Python and back, and against other ways?

Spark on this machine, in local mode, and a Parquet file of events of three types, all of which the pattern asks for, so
that every row has to get to Python. The pattern is a keyed sequence of three events with conditions that few satisfy.
Its window has about ten events of each type and key, whatever the number of keys, so that a row is the same work. One
key stands for a pattern without PARTITION BY, and for the most skewed of all.

- identity: mapInArrow that hands back what it gets, with Spark's settings as they come.
- identity, tuned: the same with the setting of cepheid.spark.session(): no limit on the bytes of an Arrow batch. No
  match can be faster that sees all rows.
- match, untuned: the whole of it, with the job that looks at how the rows are spread, with Spark's settings.
- match: the same in a session of cepheid.spark.session().
- match, one type in ten: the same, with nine times as many rows of a type that the pattern does not ask for.
- self-join: the same pattern in Spark's SQL.
- Python loop: groupBy(key).applyInPandas with a loop over the rows of a key.

The last two get fewer rows where they would run for hours; that they find as many matches is checked. Each figure
is the best of four runs after one to warm up, and the ways take turns; the other ways are tried on two cores only.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from cepheid.cli.bench import Result, Steps, Value
from cepheid.spark import match, session
from cepheid.spark.session import BATCH_BYTES, UNLIMITED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = 6_000_000
KEYS = (1, 1_000, 1_000_000)
RUNS = 4
TIMES = 400
"""How many times as large as the one before it each value is: so that few rows match."""
PAIRS = 200_000_000
"""A self-join that has to look at more is given fewer rows."""
SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
}
UNTUNED = ("identity", "match, untuned")


@dataclass(frozen=True)
class Case:
    cores: int
    keys: int
    rows: int


Way: TypeAlias = Callable[[DataFrame, Case], DataFrame]


def run(quick: bool, progress: Steps) -> Result:
    rows: list[dict[str, Value]] = []
    cores, sizes = ((2,), (1_000,)) if quick else ((1, 2), KEYS)
    cases = [Case(some, keys, 100_000 if quick else ROWS) for some in cores for keys in sizes]
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # Spark's workers cannot import this file
    with tempfile.TemporaryDirectory() as folder:
        for case in progress(cases, lambda case: f"{case.keys:,} keys, {case.cores} cores"):
            rows += _measured(case, Path(folder), 1 if quick else RUNS)
    notes = ["a quick run: so few rows that most of the time is not spent on them"] if quick else []
    for way, column in (("match, untuned", "of identity"), ("match", "of identity"), ("match", "of identity, tuned")):
        least = min(float(row[column] or 0) for row in rows if row["way"] == way)
        notes.append(f"{way}: at least {least:.0%} {column}")
    return Result(rows, notes)


def _measured(case: Case, folder: Path, runs: int) -> list[dict[str, Value]]:
    settings = {key.replace(".", "__"): value for key, value in SETTINGS.items()}
    spark = session("benchmark", cores=case.cores, spark__sql__shuffle__partitions=2 * case.cores, **settings)
    spark.sparkContext.setLogLevel("OFF")
    try:
        events = _events(spark, folder, case, case.rows)
        ways = {
            "identity": (_identity, events, case.rows),
            "match, untuned": (_match, events, case.rows),
            "identity, tuned": (_identity, events, case.rows),
            "match": (_match, events, case.rows),
        }
        if case.cores == 2:
            ways |= _other_ways(spark, folder, case, events)
        best: dict[str, float] = {}
        for turn in range(runs + 1):
            for name, (way, some, count) in ways.items():
                if turn > 1 and way not in (_identity, _match):
                    continue  # they are too far away for another run to matter
                _tune(spark, name not in UNTUNED)
                start = time.perf_counter()
                way(some, case).write.format("noop").mode("overwrite").save()
                if turn > 0:
                    best[name] = max(best.get(name, 0.0), count / (time.perf_counter() - start))
        _tune(spark, True)
        matches = _count(_match(events, case))
    finally:
        spark.stop()
    return [
        {
            "cores": case.cores,
            "keys": case.keys,
            "way": name,
            "rows": count,
            "rows/s": best[name],
            "of identity": best[name] / best["identity"],
            "of identity, tuned": best[name] / best["identity, tuned"],
            "matches": matches if name == "match" else None,
        }
        for name, (_, _, count) in ways.items()
    ]


def _tune(spark: SparkSession, tuned: bool) -> None:
    if tuned:
        spark.conf.set(BATCH_BYTES, UNLIMITED)
    else:
        spark.conf.unset(BATCH_BYTES)


def _other_ways(
    spark: SparkSession, folder: Path, case: Case, events: DataFrame
) -> dict[str, tuple[Way, DataFrame, int]]:
    found: dict[str, tuple[Way, DataFrame, int]] = {}
    if case.keys == 1_000:
        others = events.crossJoin(spark.range(9)).withColumn("type", F.lit("X")).drop("id")
        events.union(others).write.mode("overwrite").parquet(str(folder / "diluted"))
        found["match, one type in ten"] = _match, spark.read.parquet(str(folder / "diluted")), 10 * case.rows
    joined = min(case.rows, int((9 * PAIRS * case.keys) ** 0.5))
    looped = min(case.rows, 200_000 if case.keys < 100_000 else 20_000)
    for name, way, rows in (("self-join", _self_join, joined), ("Python loop", _loop, looped)):
        some = _events(spark, folder, case, rows)
        one, other = _count(way(some, case)), _count(_match(some, case))
        assert one == other, f"{name} finds {one} matches in {rows} rows, match finds {other}"
        found[name] = way, some, rows
    return found


def _count(found: DataFrame) -> int:
    return found.count()


def _events(spark: SparkSession, folder: Path, case: Case, rows: int) -> DataFrame:
    """The first of the rows, from a file. Its row groups are of a size that lets all cores take part."""
    path = folder / f"{case.keys}-{rows}.parquet"
    if not path.exists():
        rng = np.random.default_rng(case.keys)
        table = pa.table(
            {
                "ts": pa.array(1_700_000_000_000_000 + 1_000 * np.arange(rows), pa.timestamp("us", "UTC")),
                "type": pa.array(np.array(list("ABC"))[rng.integers(0, 3, rows)]),
                "k": rng.integers(0, case.keys, rows),
                "x": rng.random(rows),
                "y": rng.random(rows),
            }
        )
        pq.write_table(table, path, row_group_size=max(1, rows // 16))
    return spark.read.parquet(str(path))


def _window(case: Case) -> int:
    """In milliseconds, of which each has an event."""
    return 30 * case.keys


# --- the ways


def _identity(events: DataFrame, case: Case) -> DataFrame:
    return events.mapInArrow(_same, events.schema)


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _match(events: DataFrame, case: Case) -> DataFrame:
    pattern = (
        f"PATTERN SEQ(A a, B b, C c) WHERE b.x > {TIMES} * a.x AND c.y > {TIMES} * b.y PARTITION BY k "
        f"WITHIN {_window(case)} milliseconds RETURN a.k, c.y"
    )
    return match(pattern, events)


def _self_join(events: DataFrame, case: Case) -> DataFrame:
    a, b, c = (events.filter(f"type = '{type_}'").alias(type_.lower()) for type_ in "ABC")
    within = f"INTERVAL '{_window(case) / 1000:.3f}' SECOND"
    pairs = a.join(b, F.expr(f"a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + {within} AND b.x > {TIMES} * a.x"))
    found = pairs.join(c, F.expr(f"c.k = a.k AND c.ts > b.ts AND c.ts <= a.ts + {within} AND c.y > {TIMES} * b.y"))
    return found.selectExpr("a.ts AS start", "c.ts AS end", "a.k", "c.y")


def _loop(events: DataFrame, case: Case) -> DataFrame:
    window = 1_000_000 * _window(case)  # in nanoseconds, as pandas has it

    def find(frame: Any) -> Any:
        import pandas as pd

        frame = frame.sort_values("ts")
        times = frame["ts"].astype("datetime64[ns]").astype("int64")
        firsts: list[tuple[int, float]] = []
        seconds: list[tuple[int, int, float]] = []
        found = []
        for ts, type_, k, x, y in zip(times, frame["type"], frame["k"], frame["x"], frame["y"], strict=True):
            if type_ == "A":
                firsts = [*(a for a in firsts if ts - a[0] <= window), (ts, x)]
            elif type_ == "B":
                seconds = [s for s in seconds if ts - s[0] <= window]
                seconds += [(a, ts, y) for a, ax in firsts if a < ts and ts - a <= window and x > TIMES * ax]
            else:
                found += [(a, ts, k, y) for a, b, by in seconds if b < ts and ts - a <= window and y > TIMES * by]
        return pd.DataFrame(found, columns=["start", "end", "k", "y"])

    return events.groupBy("k").applyInPandas(find, "start long, end long, k long, y double")


def plot(result: Result, figure: Figure) -> None:
    ways = list(dict.fromkeys(str(row["way"]) for row in result.rows))
    cores = sorted({int(row["cores"] or 0) for row in result.rows}, reverse=True)
    panels = figure.subplots(1, len(cores), sharey=True, squeeze=False)[0]
    for axes, count in zip(panels, cores, strict=True):
        for way in ways:
            rows = result.where(cores=count, way=way)
            axes.plot([r["keys"] for r in rows], [r["rows/s"] for r in rows], marker="o", label=way)
        axes.set(title=f"{count} core{'s' if count > 1 else ''}", xlabel="keys", xscale="log", yscale="log")
    panels[0].set(ylabel="rows/s")
    panels[0].legend(fontsize=8)
