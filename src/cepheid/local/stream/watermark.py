"""How far a stream is known: the newest time, less how late an event may come."""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language import syntax as s
from cepheid.language.problems import CepheidError
from cepheid.language.reader import read_length
from cepheid.language.values import Interval

Lateness: TypeAlias = "str | int | dt.timedelta"
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def seconds_of(given: str | float | dt.timedelta, name: str) -> float:
    """A length of time in seconds: a number of them, also as text, text such as ``'1 second'``, or a timedelta.

    >>> seconds_of("250 ms", "run_for"), seconds_of(2, "run_for"), seconds_of("2", "--for")
    (0.25, 2.0, 2.0)
    """
    match given:
        case bool():
            seconds = 0.0
        case str():
            seconds = _seconds(given)
        case dt.timedelta():
            seconds = given.total_seconds()
        case _:
            seconds = float(given)
    if not seconds > 0:
        raise ValueError(f"{name} is a positive number of seconds, or text such as '1 second'; got {given!r}")
    return seconds


def _seconds(text: str) -> float:
    """0 if it is none."""
    try:
        return float(text)
    except ValueError:
        length = _length(text)
        return 0.0 if length is None else length / 1e9


def _length(text: str) -> int | None:
    """A length of time in nanoseconds; None if it is none."""
    try:
        length = read_length(text)
    except CepheidError:
        return None
    return length.size if length.kind is s.WindowKind.TIME else None


class LatenessError(ValueError):
    """An allowed lateness that is none, or none of times like these."""


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
        return pa.scalar(self._newest - self.lateness(times.type), pa.int64()).cast(times.type)

    def lateness(self, type_: pa.DataType) -> int:
        """How late an event may come, in what a time column of this type counts."""
        given = self._given
        if pa.types.is_integer(type_):
            if isinstance(given, bool) or not isinstance(given, int) or given < 0:
                raise LatenessError(
                    f"the times in {self._time!r} are numbers, and so is allowed_lateness, 0 or more; got {given!r}"
                )
            return given
        nanoseconds = None
        if isinstance(given, str):
            nanoseconds = _length(given)
        elif isinstance(given, dt.timedelta):
            nanoseconds = Interval.from_timedelta(given).nanoseconds
        elif given == 0:
            nanoseconds = 0
        if nanoseconds is None or nanoseconds < 0:
            raise LatenessError(
                f"the times in {self._time!r} are time stamps, so allowed_lateness is text such as '10 seconds', or a "
                f"timedelta; got {given!r}"
            )
        unit = _NANOSECONDS[type_.unit] if pa.types.is_timestamp(type_) else 10**9
        return -(-nanoseconds // unit)
