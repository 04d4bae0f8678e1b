"""The sets that KL variables are bound to, numbered, and what aggregates say of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.vector import Mask, Vector, nulls, number
from cepheid.language.functions import DataType

Rows: TypeAlias = npt.NDArray[np.int64]


class Sets:
    """Sets of row numbers, in the order of time. A set's number is negative, so that it is never taken for a row's."""

    def __init__(self) -> None:
        self.starts = np.zeros(1, dtype=np.int64)
        self.members = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def add(self, begin: Rows, members: Rows) -> Rows:
        """Keep sets; their numbers."""
        first = len(self)
        self.starts = np.concatenate([self.starts, self.starts[-1] + begin[1:]])
        self.members = np.concatenate([self.members, members])
        return -1 - np.arange(first, len(self), dtype=np.int64)

    def expand(self, numbers: Rows) -> tuple[Rows, Rows]:
        """For each member of each set: the place of the set in ``numbers``, and the member."""
        chosen = -1 - numbers
        begin, sizes = self.starts[chosen], self.sizes(numbers)
        which = np.repeat(np.arange(len(numbers), dtype=np.int64), sizes)
        offsets = np.arange(len(which), dtype=np.int64) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return which, self.members[begin[which] + offsets]

    def sizes(self, numbers: Rows) -> Rows:
        chosen = -1 - numbers
        return self.starts[chosen + 1] - self.starts[chosen]

    def keep(self, numbers: Rows) -> dict[int, int]:
        """Forget all other sets; the new numbers of those that are kept."""
        kept = np.unique(numbers)
        _, members = self.expand(kept)
        sizes = self.sizes(kept)
        self.starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        self.members = members
        return {int(old): -1 - place for place, old in enumerate(kept)}


def aggregate(function: str, values: Vector, which: Rows, count: int) -> Vector:
    """A function of the values of each of ``count`` sets; ``which`` says to which set a value belongs.

    NULL is left out.
    """
    valid = values.mask()
    which = which[valid]
    present = np.bincount(which, minlength=count)
    if function == "COUNT":
        return Vector(DataType.INTEGER, present.astype(np.int64))
    if values.type is DataType.NULL or not len(which):
        return nulls(count)
    some: Mask = present > 0
    data = values.take(np.flatnonzero(valid)).data
    if function in ("MIN", "MAX"):
        return _extreme(values.type, data, which, count, some, np.minimum if function == "MIN" else np.maximum)
    if function == "SUM" and data.dtype == np.int64:
        return _whole_sum(values.type, data, which, count, some)
    with np.errstate(all="ignore"):
        total = np.bincount(which, weights=data, minlength=count)
        if function == "SUM":
            return number(DataType.FLOAT, total, None if some.all() else some)
        mean = total / np.where(some, present, 1)
        if function == "AVG":
            return number(DataType.FLOAT, mean, None if some.all() else some)
        squares = np.bincount(which, weights=(data - mean[which]) ** 2, minlength=count)
        several: Mask = (present > 1) & np.isfinite(squares)
        return number(DataType.FLOAT, np.sqrt(squares / np.where(present > 1, present - 1, 1)), several)


def _extreme(
    type_: DataType, data: object, which: Rows, count: int, some: Mask, function: Callable[..., object]
) -> Vector:
    valid = None if some.all() else some
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        words, ranks = np.unique(data.to_numpy(zero_copy_only=False).astype(object), return_inverse=True)
        best = _extreme(DataType.INTEGER, ranks.reshape(-1).astype(np.int64), which, count, some, function)
        chosen = pa.array(words, pa.large_string()).take(pa.array(np.where(some, best.data, 0)))
        return Vector(type_, chosen, valid)
    assert isinstance(data, np.ndarray)
    order = np.argsort(which, kind="stable")
    begin = np.flatnonzero(np.diff(which[order], prepend=-1))
    result = np.zeros(count, dtype=data.dtype)
    if data.dtype == np.bool_:
        reduced = (np.logical_and if function is np.minimum else np.logical_or).reduceat(data[order], begin)
    else:
        reduced = function.reduceat(data[order], begin)  # type: ignore[attr-defined]
    result[which[order][begin]] = reduced
    return Vector(type_, result, valid)


def _whole_sum(type_: DataType, data: Rows, which: Rows, count: int, some: Mask) -> Vector:
    """Integers are added as integers; a sum beyond 64 bits is NULL."""
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, which, data)
    size = np.bincount(which, weights=np.abs(data.astype(np.float64)), minlength=count)
    valid = some
    for doubtful in np.flatnonzero(size > 2.0**62):
        exact = sum(data[which == doubtful].tolist())
        valid = valid & (np.arange(count) != doubtful) if not -(2**63) <= exact < 2**63 else valid
    return Vector(type_, total, None if valid.all() else valid)
