"""Nodes, or a coordinator, in a process of its own, which tests start, kill and start again.

``python -m tests.monitor_spark.monitor_job nodes|coordinator SETTINGS.json``. Nodes read observations from Parquet files
as they appear. The coordinator prints each model. Both run until they are killed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cepheid.monitor import ModelDrift, MonitorEvent, Started
from cepheid.spark import session
from cepheid.spark.monitor import coordinate, monitor
from cepheid.spark.monitor_channels import Channel, FolderChannel, KafkaChannel

SCHEMA = "at long, node string, x0 double, x1 double, y double"
NAMES = ("a", "b", "c")
SETTINGS: dict[str, Any] = {"epsilon": 0.5, "window": 60}


def main(role: str, settings: dict[str, Any]) -> None:
    spark = session(
        f"monitor {role}",
        spark__master="local[1]",
        spark__driver__memory="600m",
        spark__sql__shuffle__partitions=1,
        **{key.replace(".", "__"): value for key, value in settings.get("spark", {}).items()},
    )
    spark.sparkContext.setLogLevel("ERROR")
    channel: Channel = (
        KafkaChannel(settings["kafka"]) if settings.get("kafka") else FolderChannel(settings["folder"])
    )  # fmt: skip
    if role == "nodes":
        df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(settings["observations"])
        query = monitor(
            df, node="node", response="y", features=["x0", "x1"], time="at", names=NAMES, channel=channel,
            checkpoint=settings["checkpoint"], **SETTINGS,
        )  # fmt: skip
    else:
        running = coordinate(spark, names=NAMES, dimension=2, channel=channel, **SETTINGS)
        running.on_event = say
        query = running.query
    print("started", flush=True)
    query.awaitTermination()


def say(event: MonitorEvent) -> None:
    if isinstance(event, Started | ModelDrift):
        print(json.dumps({"order": event.time, "model": event.model.tolist()}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
