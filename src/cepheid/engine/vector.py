"""Columns of values as the engine computes with them: NumPy data and a mask of what is not NULL.

Integers, times and lengths of time are int64, other numbers float64, truth values bool; strings and lists stay Arrow
arrays. A vector of length one stands for a constant and fits any length.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import eq
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language.functions import DataType
from cepheid.language.syntax import Constant
from cepheid.language.values import Interval, Timestamp
from cepheid.pattern.schema import data_type

Mask: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[Any]

ARROW_KINDS = frozenset({DataType.STRING, DataType.LIST, DataType.OTHER})


@dataclass(frozen=True, slots=True)
class Unit:
    """What a tick of the engine's clock is: microseconds, or nanoseconds where a column or a constant needs them."""

    name: str
    nanoseconds: int

    def ticks(self, nanoseconds: int) -> int:
        whole, rest = divmod(nanoseconds, self.nanoseconds)
        assert rest == 0, "the unit was chosen so that all constants are whole"
        return whole


MICROSECONDS = Unit("us", 1000)
NANOSECONDS = Unit("ns", 1)


@dataclass(frozen=True, slots=True)
class Vector:
    """Values of one type. ``valid`` is None where nothing is NULL."""

    type: DataType
    data: Any
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.data)

    @property
    def is_arrow(self) -> bool:
        return self.type in ARROW_KINDS

    def mask(self) -> Mask:
        return np.ones(len(self.data), dtype=np.bool_) if self.valid is None else self.valid

    def floats(self) -> npt.NDArray[np.float64]:
        return np.asarray(self.data, dtype=np.float64)

    def true(self) -> Mask:
        """Where a truth value is TRUE."""
        data: Mask = np.asarray(self.data, dtype=np.bool_)
        return data if self.valid is None else data & self.valid

    def false(self) -> Mask:
        data: Mask = ~np.asarray(self.data, dtype=np.bool_)
        return data if self.valid is None else data & self.valid

    def stretched(self, length: int) -> Vector:
        """A constant repeated to a length."""
        if len(self.data) == length:
            return self
        where = np.zeros(length, dtype=np.int64)
        return self.take(where)

    def take(self, rows: npt.NDArray[np.int64]) -> Vector:
        data = self.data.take(pa.array(rows)) if self.is_arrow else self.data[rows]
        return Vector(self.type, data, None if self.valid is None else self.valid[rows])


def nulls(length: int = 1) -> Vector:
    return Vector(DataType.NULL, np.zeros(length, dtype=np.int64), np.zeros(length, dtype=np.bool_))


def truth(true: Mask, false: Mask) -> Vector:
    """A truth value from where it is TRUE and where it is FALSE; elsewhere it is NULL."""
    valid = true | false
    return Vector(DataType.BOOLEAN, true, None if valid.all() else valid)


def number(type_: DataType, data: Numbers, valid: Mask | None) -> Vector:
    """A result of arithmetic: what is not a number is NULL."""
    if data.dtype == np.float64:
        odd = np.isnan(data)
        if odd.any():
            valid = ~odd if valid is None else valid & ~odd
    return Vector(type_, data, valid)


def both_valid(*vectors: Vector) -> Mask | None:
    """Where none of the vectors is NULL."""
    valid: Mask | None = None
    for vector in vectors:
        if vector.valid is not None:
            valid = vector.valid if valid is None else valid & vector.valid
    return valid


def constant(value: Constant, unit: Unit) -> Vector:
    match value:
        case None:
            return nulls()
        case bool():
            return Vector(DataType.BOOLEAN, np.array([value]))
        case int():
            return Vector(DataType.INTEGER, np.array([value], dtype=np.int64))
        case float():
            return Vector(DataType.FLOAT, np.array([value]))
        case str():
            return Vector(DataType.STRING, pa.array([value], pa.large_string()))
        case Timestamp(nanoseconds):
            return Vector(DataType.TIMESTAMP, np.array([unit.ticks(nanoseconds)], dtype=np.int64))
        case Interval(nanoseconds):
            return Vector(DataType.INTERVAL, np.array([unit.ticks(nanoseconds)], dtype=np.int64))


_PLAIN = {pa.int64().id: DataType.INTEGER, pa.float64().id: DataType.FLOAT}
"""Columns that are taken as they are …"""
_DTYPES = {DataType.INTEGER: np.int64, DataType.FLOAT: np.float64}
"""… and how."""
FEW = 8
"""So many values are looked at faster one by one than all at once."""


class ColumnError(ValueError):
    """A column holds values that the engine cannot take."""


def from_arrow(array: pa.Array | pa.ChunkedArray, unit: Unit, name: str = "") -> Vector:
    """A column of the input. NaN becomes NULL; times are cast to the engine's unit."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    plain = _PLAIN.get(array.type.id)
    if plain is not None:
        if len(array) <= FEW:
            few = array.to_pylist()
            if all(map(eq, few, few)) and None not in few:
                return Vector(plain, np.array(few, dtype=_DTYPES[plain]))
        if array.null_count == 0:
            return number(plain, array.to_numpy(), None)
    try:
        return _from_arrow(array, data_type(array.type), unit)
    except pa.ArrowInvalid as error:
        raise ColumnError(f"column {name!r} ({array.type}): {error}") from None


def _from_arrow(array: pa.Array, kind: DataType, unit: Unit) -> Vector:
    match kind:
        case DataType.NULL:
            return nulls(len(array))
        case DataType.STRING:
            if pa.types.is_dictionary(array.type):
                array = array.dictionary_decode()
            return Vector(kind, array.cast(pa.large_string()), _valid(array))
        case DataType.LIST | DataType.OTHER:
            return Vector(kind, array, _valid(array))
        case DataType.NUMBER:
            kind, target = DataType.FLOAT, pa.float64()
            _refuse_rounding(array)
        case DataType.FLOAT:
            target = pa.float64()
        case DataType.BOOLEAN:
            target = pa.bool_()
        case DataType.TIMESTAMP:
            target = pa.timestamp(unit.name)
            if pa.types.is_timestamp(array.type) and array.type.tz is not None:
                target = pa.timestamp(unit.name, array.type.tz)
        case DataType.INTERVAL:
            target = pa.duration(unit.name)
        case _:
            target = pa.int64()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type != target:
        array = array.cast(target)
    if kind in (DataType.TIMESTAMP, DataType.INTERVAL):
        array = array.view(pa.int64())
    valid = _valid(array)
    if valid is not None:
        array = pc.fill_null(array, False if kind is DataType.BOOLEAN else 0)
    return number(kind, array.to_numpy(zero_copy_only=False), valid)


def _refuse_rounding(array: pa.Array) -> None:
    """Decimals are compared as doubles, which tell them apart up to some fifteen digits. More would be guessing."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    same = pc.equal(array.cast(pa.float64()).cast(array.type, safe=False), array)
    if not pc.all(same, min_count=0).as_py():
        first = array.filter(pc.invert(pc.fill_null(same, True)))[0]
        raise pa.ArrowInvalid(
            f"{first} has more digits than numbers are compared with. Cast the column to fewer digits, or to text if "
            "it is only compared for equality"
        )


def _valid(array: pa.Array) -> Mask | None:
    return None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
