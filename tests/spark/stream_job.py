"""A streaming job in a process of its own, which tests start, kill and start again.

Reads its settings from a JSON file: what to do (``produce``, ``match``, ``consume``), from where and to where. It prints
a line for each micro-batch that is done, and ``done`` at the end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.listener import StreamingQueryListener

from cepheid.spark import match, session

PATTERNS = """
NAME followed PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x PARTITION BY k WITHIN 30 seconds
RETURN a.seq AS a, b.seq AS b, c.seq AS c;
NAME missing PATTERN SEQ(A a, NOT(C n), B b) WHERE n.x > a.x PARTITION BY k WITHIN 20 seconds
RETURN a.seq AS a, b.seq AS b;
NAME used PATTERN SEQ(A a, C c) USING skip_till_any CONSUME PARTITION BY k WITHIN 20 seconds
RETURN a.seq AS a, c.seq AS c;
NAME counted PATTERN SEQ(B b, C c) WITHIN 4 events RETURN b.seq AS b, c.seq AS c
"""
EVENTS = "ts timestamp, type string, k string, x long, seq long"


class Progress(StreamingQueryListener):
    """Says which micro-batch is done, and what was counted in it."""

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        print("started", flush=True)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        counted = event.progress.observedMetrics.get("cepheid")
        late = counted["late events"] if counted else 0
        restored = counted["restored"] if counted else 0
        print("batch", event.progress.batchId, "late", late or 0, "restored", restored or 0, flush=True)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


def main(settings: dict[str, Any]) -> None:
    # A task may fail twice: a Python worker that is killed does not end the query.
    spark = session(
        "stream job",
        spark__master="local[2,3]",
        spark__driver__memory="768m",
        spark__sql__shuffle__partitions=2,
        **{key.replace(".", "__"): value for key, value in settings.get("spark", {}).items()},
    )
    spark.sparkContext.setLogLevel("OFF")
    for step in settings["steps"]:
        {"produce": produce, "match": run, "consume": consume}[step](spark, settings)
    spark.stop()
    print("done", flush=True)


def produce(spark: SparkSession, settings: dict[str, Any]) -> None:
    """All events to Kafka, as JSON: to both partitions in turn.

    Kafka itself would send those without a key in bursts, now to one and now to the other, which would then be minutes
    apart: more than the lateness that the job allows.
    """
    events = spark.read.parquet(settings["all"]).repartition(1).sortWithinPartitions("arrival")
    partition = F.pmod("arrival", F.lit(2)).cast("int")
    value = F.to_json(F.struct("ts", "type", "k", "x", "seq"))
    rows = events.select(F.col("k").alias("key"), value.alias("value"), partition.alias("partition"))
    rows.write.format("kafka").option("kafka.bootstrap.servers", settings["kafka"]).option("topic", "events").save()


def consume(spark: SparkSession, settings: dict[str, Any]) -> None:
    """All matches from Kafka, each once, as a file."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", settings["kafka"])
    rows = (
        reader.option("subscribe", "matches").load().select(F.col("key").cast("string"), F.col("value").cast("string"))
    )
    found = {row["key"]: row["value"] for row in rows.collect()}
    Path(settings["result"]).write_text("\n".join(found.values()), encoding="utf-8")


def run(spark: SparkSession, settings: dict[str, Any]) -> None:
    spark.streams.addListener(Progress())
    matches = match(PATTERNS, source(spark, settings), tie_breaker="seq", allowed_lateness=settings["lateness"])
    writer = matches.writeStream.option("checkpointLocation", settings["checkpoint"]).trigger(availableNow=True)
    if settings["sink"] == "kafka":
        text = F.to_json(F.struct("*"))
        # The same match has the same key: should it be written twice, the reader can tell.
        keyed = matches.select(F.sha2(text, 256).alias("key"), text.alias("value"))
        writer = keyed.writeStream.option("checkpointLocation", settings["checkpoint"]).trigger(availableNow=True)
        writer = writer.format("kafka").option("kafka.bootstrap.servers", settings["kafka"]).option("topic", "matches")
    else:
        writer = writer.format("parquet").option("path", settings["sink"])
    query = writer.start()
    query.awaitTermination()


def source(spark: SparkSession, settings: dict[str, Any]) -> DataFrame:
    if settings["source"] == "files":
        return spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(settings["files"])
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", settings["kafka"])
    reader = reader.option("subscribe", "events").option("startingOffsets", "earliest")
    rows = reader.option("maxOffsetsPerTrigger", settings["rows"]).load()
    return rows.select(F.from_json(F.col("value").cast("string"), EVENTS).alias("event")).select("event.*")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
