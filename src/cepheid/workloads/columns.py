"""Arrow columns from NumPy arrays."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SECOND = 1_000_000
"""Ticks of the time columns in a second."""


def moments(start: datetime.datetime, ticks: npt.NDArray[np.int64]) -> pa.Array:
    """Times, from microseconds after the start."""
    origin = int(np.datetime64(start, "us").astype(np.int64))
    return pa.array(ticks + origin).cast(pa.timestamp("us"))


def apart(ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sorted times, moved on by a tick where two are the same: SEQ never takes one of two simultaneous events after the
    other, and a stream should not lose matches to that by chance.
    """
    numbers = np.arange(len(ticks))
    moved: npt.NDArray[np.int64] = np.maximum.accumulate(ticks - numbers) + numbers
    return moved


def words(names: Sequence[str | None], codes: npt.NDArray[np.integer]) -> pa.Array:
    """Strings, from their numbers in a list of names; the name None is a NULL."""
    return pa.array(names, pa.string()).take(pa.array(codes))


def lists(values: npt.NDArray[np.float64]) -> pa.Array:
    """Lists of one length, from the rows of a matrix."""
    rows, length = values.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(length)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.reshape(-1)))
