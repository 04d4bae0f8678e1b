"""How far a stream is known: the newest time, less how late an event may come."""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language import syntax as s
from cepheid.language.reader import read_length
from cepheid.language.values import Interval

Lateness: TypeAlias = "str | int | dt.timedelta"
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def seconds_of(given: str | float | dt.timedelta, name: str) -> float:
    """A length of time in seconds: a number of them, text such as ``'1 second'``, or a timedelta.

    >>> seconds_of("250 ms", "run_for"), seconds_of(2, "run_for")
    (0.25, 2.0)
    """
    if isinstance(given, str):
        length = read_length(given)
        seconds = length.size / 1e9 if length is not None and length.kind is s.WindowKind.TIME else 0.0
    else:
        seconds = given.total_seconds() if isinstance(given, dt.timedelta) else float(given)
    if not seconds > 0:
        raise ValueError(f"{name} is a positive number of seconds, or text such as '1 second'; got {given!r}")
    return seconds


class Watermarks:
    """The watermark after each batch. It never goes back.

    >>> marks = Watermarks("ts", 5)
    >>> [marks.after(pa.table({"ts": ts})).as_py() for ts in ([10, 12], [8], [20])]
    [7, 7, 15]
    """

    def __init__(self, time: str, lateness: Lateness) -> None:
        self._time = time
        self._given = lateness
        self._newest: Any = None

    def after(self, events: pa.Table) -> pa.Scalar | None:
        if self._time not in events.column_names:
            return None  # the engine says what is wrong
        times = events[self._time]
        newest = pc.max(times)
        if newest.is_valid:
            ticks = newest.as_py() if pa.types.is_integer(times.type) else newest.value
            self._newest = ticks if self._newest is None else max(self._newest, ticks)
        if self._newest is None:
            return None
        return pa.scalar(self._newest - self._late(times.type), pa.int64()).cast(times.type)

    def _late(self, type_: pa.DataType) -> int:
        """How late an event may come, in what the time column counts."""
        given = self._given
        if pa.types.is_integer(type_):
            if isinstance(given, bool) or not isinstance(given, int) or given < 0:
                raise ValueError(
                    f"the times in {self._time!r} are numbers, and so is allowed_lateness, 0 or more; got {given!r}"
                )
            return given
        nanoseconds = None
        if isinstance(given, str):
            length = read_length(given)
            nanoseconds = length.size if length is not None and length.kind is s.WindowKind.TIME else None
        elif isinstance(given, dt.timedelta):
            nanoseconds = Interval.from_timedelta(given).nanoseconds
        elif given == 0:
            nanoseconds = 0
        if nanoseconds is None or nanoseconds < 0:
            raise ValueError(f"allowed_lateness is text such as '10 seconds', or a timedelta; got {given!r}")
        unit = _NANOSECONDS[type_.unit] if pa.types.is_timestamp(type_) else 10**9
        return -(-nanoseconds // unit)
