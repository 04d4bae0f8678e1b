"""Where events come from."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.ingest import EventColumns, InputError, without_views
from cepheid.local.events import as_table
from cepheid.local.match import in_order
from cepheid.local.signals import Stop
from cepheid.local.stream.queue import Chunk
from cepheid.local.stream.rejected import OnBadLine

SPAN = 0.005
"""Events of so many seconds come together, so that nothing is done for each of them."""
CHUNK = 16_384
"""Events that come together where nobody says how fast they come."""


@runtime_checkable
class Source(Protocol):
    """Gives chunks of events until there are no more, or until it is asked to stop. Runs in a thread of its own.

    >>> import cepheid
    >>> class Clock:
    ...     def preview(self, columns):
    ...         return None
    ...
    ...     def read(self, stop, columns):
    ...         for tick in range(3):
    ...             if not stop.wait(0.01):
    ...                 yield Chunk(pa.table({"ts": [tick], "type": ["Tick"]}), came=perf_counter())
    >>> cepheid.run("PATTERN Tick t WITHIN 1", Clock()).found
    3
    """

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[Chunk]: ...

    def preview(self, columns: EventColumns) -> pa.Table | None:
        """Events like those that will come, if they are known: to check patterns, to plan and to warm up with."""


@dataclass(frozen=True)
class Replay:
    """A table that comes as a stream: ``rate`` events a second, or at its own time stamps, ``speed`` times as fast.

    With neither it comes as fast as it is taken. ``table`` is anything that :func:`cepheid.match` takes. Where times
    are numbers, ``speed`` is how many of them pass in a second. At a rate, events keep the order that they have in the
    table. An event that the machine gets to later than it was due counts as waiting from when it was due.

    >>> import cepheid
    >>> events = [{"ts": n, "type": "AB"[n % 2]} for n in range(1000)]
    >>> result = cepheid.run("PATTERN SEQ(A a, B b) WITHIN 1", cepheid.Replay(events, rate=50_000))
    >>> result.events, result.matches.num_rows
    (1000, 500)
    """

    table: Any
    rate: float | None = None
    speed: float | None = None
    _read: list[pa.Table] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.rate is not None and self.speed is not None:
            raise ValueError(
                "give a rate in events per second or a speed compared with the events' own times, not both"
            )
        for name, value in (("rate", self.rate), ("speed", self.speed)):
            if value is not None and (not isinstance(value, Real) or not value > 0):
                raise ValueError(f"{name} is a positive number, got {value!r}")

    @property
    def paced(self) -> bool:
        """Whether it says when events come."""
        return self.rate is not None or self.speed is not None

    def preview(self, columns: EventColumns) -> pa.Table:
        return self._events(columns)

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[Chunk]:
        events = self._events(columns)
        if columns.time in events.column_names and pa.types.is_date(events.schema.field(columns.time).type):
            raise InputError(f"the times in {columns.time!r} are dates: a stream needs time stamps, so cast them")
        if not self.paced:
            for start in range(0, events.num_rows, CHUNK):
                if stop.asked:
                    return
                yield Chunk(events.slice(start, CHUNK), perf_counter())
            return
        due = self._due(events, columns.time)
        if not len(due):
            return
        first = np.flatnonzero(np.diff(np.floor(due / SPAN), prepend=-1.0))
        after = np.append(first[1:], len(due))
        began = perf_counter()
        for start, end, earliest, latest in zip(
            first.tolist(), after.tolist(), due[first].tolist(), due[after - 1].tolist(), strict=True
        ):
            if stop.wait(began + latest - perf_counter()):
                return
            yield Chunk(events.slice(start, end - start), began + earliest)

    def _events(self, columns: EventColumns) -> pa.Table:
        if not self._read:
            table = as_table(self.table)
            table = table.cast(without_views(table.schema)).combine_chunks()
            if self.speed is not None and columns.time in table.column_names:
                table = in_order(table, columns.time)
            self._read.append(table)
        return self._read[0]

    def _due(self, events: pa.Table, time: str) -> npt.NDArray[np.float64]:
        """When each event comes, in seconds after the first."""
        if self.rate is not None:
            return np.arange(events.num_rows) / self.rate
        times = events[time]
        assert self.speed is not None
        if pa.types.is_timestamp(times.type):
            per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[times.type.unit]
            times = times.cast(pa.int64())
        else:
            per_second = 1
        ticks = times.to_numpy()
        return (ticks - ticks[0]) / (per_second * self.speed) if len(ticks) else np.zeros(0)


@dataclass(frozen=True)
class Batches:
    """Tables or batches that an iterable gives; they come when it gives them. It is not interrupted while it waits."""

    batches: Iterable[Any]

    def preview(self, columns: EventColumns) -> None:
        return None

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[Chunk]:
        for batch in self.batches:
            table = as_table(batch)
            yield Chunk(table.cast(without_views(table.schema)), perf_counter())
            if stop.asked:
                return


def source_of(source: Any, schema: pa.Schema | None = None, on_bad_line: OnBadLine = "fail") -> Source:
    """A source as it is, or what a user names it by: a table, a path, an address, an iterable of batches."""
    from cepheid.local.stream.addresses import source_at

    if isinstance(source, str) and (found := source_at(source, schema, on_bad_line)) is not None:
        return found
    for option, given in (("schema", schema is not None), ("on_bad_line", on_bad_line != "fail")):
        if given:
            raise ValueError(
                f"{option} is for events that come as JSON, from '-', tcp://, listen:// or kafka://; "
                f"{_name(source)} says itself what its events are"
            )
    if isinstance(source, Source):
        return source
    if isinstance(source, io.IOBase):
        raise TypeError("a source is no open file: give its path, or '-' for lines of JSON on standard input")
    if hasattr(type(source), "read"):  # of the type: a frame may have a column of this name
        raise TypeError(
            f"a source has read(stop, columns) and preview(columns), and {_name(source)} has no preview: it gives a "
            "table of events like those that will come or, if they are not known, None"
        )
    if isinstance(source, (str, Path, pa.Table, pa.RecordBatch, dict)) or not isinstance(source, Iterable):
        return Replay(source)
    if isinstance(source, (list, tuple)) and (not source or isinstance(source[0], dict)):
        return Replay(source)
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, pa.RecordBatchReader):
        return Replay(source)
    if type(source).__module__.split(".")[0] == "pandas":
        return Replay(source)
    return Batches(source)


def _name(source: Any) -> str:
    return repr(str(source)) if isinstance(source, (str, Path)) else f"a {type(source).__name__}"
