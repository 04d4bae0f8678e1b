"""Windows of a number of events: the place of each event in the stream of its partition."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.clock import END, Watermark
from cepheid.engine.fields import PartitionCodes, as_integers
from cepheid.engine.ingest import Batch, Codes, EventColumns, InputError
from cepheid.engine.snapshot import Arrays, from_array, to_array
from cepheid.engine.vector import Unit, from_arrow

Rows: TypeAlias = npt.NDArray[np.int64]


class Positions:
    """Numbers the events of each partition, of any type, in the order of time.

    The number of an event is known when nothing can come before it: events wait until the watermark has passed them.
    """

    def __init__(
        self, partition: tuple[str, ...], columns: EventColumns, codes: Codes, unit: Unit, column: int | None
    ) -> None:
        self._partition = partition
        self._partition_column = column
        self._columns = columns
        self._unit = unit
        self._codes = codes
        self._pending: list[pa.RecordBatch] = []
        self._counts = np.zeros(1, dtype=np.int64)

    @property
    def waiting(self) -> int:
        return sum(events.num_rows for events in self._pending)

    def dump(self) -> Arrays:
        pending = {"pending": to_array(self._pending[0].schema, self._pending)} if self._pending else {}
        return {"counts": self._counts, **pending}

    def load(self, arrays: Arrays) -> None:
        self._counts = arrays["counts"]
        self._pending = from_array(arrays["pending"]).to_batches() if "pending" in arrays else []

    def push(self, batch: Batch, watermark: Watermark | None) -> tuple[pa.RecordBatch, Rows, Watermark | None]:
        """Add events; those whose numbers are known now, the numbers, and how far each partition has come."""
        batch.times(self._columns.time, "time")
        pending = [*self._pending, batch.events] if len(batch) else self._pending
        if watermark is None:
            self._pending = pending
            return batch.events.slice(0, 0), np.empty(0, dtype=np.int64), None
        events = pa.concat_batches(pending) if pending else batch.events
        times = self._column(events, self._columns.time)
        ready = (times < watermark.ticks) | (watermark.ticks == END)
        events, rest = events.filter(pa.array(ready)), events.filter(pa.array(~ready))
        numbers = self._numbered(events)
        self._pending = [rest] if rest.num_rows else []
        if watermark.ticks == END:
            return events, numbers, watermark
        counts = self._counts.copy() if self._partition else int(self._counts[0])
        return events, numbers, Watermark(counts, self._partition_column)

    def _column(self, events: pa.RecordBatch, name: str) -> Rows:
        data: Rows = from_arrow(events[name], self._unit, name).data
        return data

    def _numbered(self, events: pa.RecordBatch) -> Rows:
        times = self._column(events, self._columns.time)
        tie = self._columns.tie_breaker
        ties = np.zeros(len(times), dtype=np.int64) if tie is None else self._column(events, tie)
        groups = self._groups(events)
        order = np.lexsort((ties, times, groups))
        same = (np.diff(groups[order]) == 0) & (np.diff(times[order]) == 0) & (np.diff(ties[order]) == 0)
        if same.any():
            row = events.slice(int(order[int(same.argmax())]), 1)
            raise InputError(
                "a window of a number of events needs events in a definite order, and two have the same time"
                f"{' and tie-breaker' if tie else ''}: {row[self._columns.time][0]}. "
                + ("Give a tie-breaker that differs." if tie else "Name a column that orders them: tie_breaker=…")
            )
        if len(groups):
            grown = np.zeros(max(len(self._counts), int(groups.max()) + 1), dtype=np.int64)
            grown[: len(self._counts)] = self._counts
            self._counts = grown
        sizes = np.bincount(groups, minlength=len(self._counts))
        sorted_groups = groups[order]
        rank = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[sorted_groups]
        numbers = np.empty(len(order), dtype=np.int64)
        numbers[order] = self._counts[sorted_groups] + rank
        self._counts = self._counts + sizes
        return numbers

    def _groups(self, events: pa.RecordBatch) -> Rows:
        if not self._partition or not events.num_rows:
            return np.zeros(events.num_rows, dtype=np.int64)
        vectors = [from_arrow(events[name], self._unit, name) for name in self._partition]
        coder = self._codes.partitions.setdefault(self._partition, PartitionCodes())
        return coder.of([as_integers(v, self._codes.strings) for v in vectors], [~v.mask() for v in vectors])
