"""What a stream reports about itself, kept for as long as it runs in bounded space."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cepheid.job.outcome import MicroBatch
from cepheid.spark.counting import NAME
from cepheid.spark.stream import METRICS as SHARDS

MOST = 2_000
"""More micro-batches than these are put together by twos."""


class History:
    """All micro-batches of a stream: sums over all of them, and enough of them for a chart."""

    def __init__(self) -> None:
        self.batches: list[MicroBatch] = []
        self.count = self.events = self.matches = self.late = self.lost = 0
        self.matches_of: Counter[str] = Counter()
        self._last: tuple[Any, ...] | None = None

    def is_new(self, progress: Mapping[str, Any]) -> bool:
        """Whether this was not told before. An idle stream repeats the number of its last micro-batch."""
        told = (progress["batchId"], progress["timestamp"])
        return self._last is None or told > self._last

    def add(self, progress: Mapping[str, Any], patterns: Sequence[str]) -> MicroBatch | None:
        """None if it tells of no work."""
        self._last = (progress["batchId"], progress["timestamp"])
        batch = micro_batch(progress, patterns)
        if not batch.events and not batch.matches and "addBatch" not in progress.get("durationMs", {}):
            return None
        self.count += 1
        self.events += batch.events
        self.matches += batch.matches
        self.late += batch.late
        self.lost += batch.lost
        self.matches_of.update(batch.matches_of)
        self.batches.append(batch)
        if len(self.batches) > MOST:
            self.batches = [joined(*self.batches[i : i + 2]) for i in range(0, len(self.batches), 2)]
        return batch


def joined(first: MicroBatch, last: MicroBatch | None = None) -> MicroBatch:
    """Two micro-batches as one: what they did in sum, and how things stood after the second."""
    if last is None:
        return first
    return replace(
        last, at=first.at, seconds=first.seconds + last.seconds, events=first.events + last.events,
        matches=first.matches + last.matches, late=first.late + last.late, lost=first.lost + last.lost,
        dropping=max(first.dropping, last.dropping),
        matches_of=dict(Counter(first.matches_of) + Counter(last.matches_of)), example=first.example or last.example,
    )  # fmt: skip


def micro_batch(progress: Mapping[str, Any], patterns: Sequence[str]) -> MicroBatch:
    """From what Spark reports, as JSON has it."""
    counted = (progress.get("observedMetrics") or {}).get(NAME) or {}
    times = progress.get("eventTime") or {}
    shards = (progress.get("observedMetrics") or {}).get(SHARDS) or {}
    behind, unit = _behind(progress.get("sources") or [])
    example = counted.get("example")
    return MicroBatch(
        number=progress["batchId"],
        at=_moment(progress["timestamp"]),
        seconds=(progress.get("durationMs") or {}).get("triggerExecution", 0) / 1000,
        events=progress.get("numInputRows", 0),
        matches=counted.get("matches", 0),
        matches_of={name: counted[f"of {i}"] for i, name in enumerate(patterns) if counted.get(f"of {i}")},
        late=shards.get("late events") or 0,
        watermark=_watermark(times.get("watermark")),
        newest=_watermark(times.get("max")),
        behind=behind,
        behind_unit=unit,
        state_bytes=shards.get("kept bytes") or 0,
        example=example.get("match") if isinstance(example, Mapping) else None,
        dropping=(shards.get("dropping per mille") or 0) / 1000,
        lost=shards.get("lost matches") or 0,
        overhead=(shards.get("overhead milliseconds") or 0) / 1000,
    )


def _behind(sources: Sequence[Mapping[str, Any]]) -> tuple[int | None, str]:
    """What there is and has not been read: Kafka tells offsets, folders tell files."""
    total, unit = None, ""
    for source in sources:
        latest, end = source.get("latestOffset"), source.get("endOffset")
        if isinstance(latest, Mapping) and isinstance(end, Mapping):
            known = [
                (topic, p, o) for topic, parts in latest.items() if isinstance(parts, Mapping) for p, o in parts.items()
            ]
            if known:
                total = (total or 0) + sum(max(o - end.get(topic, {}).get(p, 0), 0) for topic, p, o in known)
                unit = "events"
                continue
        files = (source.get("metrics") or {}).get("numFilesOutstanding")
        if files is not None:
            total, unit = (total or 0) + int(files), "files"
    return total, unit


def _moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text.replace("Z", "+00:00"))


def _watermark(text: str | None) -> dt.datetime | None:
    """Before the first event, it is in 1970."""
    moment = None if text is None else _moment(text)
    return None if moment is None or moment.year <= 1970 else moment
