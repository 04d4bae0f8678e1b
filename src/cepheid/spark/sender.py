"""The first half of a batch job: a Python worker takes rows as they come, and packs them for the parts of the work.

Spark could do the same by itself, row by row. It is faster to let columns cross into Python once, to tear them apart
there, and to let Spark carry a few large values of bytes instead of many rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.ingest import InputError
from cepheid.spark.narrow import narrowed
from cepheid.spark.pack import gathered, settle, to_bytes
from cepheid.spark.routes import Numbers, Route, key_numbers
from cepheid.spark.type_numbers import NUMBERED, named, unstamped

PARCELS = "part long, first long, events binary"
"""The part of the work that a parcel is for, the time of its first event, and its events, in the order of time."""
NAMES = ["part", "first", "events"]
PARCEL = 8 * 2**20
"""A parcel is not much larger than this."""
ROW = 2**26 // 10_000
"""Of so many bytes is a row: with a parcel come as many empty rows as it is larger. Spark hands on up to 10,000 rows at
a time, whatever their size, unless it has to weigh each of them; so it is 64 MB at a time."""


@dataclass(frozen=True)
class Lane:
    """What some patterns need of the rows, and where it goes.

    ``columns``: the places of their columns among those that come, ``events`` what these are; ``time``: the place of
    the time among ``events``. Also among those that come: ``keyed``, the numbers of the keys, and ``wanted``, whether a
    row is of use. ``addresses``: for each part of the work the number by which Spark sends it. ``numbered``: the place
    of a column that comes as numbers, and the texts that they stand for; ``stamped``: it comes in one with the time.
    """

    columns: tuple[int, ...]
    events: pa.Schema
    time: int
    keyed: int | None
    wanted: int | None
    route: Route
    addresses: tuple[int, ...]
    numbered: tuple[int, tuple[str, ...]] | None = None
    stamped: bool = False

    def with_types(self, place: int, types: tuple[str, ...], stamped: bool) -> Lane:
        """The types of the events come as numbers."""
        field = self.events.field(place).with_type(NUMBERED)
        return replace(self, events=self.events.set(place, field), numbered=(place, types), stamped=stamped)

    def parcels(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        if self.wanted is not None:
            table = table.filter(table.column(self.wanted))
        if not table.num_rows:
            return
        columns = [table.column(place) for place in self.columns]
        if self.numbered is not None:
            place, texts = self.numbered
            if self.stamped:
                columns[self.time], columns[place] = unstamped(columns[place])
            columns[place] = named(columns[place], texts)
        fitting = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, self.events, strict=True)]
        events = pa.Table.from_arrays(fitting, schema=self.events)
        ticks, events = self._ticks(events), narrowed(events)
        keys = None if self.keyed is None else key_numbers(table.column(self.keyed))
        rows, parts = self.route.parts(keys, ticks)
        order = _order(ticks[rows], parts)
        rows, parts = rows[order], parts[order]
        if len(rows) != len(ticks) or (np.diff(rows) != 1).any():
            events, ticks = events.take(pa.array(rows)), ticks[rows]
        yield from self._packed(events, ticks, parts)

    def _ticks(self, events: pa.Table) -> Numbers:
        times = events.column(self.time)
        if times.null_count:
            name, far = events.schema.names[self.time], " or after the year 11,000" if self.stamped else ""
            raise InputError(
                f"{times.null_count} of {len(times)} events have no time: column {name!r} is NULL{far}. "
                "Remove them, or give them one."
            )
        found: Numbers = times.cast(pa.int64()).to_numpy()
        return found

    def _packed(self, events: pa.Table, ticks: Numbers, parts: Numbers) -> Iterator[pa.RecordBatch]:
        size = max(1, len(parts) * PARCEL // max(events.nbytes, 1))
        borders = np.flatnonzero(np.diff(parts)) + 1
        for start, end in zip([0, *borders.tolist()], [*borders.tolist(), len(parts)], strict=True):
            address = self.addresses[int(parts[start])]
            for begin in range(start, end, size):
                packed = to_bytes(events.slice(begin, min(size, end - begin)))
                yield _parcel(address, int(ticks[begin]), packed)


def _parcel(address: int, first: int, packed: bytes) -> pa.RecordBatch:
    empty = len(packed) // ROW
    rows = [
        pa.repeat(address, 1 + empty),
        pa.repeat(first, 1 + empty),
        pa.array([packed, *[None] * empty], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(rows, NAMES)


@dataclass(frozen=True)
class Sender:
    lanes: tuple[Lane, ...]

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for table in gathered(batches):
            for lane in self.lanes:
                yield from lane.parcels(table)


def _order(ticks: Numbers, parts: Numbers) -> Numbers:
    """By part, and in it by time. Events mostly come in the order of time; then only the parts need sorting."""
    small: npt.NDArray[np.integer] = parts.astype(np.uint16) if len(parts) and parts.max() < 2**16 else parts
    if (np.diff(ticks) >= 0).all():
        return np.argsort(small, kind="stable")
    return np.lexsort((ticks, small))
