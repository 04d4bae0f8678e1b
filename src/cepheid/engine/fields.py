"""The columns that kernels compare: computed once for each batch, as integers or doubles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from cepheid.engine.vector import Vector
from cepheid.language import syntax as s
from cepheid.language.functions import DataType

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
    """A number for each string that was ever seen, the same for the life of the state."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def dump(self) -> list[str]:
        return list(self._codes)

    def load(self, words: list[str]) -> None:
        self._codes = {word: code for code, word in enumerate(words)}

    def of(self, strings: Vector) -> npt.NDArray[np.int64]:
        encoded = strings.data.dictionary_encode()
        codes = self._codes
        table = np.array(
            [codes.setdefault(word, len(codes)) for word in encoded.dictionary.to_pylist()] or [0], dtype=np.int64
        )
        found: npt.NDArray[np.int64] = table[pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)]
        return found


class PartitionCodes:
    """A number for each combination of PARTITION BY attributes. NULL is a value like any other."""

    def __init__(self) -> None:
        self._codes: dict[tuple[object, ...], int] = {}

    def dump(self) -> list[tuple[object, ...]]:
        return list(self._codes)

    def load(self, keys: list[list[object]]) -> None:
        self._codes = {tuple(key): code for code, key in enumerate(keys)}

    def of(self, columns: list[npt.NDArray[np.int64]], nulls: list[npt.NDArray[np.bool_]]) -> npt.NDArray[np.int64]:
        known = [np.where(null, 0, column) for column, null in zip(columns, nulls, strict=True)]
        parts = np.stack([*known, *(null.astype(np.int64) for null in nulls)], axis=1)
        unique, inverse = np.unique(parts, axis=0, return_inverse=True)
        codes = self._codes
        table = np.array([codes.setdefault(tuple(row), len(codes)) for row in unique.tolist()], dtype=np.int64)
        found: npt.NDArray[np.int64] = table[inverse.reshape(-1)]
        return found


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
