"""Events as Arrow's record batches: what Arrow itself has no short way for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_INT64 = pa.int64()
_TAKE = pc.get_function("take")
_UNCHECKED = pc.TakeOptions(boundscheck=False)


def in_one(events: pa.Table) -> list[pa.RecordBatch]:
    """The events of a table in one batch; in several where there is more text than one holds."""
    found = events.to_batches()
    if len(found) > 1:
        found = events.combine_chunks().to_batches()
    return found or [nothing(events.schema)]


def nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def integers(values: npt.NDArray[np.int64]) -> pa.Array:
    """Numbers as they are. ``pa.array`` looks at them for longer than it takes to use a few."""
    return pa.Array.from_buffers(_INT64, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def picked(events: Any, places: npt.NDArray[np.int64]) -> Any:
    """The rows at some places, which are there, of a batch, a table or a column: ``take`` without its preparations."""
    return _TAKE.call([events, integers(places)], _UNCHECKED)
