"""The columns that kernels compare: computed once for each batch, as integers or doubles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from cepheid.engine.vector import Vector
from cepheid.language import syntax as s
from cepheid.language.functions import DataType

Key = TypeVar("Key")

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


class _Codes(Generic[Key]):
    """A number for each value, the same for as long as a row has it. A number is never given twice."""

    def __init__(self) -> None:
        self._codes: dict[Key, int] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._codes)

    def codes(self, values: Iterable[Key]) -> npt.NDArray[np.int64]:
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


class StringCodes(_Codes[str]):
    """A number for each string."""

    def load(self, found: list[Any]) -> None:
        self._next, pairs = found
        self._codes = dict(pairs)

    def of(self, strings: Vector) -> npt.NDArray[np.int64]:
        encoded = strings.data.dictionary_encode()
        table = self.codes(encoded.dictionary.to_pylist())
        if not len(table):
            return np.zeros(len(strings), dtype=np.int64)
        found: npt.NDArray[np.int64] = table[pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)]
        return found


class PartitionCodes(_Codes[tuple[int, ...]]):
    """A number for each combination of PARTITION BY attributes. NULL is a value like any other."""

    def load(self, found: list[Any]) -> None:
        self._next, pairs = found
        self._codes = {tuple(key): code for key, code in pairs}

    def parts(self) -> npt.NDArray[np.int64]:
        """All values that occur in a combination, be they numbers of strings or not."""
        return np.unique(np.array(list(self._codes), dtype=np.int64).reshape(-1))

    def of(self, columns: list[npt.NDArray[np.int64]], nulls: list[npt.NDArray[np.bool_]]) -> npt.NDArray[np.int64]:
        known = [np.where(null, 0, column) for column, null in zip(columns, nulls, strict=True)]
        parts = np.stack([*known, *(null.astype(np.int64) for null in nulls)], axis=1)
        unique, inverse = np.unique(parts, axis=0, return_inverse=True)
        table = self.codes(map(tuple, unique.tolist()))
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
