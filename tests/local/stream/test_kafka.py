"""From Kafka and to Kafka, without Spark: the matches of the same events in a table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install '.[kafka]'")

import cepheid
from cepheid.local.stream.kafka import KafkaSink, KafkaSource, KafkaStreamError
from tests.spark.kafka_broker import NoBrokerError, running_broker
from tests.spark.long import long

PATTERN = "NAME up PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 20 RETURN a.x AS low, b.x AS high"
EVENTS = pa.table(
    {"ts": range(2000), "type": ["AB"[n % 3 % 2] for n in range(2000)], "x": [n * 7919 % 101 for n in range(2000)]}
)


@long
def test_from_kafka_to_kafka(tmp_path: Path) -> None:
    try:
        with running_broker(tmp_path) as servers:
            # The events are the matches of a pattern that takes all of them; a partition is not in the order of time.
            events = "PATTERN Event e WITHIN 1 RETURN e.ts AS ts, e.type AS type, e.x AS x"
            cepheid.run(events, EVENTS, f"kafka://{servers}/events", type=None)
            source = KafkaSource(servers, "events", start="earliest", to_the_end=True)
            result = cepheid.run(PATTERN, source, f"kafka://{servers}/matches", allowed_lateness=2000)
            assert (result.events, result.late) == (2000, 0)
            found: list[dict[str, Any]] = []
            again = KafkaSource(servers, "matches", start="earliest", to_the_end=True)
            cepheid.run("PATTERN Match m WITHIN 1", again, found, time="end", type=None, allowed_lateness=2000)
            with pytest.raises(cepheid.StreamError, match="the source failed") as caught:
                cepheid.run(PATTERN, KafkaSource(servers, "none", to_the_end=True))
            assert isinstance(caught.value.__cause__, KafkaStreamError)
    except NoBrokerError as error:
        pytest.skip(str(error))
    expected = cepheid.match(PATTERN, EVENTS).to_pylist()
    assert len(expected) > 1000
    matches = [row["m"] for row in found]
    assert sorted(json.dumps(m, sort_keys=True) for m in matches) == sorted(
        json.dumps(m, sort_keys=True) for m in expected
    )


def test_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cepheid.local.stream.kafka.PATIENCE", 0.3)
    with pytest.raises(cepheid.StreamError, match=r"the source failed after 0 events.*kafka://127.0.0.1:9"):
        cepheid.run(PATTERN, "kafka://127.0.0.1:9/events")
    sink = KafkaSink("127.0.0.1:9", "matches")
    sink.write(pa.table({"pattern": ["up"]}))
    with pytest.raises(KafkaStreamError, match="1 matches were not taken in"):
        sink.close()
    with pytest.raises(ValueError, match="start is"):
        KafkaSource("127.0.0.1:9", "events", start="yesterday")


def test_no_broker_for_matches_is_said_before_the_first_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cepheid.local.stream.kafka.PATIENCE", 0.3)
    with pytest.raises(KafkaStreamError, match=r"kafka://127\.0\.0\.1:9/matches: "):
        cepheid.run(PATTERN, EVENTS, "kafka://127.0.0.1:9/matches")


QUIET = """
import cepheid
from cepheid.local.stream import kafka
kafka.PATIENCE = 1.0
try:
    cepheid.run("PATTERN SEQ(A a, B b) WITHIN 3", "kafka://127.0.0.1:9/events")
except cepheid.StreamError as error:
    print(error)
"""


def test_what_librdkafka_says_is_not_on_the_terminal() -> None:
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, check=True)
    assert "kafka://127.0.0.1:9" in done.stdout
    assert done.stderr == ""
