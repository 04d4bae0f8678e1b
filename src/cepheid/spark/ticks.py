"""The time column as whole numbers, exactly, whatever the zone of the session and of the driver."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

_EPOCH = dt.datetime(1970, 1, 1)
_FIRST, _LAST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class TimeColumn:
    """A column of integers or timestamps. A tick is one, or a microsecond."""

    column: Column
    type: pa.DataType

    @property
    def value(self) -> Column:
        """What can be compared with :meth:`at`."""
        return self.column.cast("long") if pa.types.is_integer(self.type) else self.column

    def at(self, ticks: int) -> Column:
        """A point in time."""
        ticks = min(max(ticks, _FIRST), _LAST)
        if pa.types.is_integer(self.type):
            return F.lit(ticks)
        if self.type.tz is not None:
            return F.timestamp_micros(F.lit(ticks))
        return F.expr(f"TIMESTAMP_NTZ '{_written(ticks)}'")


def _written(ticks: int) -> str:
    try:
        return (_EPOCH + dt.timedelta(microseconds=ticks)).isoformat(" ")
    except OverflowError:
        return (dt.datetime.min if ticks < 0 else dt.datetime.max).isoformat(" ")


def ticks_of(times: pa.Array | pa.ChunkedArray) -> list[int]:
    """The times of an Arrow column."""
    found: list[int] = times.cast(pa.int64()).to_pylist()
    return found
