"""What a stream reports about itself."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from cepheid.job import history
from cepheid.job.history import History, micro_batch


def progress(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "batchId": number,
        "timestamp": f"2024-05-17T08:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
        "numInputRows": 100,
        "durationMs": {"triggerExecution": 500, "addBatch": 400},
        "eventTime": {"max": "2024-05-17T07:59:59.000Z", "watermark": "1970-01-01T00:00:00.000Z"},
        "stateOperators": [{"numRowsTotal": 3}],
        "sources": [{"latestOffset": {"t": {"0": 50, "1": 70}}, "endOffset": {"t": {"0": 45, "1": 70}}}],
        "observedMetrics": {
            "cepheid": {"events": 90, "late events": 2, "kept bytes": 1000},
            "cepheid matches": {"matches": 7, "of 0": 7, "of 1": 0, "example": {"end": 1, "match": "{}"}},
        },
        **changes,
    }


def test_a_micro_batch() -> None:
    batch = micro_batch(progress(3), ["up", "down"])
    assert (batch.number, batch.events, batch.matches, batch.seconds, batch.rate) == (3, 100, 7, 0.5, 200.0)
    assert batch.matches_of == {"up": 7}
    assert (batch.late, batch.state_bytes, batch.behind, batch.behind_unit) == (2, 1000, 5, "events")
    assert batch.watermark is None  # it is in 1970 before the first event
    assert batch.example == "{}"


def test_what_was_dropped() -> None:
    counted = {"dropping per mille": 250, "lost matches": 12, "overhead milliseconds": 400}
    batch = micro_batch(progress(3, observedMetrics={"cepheid": counted}), [])
    assert (batch.dropping, batch.lost, batch.overhead) == (0.25, 12, 0.4)
    both = history.joined(batch, micro_batch(progress(4), []))
    assert (both.dropping, both.lost) == (0.25, 12)


def test_files_that_wait() -> None:
    sources = [{"latestOffset": None, "endOffset": {"logOffset": 3}, "metrics": {"numFilesOutstanding": "4"}}]
    batch = micro_batch(progress(0, sources=sources), [])
    assert (batch.behind, batch.behind_unit) == (4, "files")


def test_little_is_known_at_first() -> None:
    batch = micro_batch({"batchId": 0, "timestamp": "2024-05-17T08:00:00.000Z"}, ["up"])
    assert (batch.events, batch.matches, batch.seconds, batch.rate) == (0, 0, 0, 0)


def test_nothing_is_counted_twice() -> None:
    told = History()
    for number in (0, 1, 1, 2, 1, 2):
        if told.is_new(progress(number)):
            told.add(progress(number), ["up"])
    assert (told.count, told.events, told.matches, dict(told.matches_of)) == (3, 300, 21, {"up": 21})


def test_idle_reports_are_no_micro_batches() -> None:
    told = History()
    told.add(progress(0), [])
    idle = progress(0, timestamp="2024-05-17T09:00:00.000Z", numInputRows=0, durationMs={}, observedMetrics={})
    assert told.is_new(idle)
    assert told.add(idle, []) is None
    assert told.count == 1


def test_a_long_stream_takes_bounded_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST", 50)
    told = History()
    for number in range(1000):
        told.add(progress(number), ["up"])
    assert len(told.batches) <= 50
    assert told.events == sum(batch.events for batch in told.batches) == 100_000
    assert sum(batch.matches_of["up"] for batch in told.batches) == told.matches
    assert told.batches[-1].number == 999
