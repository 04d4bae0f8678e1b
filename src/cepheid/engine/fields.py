"""The columns that kernels compare: computed once for each batch, as integers or doubles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from cepheid.engine.kernels.codes import encode, fill
from cepheid.engine.vector import Vector
from cepheid.language import syntax as s
from cepheid.language.functions import DataType

SLOTS = 64
"""Of a hash table, at the least; a power of two."""
ROW = "_"
"""Stands for the variable in an expression over one event: a.x and b.x are the same column."""

COMPARED = frozenset(
    {DataType.INTEGER, DataType.FLOAT, DataType.NUMBER, DataType.BOOLEAN, DataType.TIMESTAMP, DataType.INTERVAL}
)
"""The types that a kernel can compare in any way; strings only for equality."""


def over_row(expression: s.Expression) -> s.Expression:
    """An expression over one variable as an expression over any row."""
    if isinstance(expression, s.Attribute):
        return replace(expression, variable=ROW)
    return s.map_children(expression, over_row)


class StringCodes:
    """A number for each string, the same for as long as a row has it. A number is never given twice."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._codes)

    def of(self, strings: Vector) -> npt.NDArray[np.int64]:
        encoded = strings.data.dictionary_encode()
        table = self._numbers(encoded.dictionary.to_pylist())
        if not len(table):
            return np.zeros(len(strings), dtype=np.int64)
        found: npt.NDArray[np.int64] = table[pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)]
        return found

    def _numbers(self, values: list[str]) -> npt.NDArray[np.int64]:
        found, codes = [], self._codes
        for value in values:
            code = codes.get(value)
            if code is None:
                code = codes[value] = self._next
                self._next += 1
            found.append(code)
        return np.array(found, dtype=np.int64)

    def keep(self, codes: npt.NDArray[np.int64]) -> None:
        """Forget the values whose numbers no row has any more."""
        live = set(codes.tolist())
        self._codes = {value: code for value, code in self._codes.items() if code in live}

    def dump(self) -> list[Any]:
        return [self._next, [[value, code] for value, code in self._codes.items()]]

    def load(self, found: list[Any]) -> None:
        self._next, pairs = found
        self._codes = dict(pairs)


class PartitionCodes:
    """A number for each combination of PARTITION BY attributes, as for strings. NULL is a value like any other.

    There may be as many as events, so they are in a hash table that kernels know.
    """

    def __init__(self) -> None:
        self._next = self._count = 0
        self._keys = np.empty((0, 0), dtype=np.int64)
        self._codes = np.empty(0, dtype=np.int64)
        self._slots = np.zeros(SLOTS, dtype=np.int64)

    def __len__(self) -> int:
        return self._count

    def of(self, columns: list[npt.NDArray[np.int64]], nulls: list[npt.NDArray[np.bool_]]) -> npt.NDArray[np.int64]:
        width, count = len(columns), len(columns[0])
        rows = np.empty((count, 2 * width), dtype=np.int64)
        for place, (column, null) in enumerate(zip(columns, nulls, strict=True)):
            rows[:, place] = np.where(null, 0, column)
            rows[:, width + place] = null
        self._make_room(count, 2 * width)
        found = np.empty(count, dtype=np.int64)
        total = encode(rows, self._slots, self._keys, self._codes, self._count, self._next, found)  # type: ignore[no-untyped-call]
        self._next += total - self._count
        self._count = total
        return found

    def _make_room(self, more: int, width: int) -> None:
        """For so many new keys: no more than half of the slots are ever taken."""
        room = self._count + more
        if room > len(self._codes):
            keys, codes = self._keys[: self._count], self._codes[: self._count]
            self._keys = np.empty((2 * room, width), dtype=np.int64)
            self._codes = np.empty(2 * room, dtype=np.int64)
            if self._count:
                self._keys[: self._count], self._codes[: self._count] = keys, codes
        if 2 * room > len(self._slots):
            self._slots = np.zeros(1 << (4 * room).bit_length(), dtype=np.int64)
            fill(self._slots, self._keys, self._count)  # type: ignore[no-untyped-call]

    def keep(self, codes: npt.NDArray[np.int64]) -> None:
        """Forget the combinations whose numbers no row has any more."""
        live = np.isin(self._codes[: self._count], codes)
        self._set(self._keys[: self._count][live], self._codes[: self._count][live])

    def _set(self, keys: npt.NDArray[np.int64], codes: npt.NDArray[np.int64]) -> None:
        self._keys, self._codes, self._count = keys, codes, len(codes)
        self._slots = np.zeros(max(SLOTS, 1 << (4 * len(codes)).bit_length()), dtype=np.int64)
        fill(self._slots, self._keys, self._count)  # type: ignore[no-untyped-call]

    def parts(self) -> npt.NDArray[np.int64]:
        """All values that occur in a combination, be they numbers of strings or not."""
        return np.unique(self._keys[: self._count])

    def dump(self) -> list[Any]:
        keys, codes = self._keys[: self._count].tolist(), self._codes[: self._count].tolist()
        return [self._next, [[key, code] for key, code in zip(keys, codes, strict=True)]]

    def load(self, found: list[Any]) -> None:
        self._next, pairs = found
        keys = np.array([key for key, _ in pairs], dtype=np.int64).reshape(len(pairs), -1 if pairs else 0)
        self._set(keys, np.array([code for _, code in pairs], dtype=np.int64))


def as_integers(vector: Vector, codes: StringCodes) -> npt.NDArray[np.int64]:
    """The 64 bits of each value as the store keeps them. What is NULL may be anything: no kernel looks at it."""
    if vector.type is DataType.STRING:
        return codes.of(vector)
    if vector.type is DataType.NULL:
        return np.zeros(len(vector), dtype=np.int64)
    data = vector.data
    if data.dtype == np.float64:
        data = (data + 0.0).view(np.int64)  # -0.0 becomes 0.0: equal numbers have equal bits
    found: npt.NDArray[np.int64] = np.asarray(data, dtype=np.int64)
    return found
