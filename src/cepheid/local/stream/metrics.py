"""What a run of a stream was like, second by second."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

SHORTEST, PRECISION = 1e-6, 1.02
"""Latencies are told apart where they differ by two per cent, from a microsecond on."""
BINS = math.ceil(math.log(1e10) / math.log(PRECISION))


class Latencies:
    """How many events had which latency, in seconds. The largest is exact.

    >>> latencies = Latencies()
    >>> latencies.add(0.010, 99)
    >>> latencies.add(0.500, 1)
    >>> round(latencies.quantile(0.5), 3), latencies.largest
    (0.01, 0.5)
    """

    def __init__(self) -> None:
        self._counts = np.zeros(BINS, np.int64)
        self.largest = 0.0

    def add(self, seconds: float, events: int) -> None:
        place = int(math.log(max(seconds, SHORTEST) / SHORTEST) / math.log(PRECISION))
        self._counts[min(place, BINS - 1)] += events
        self.largest = max(self.largest, seconds)

    def merge(self, other: Latencies) -> None:
        self._counts += other._counts
        self.largest = max(self.largest, other.largest)

    def quantile(self, part: float) -> float | None:
        """The latency that this part of the events did not pass, to two per cent; None without events."""
        total = int(self._counts.sum())
        if not total:
            return None
        place = int(np.searchsorted(np.cumsum(self._counts), math.ceil(part * total)))
        return float(min(SHORTEST * PRECISION ** (place + 1), self.largest))


@dataclass(frozen=True, slots=True)
class Second:
    """A second of a run. Latencies are in seconds, from when an event came until its matches were handed over."""

    second: int
    events_in: int
    """Events that came."""
    events_out: int
    """Events that were pushed into the engine."""
    matches: int
    latency_p50: float | None
    latency_p99: float | None
    latency_max: float | None
    queue: int
    """Events that waited at the end of the second."""
    batch: float
    """Events in a push, on average."""
    ratio: float
    """Which share of the work was to be dropped, at the end of the second."""
    dropped_events: int
    dropped_pairs: int
    dropped_partial_matches: int
    """What the strategy dropped."""
    dropped_from_queue: int
    """Events that were left out before the engine saw them, as the last resort."""
    estimated_recall: float | None
    """Which part of the matches was found, of the run so far."""
    estimated_false_positives: float | None
    """How many matches of the run so far are none, as a negated event of theirs was dropped."""


class Meter:
    """Counts while a stream runs; each time a second is over, a row."""

    def __init__(
        self,
        now: float,
        each: Callable[[Second], object] | None,
        shedding: Callable[[], Mapping[str, Any]],
        match_size: float,
    ) -> None:
        """``match_size``: the events of a match."""
        self._match_size = match_size
        self.rows: list[Second] = []
        self.all = Latencies()
        self.events_in = self.events_out = self.matches = self.dropped_from_queue = 0
        self.began = dt.datetime.now(dt.timezone.utc)
        self._each = each
        self._shedding = shedding
        self.start = now
        self._ends = now + 1
        self._fresh()
        self._before = (0, 0, 0, 0, 0, 0, 0)

    def _fresh(self) -> None:
        self._latencies = Latencies()
        self._pushes = 0

    @property
    def left(self) -> float:
        """When the present second ends."""
        return self._ends

    def pushed(self, events: int, matches: int) -> None:
        self.events_out += events
        self.matches += matches
        self._pushes += 1

    def latency(self, seconds: float, events: int) -> None:
        self._latencies.add(seconds, events)

    def tick(self, now: float, arrived: int, queue: int, ratio: float, *, last: bool = False) -> None:
        """Close the seconds that are over."""
        self.events_in = arrived
        if now < self._ends and not last:
            return
        found = self._shedding()
        dropped = [found.get(f"{what} dropped", 0) for what in ("events", "pairs", "partial matches")]
        totals = (arrived, self.events_out, self.matches, self.dropped_from_queue, *dropped)
        came, went, matches, left_out, events, pairs, partial = (
            now_ - before for now_, before in zip(totals, self._before, strict=True)
        )
        self._before = totals
        some = self._latencies.quantile(1.0) is not None
        row = Second(
            second=int(self._ends - self.start - 0.5), events_in=came, events_out=went, matches=matches,
            latency_p50=self._latencies.quantile(0.5), latency_p99=self._latencies.quantile(0.99),
            latency_max=self._latencies.largest if some else None, queue=queue,
            batch=went / self._pushes if self._pushes else 0.0, ratio=ratio, dropped_events=events,
            dropped_pairs=pairs, dropped_partial_matches=partial, dropped_from_queue=left_out,
            estimated_recall=self._recall(found.get("estimated recall so far")),
            estimated_false_positives=found.get("estimated false positives"),
        )  # fmt: skip
        self.rows.append(row)
        self.all.merge(self._latencies)
        self._fresh()
        # A push that took longer than a second leaves no rows for those that it passed.
        self._ends = self.start + math.floor(now - self.start) + 1
        if self._each is not None:
            self._each(row)

    def _recall(self, estimated: float | None) -> float | None:
        """A match needs all its events, so each that is left out of the queue may cost one, as if by itself."""
        if estimated is None or not self.dropped_from_queue:
            return estimated
        return float(estimated * (1 - self.dropped_from_queue / self.events_in) ** self._match_size)

    def table(self) -> pa.Table:
        types = {"int": pa.int64(), "float": pa.float64(), "float | None": pa.float64()}
        schema = pa.schema([(found.name, types[str(found.type)]) for found in fields(Second)])
        return pa.Table.from_pylist([asdict(row) for row in self.rows], schema=schema)
