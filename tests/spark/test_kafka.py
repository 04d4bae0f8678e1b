"""From a producer through Kafka, Spark and Kafka again: the matches of the same events in a table."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from tests.spark.job_process import Workload, plain
from tests.spark.kafka_broker import NoBrokerError, connector, running_broker
from tests.spark.long import long
from tests.spark.test_restart import run_and_kill


@long
def test_from_kafka_to_kafka(tmp_path: Path) -> None:
    work = Workload(tmp_path, 4, 60, dt.timedelta(seconds=6))
    result = tmp_path / "result.json"
    try:
        with running_broker(tmp_path) as address:
            settings: dict[str, Any] = {
                "steps": ["produce", "match", "consume"], "source": "kafka", "sink": "kafka", "kafka": address,
                "all": str(work.all), "rows": 100, "lateness": "60 seconds", "checkpoint": str(tmp_path / "checkpoint"),
                "result": str(result), "spark": {"spark.jars": connector()},
            }  # fmt: skip
            run_and_kill(settings, tmp_path, [], random.Random(0))
    except NoBrokerError as error:
        pytest.skip(str(error))
    rows = [json.loads(line) for line in result.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row |= {name: dt.datetime.fromisoformat(row[name].replace("Z", "+00:00")) for name in ("start", "end")}
    assert plain(rows) == work.matches
