"""The two ways between nodes and coordinator: violations up, models down. Topics of Kafka, or folders."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from cepheid.monitor.messages import EMPTY


class Channel(Protocol):
    """Messages are text. Reports come at least once, and stay: a coordinator that starts again reads all of them."""

    def prepare(self, spark: SparkSession) -> None:
        """Make what is not there yet."""

    def write_reports(self, reports: DataFrame, checkpoint: str) -> StreamingQuery:
        """Send a stream with the columns node and value."""

    def reports(self, spark: SparkSession) -> DataFrame:
        """A stream with the column value, from the first report on."""

    def publish(self, spark: SparkSession, number: int, order: str) -> None:
        """Send an order to all nodes."""

    def orders(self, spark: SparkSession) -> DataFrame:
        """A stream with the column value."""

    def last_order(self, spark: SparkSession) -> int:
        """The number of the last order that was given; 0 if none was."""


@dataclass(frozen=True)
class KafkaChannel:
    """Two topics of a broker. Reports have the node as their key: a topic that is compacted keeps enough of them."""

    servers: str
    violations: str = "violations"
    models: str = "models"

    def prepare(self, spark: SparkSession) -> None:
        for topic in (self.violations, self.models):
            self._send(spark, topic, "", EMPTY)

    def write_reports(self, reports: DataFrame, checkpoint: str) -> StreamingQuery:
        rows = reports.select(F.col("node").alias("key"), "value").writeStream.format("kafka")
        rows = rows.option("kafka.bootstrap.servers", self.servers).option("topic", self.violations)
        return rows.option("checkpointLocation", checkpoint).queryName("cepheid-nodes").start()

    def reports(self, spark: SparkSession) -> DataFrame:
        return self._stream(spark, self.violations)

    def publish(self, spark: SparkSession, number: int, order: str) -> None:
        self._send(spark, self.models, str(number), order)

    def orders(self, spark: SparkSession) -> DataFrame:
        return self._stream(spark, self.models)

    def last_order(self, spark: SparkSession) -> int:
        rows = (
            spark.read.format("kafka").option("kafka.bootstrap.servers", self.servers).option("subscribe", self.models)
        )
        values = rows.load().select(F.max(F.get_json_object(F.col("value").cast("string"), "$.number").cast("long")))
        found = values.first()
        return 0 if found is None or found[0] is None else int(found[0])

    def _stream(self, spark: SparkSession, topic: str) -> DataFrame:
        rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        rows = rows.option("subscribe", topic).option("startingOffsets", "earliest")
        return rows.load().select(F.col("value").cast("string").alias("value"))

    def _send(self, spark: SparkSession, topic: str, key: str, value: str) -> None:
        rows = spark.createDataFrame([(key, value)], "key string, value string").write.format("kafka")
        rows.option("kafka.bootstrap.servers", self.servers).option("topic", topic).save()


@dataclass(frozen=True)
class FolderChannel:
    """Folders as queues, where there is no broker: each file is a few messages, and appears at once."""

    folder: str

    def prepare(self, spark: SparkSession) -> None:
        for place in ("violations", "models"):
            Path(self.folder, place).mkdir(parents=True, exist_ok=True)

    def write_reports(self, reports: DataFrame, checkpoint: str) -> StreamingQuery:
        folder = self.folder

        def write(batch: DataFrame, number: int) -> None:
            values = [row["value"] for row in batch.select("value").collect()]
            if values:  # a micro-batch that is done again writes the same file again
                _write(Path(folder, "violations", f"{number:09}.jsonl"), "\n".join(values) + "\n")

        rows = reports.writeStream.foreachBatch(write).queryName("cepheid-nodes")
        return rows.option("checkpointLocation", checkpoint).start()

    def reports(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.text(str(Path(self.folder, "violations")))

    def publish(self, spark: SparkSession, number: int, order: str) -> None:
        _write(Path(self.folder, "models", f"{number:09}.json"), order + "\n")

    def orders(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.text(str(Path(self.folder, "models")))

    def last_order(self, spark: SparkSession) -> int:
        files = sorted(Path(self.folder, "models").glob("*.json"))
        return int(json.loads(files[-1].read_text(encoding="utf-8"))["number"]) if files else 0


def _write(path: Path, text: str) -> None:
    hidden = path.with_name(f".{uuid.uuid4().hex}")
    hidden.write_text(text, encoding="utf-8")
    os.replace(hidden, path)
