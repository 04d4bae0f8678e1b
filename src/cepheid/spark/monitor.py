"""A model over streams of Spark: nodes are keys with state, and a coordinator is a query of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout

from cepheid.monitor.events import MonitorEvent
from cepheid.monitor.kernels import Floats
from cepheid.monitor.messages import Order, Report
from cepheid.monitor.model import Settings, Zone
from cepheid.monitor.remote import RemoteCoordinator, RemoteNode
from cepheid.spark.monitor_channels import Channel

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState


def monitor(
    df: DataFrame,
    *,
    node: str,
    response: str,
    features: Sequence[str],
    time: str,
    names: Sequence[str],
    epsilon: float,
    channel: Channel,
    checkpoint: str,
    window: int | None = None,
    ridge: float = 0.0,
    ar1: float | None = None,
    zone: Zone = "residual",
    warmup: int | None = None,
) -> StreamingQuery:
    """Starts the nodes of a least-squares model over a stream: each value of the column ``node`` is one.

    ``names`` are all of them. In a micro-batch a node takes its observations in the order of ``time``, after the models
    that have come. What it reports goes to ``channel``, where a coordinator reads it (:func:`coordinate`), in this
    process or in another. The state of nodes is in ``checkpoint``: a query that starts again goes on exactly there.
    """
    settings = Settings(len(names), len(features), epsilon, window, ridge, ar1, zone)
    missing = [name for name in (node, response, time, *features) if name not in df.columns]
    if missing:
        raise ValueError(f"the following columns were not found: {missing}; there are {df.columns}")
    channel.prepare(df.sparkSession)
    task = _NodeTask(settings, (window or 10 * len(features)) if warmup is None else warmup)
    type_ = df.schema[time].dataType
    observed = df.select(
        F.col(node).cast("string").alias("node"),
        F.col(time).alias("at"),
        F.array(*(F.col(name).cast("double") for name in features)).alias("x"),
        F.col(response).cast("double").alias("y"),
        F.lit(None).cast("string").alias("message"),
    )
    # A model is one message to each node.
    orders = channel.orders(df.sparkSession).select(
        F.explode(F.array(*(F.lit(name) for name in names))).alias("node"),
        F.lit(None).cast(type_).alias("at"),
        F.lit(None).cast("array<double>").alias("x"),
        F.lit(None).cast("double").alias("y"),
        F.col("value").alias("message"),
    )
    reports = (
        observed.unionByName(orders)
        .groupBy("node")
        .applyInPandasWithState(
            task.run, "node string, value string", "kept binary", "append", GroupStateTimeout.NoTimeout
        )
    )
    return channel.write_reports(reports, checkpoint)


@dataclass(frozen=True)
class _NodeTask:
    """What is done with a node's rows of a micro-batch."""

    settings: Settings
    warmup: int

    def run(self, key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        import numpy as np
        import pandas as pd

        (name,) = key
        if state.exists:
            node = RemoteNode.restore(name, self.settings, self.warmup, bytes(state.get[0]))
        else:
            node = RemoteNode(name, self.settings, self.warmup)
        rows = pd.concat(list(frames))
        reports: list[Report] = []
        orders = [Order.from_json(text, self.settings) for text in rows["message"].dropna()]
        for order in sorted((order for order in orders if order is not None), key=lambda order: order.number):
            reports += node.follow(order)
        seen = rows[rows["message"].isna()].sort_values("at", kind="stable")
        if len(seen):
            reports += node.observe(np.stack(seen["x"].to_numpy()), seen["y"].to_numpy(np.float64))
        state.update((node.snapshot(),))
        yield pd.DataFrame({"node": [name] * len(reports), "value": [report.to_json() for report in reports]})


class Coordination:
    """A coordinator that runs: the model in force, and what has happened."""

    def __init__(self, spark: SparkSession, settings: Settings, names: Sequence[str], channel: Channel) -> None:
        self._spark = spark
        self._channel = channel
        self._coordinator = RemoteCoordinator(settings, names, channel.last_order(spark))
        self._folder = tempfile.TemporaryDirectory(prefix="cepheid-coordinator-")
        self._seen = 0
        self.on_event: Callable[[MonitorEvent], None] | None = None
        # What it knows it has read from the reports, so that each start reads all of them: no checkpoint is needed.
        writer = channel.reports(spark).writeStream.foreachBatch(self._receive).queryName("cepheid-coordinator")
        self.query = writer.option("checkpointLocation", self._folder.name).start()

    @property
    def model(self) -> Floats | None:
        """β₀."""
        return self._coordinator.model

    @property
    def messages(self) -> int:
        """Reports, and orders to each node, since it started."""
        return self._coordinator.messages

    @property
    def events(self) -> Sequence[MonitorEvent]:
        return self._coordinator.events

    def stop(self) -> None:
        self.query.stop()
        self._folder.cleanup()

    def _receive(self, batch: DataFrame, number: int) -> None:
        found = [Report.from_json(row["value"]) for row in batch.collect()]
        # A node's reports may come in any order within a micro-batch.
        reports = sorted((report for report in found if report is not None), key=lambda report: report.number)
        order = self._coordinator.receive(reports)
        if order is not None:
            self._channel.publish(self._spark, order.number, order.to_json())
        for event in self._coordinator.events[self._seen :]:
            self._seen += 1
            if self.on_event is not None:
                self.on_event(event)


def coordinate(
    spark: SparkSession,
    *,
    names: Sequence[str],
    dimension: int,
    epsilon: float,
    channel: Channel,
    window: int | None = None,
    ridge: float = 0.0,
    ar1: float | None = None,
    zone: Zone = "residual",
) -> Coordination:
    """Starts the coordinator of :func:`monitor`, with the same settings. There is one at a time; it may be killed and
    started again, here or elsewhere: it reads what nodes have reported and gives them a new model.
    """
    settings = Settings(len(names), dimension, epsilon, window, ridge, ar1, zone)
    channel.prepare(spark)
    return Coordination(spark, settings, names, channel)
