"""Comparing and calculating with vectors, exactly as docs/semantics.md says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.vector import Mask, Numbers, Vector, both_valid, nulls, number, truth
from cepheid.language.functions import DataType
from cepheid.language.syntax import ArithmeticOperator, ComparisonOperator

_COMPARE: dict[ComparisonOperator, Callable[[Any, Any], Any]] = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_COMPARE_ARROW: dict[ComparisonOperator, Callable[[Any, Any], Any]] = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_MIRRORED: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
}  # fmt: skip
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def compare(operator: ComparisonOperator, left: Vector, right: Vector) -> Vector:
    if DataType.NULL in (left.type, right.type):
        return nulls(max(len(left), len(right)))
    if left.type is DataType.STRING:
        result = _compare_strings(operator, left, right)
    elif left.data.dtype == np.int64 and right.data.dtype == np.float64:
        result = _compare_exactly(operator, left.data, right.data)
    elif left.data.dtype == np.float64 and right.data.dtype == np.int64:
        result = _compare_exactly(_MIRRORED[operator], right.data, left.data)
    else:
        result = _COMPARE[operator](left.data, right.data)
    valid = both_valid(left, right)
    return Vector(DataType.BOOLEAN, result, None if valid is None else np.broadcast_to(valid, result.shape))


def _compare_strings(operator: ComparisonOperator, left: Vector, right: Vector) -> Mask:
    sides: list[Any] = [left.data, right.data]
    for i, other in ((0, 1), (1, 0)):
        if len(sides[i]) == 1 and len(sides[other]) != 1:
            sides[i] = sides[i][0]
    found = _COMPARE_ARROW[operator](*sides)
    result: Mask = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
    return result


def _compare_exactly(operator: ComparisonOperator, whole: npt.NDArray[np.int64], real: npt.NDArray[np.float64]) -> Mask:
    """An integer with a double, neither of them rounded: compare with the double's floor, then look at its fraction."""
    floor = np.floor(real)
    inside = (floor >= -(2.0**63)) & (floor < 2.0**63)
    bound = np.where(inside, floor, 0).astype(np.int64)
    less: Mask = np.where(inside, (whole < bound) | ((whole == bound) & (real > floor)), real > 0)
    equal: Mask = inside & (whole == bound) & (real == floor)
    results: dict[ComparisonOperator, Callable[[], Mask]] = {
        "=": lambda: equal,
        "<>": lambda: ~equal,
        "<": lambda: less,
        "<=": lambda: less | equal,
        ">": lambda: ~(less | equal),
        ">=": lambda: ~less,
    }
    return results[operator]()


def negate(operand: Vector) -> Vector:
    return Vector(DataType.BOOLEAN, ~operand.data.astype(np.bool_), operand.valid)


def conjunction(operands: Sequence[Vector]) -> Vector:
    return truth(
        reduce(np.logical_and, [o.true() for o in operands]), reduce(np.logical_or, [o.false() for o in operands])
    )


def disjunction(operands: Sequence[Vector]) -> Vector:
    return truth(
        reduce(np.logical_or, [o.true() for o in operands]), reduce(np.logical_and, [o.false() for o in operands])
    )


def negative(operand: Vector) -> Vector:
    if operand.type is DataType.NULL:
        return operand
    if operand.data.dtype != np.int64:
        return Vector(operand.type, -operand.data, operand.valid)
    return _whole(operand.type, -operand.data, operand.data == _LEAST, operand.valid)


def arithmetic(operator: ArithmeticOperator, left: Vector, right: Vector) -> Vector:
    if DataType.NULL in (left.type, right.type):
        return nulls(max(len(left), len(right)))
    valid = both_valid(left, right)
    type_ = _result_type(operator, left.type, right.type)
    if valid is not None:
        valid = np.broadcast_to(valid, np.broadcast_shapes(left.data.shape, right.data.shape))
    with np.errstate(all="ignore"):
        if operator == "/":
            divisor = right.floats()
            return number(
                type_, np.where(divisor == 0, np.nan, left.floats() / np.where(divisor == 0, 1, divisor)), valid
            )
        if left.data.dtype == np.int64 and right.data.dtype == np.int64:
            result, wrong = _whole_numbers(operator, left.data, right.data)
            return _whole(type_, result, wrong, valid)
        return number(type_, _REAL[operator](left.floats(), right.floats()), valid)


_REAL: dict[str, Callable[[Any, Any], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply, "%": np.fmod}


def _whole_numbers(operator: str, x: Numbers, y: Numbers) -> tuple[Numbers, Mask]:
    """The result, and where it is none: beyond 64 bits, or a division by zero."""
    match operator:
        case "+":
            result = x + y
            return result, ((x ^ result) & (y ^ result)) < 0
        case "-":
            result = x - y
            return result, ((x ^ y) & (x ^ result)) < 0
        case "*":
            result = x * y
            checked = result // np.where(x == 0, 1, x)
            return result, ((x != 0) & (checked != y)) | ((x == -1) & (y == _LEAST))
        case _:
            divisor = np.where((y == 0) | (y == -1), 1, y)  # by -1 nothing is left over, and the hardware would trap
            return np.fmod(x, divisor), np.broadcast_to(y == 0, np.broadcast_shapes(x.shape, y.shape))


def _whole(type_: DataType, result: Numbers, wrong: Mask, valid: Mask | None) -> Vector:
    if wrong.any():
        valid = ~wrong if valid is None else valid & ~wrong
    return Vector(type_, result, valid)


def _result_type(operator: str, left: DataType, right: DataType) -> DataType:
    times = (DataType.TIMESTAMP, DataType.INTERVAL)
    if operator == "/":
        return DataType.FLOAT
    if left in times or right in times:
        if operator == "-" and left is right:
            return DataType.INTERVAL
        return DataType.TIMESTAMP if DataType.TIMESTAMP in (left, right) else DataType.INTERVAL
    return DataType.FLOAT if DataType.FLOAT in (left, right) else DataType.INTEGER


def choose(chosen: Mask, yes: Vector, no: Vector) -> Vector:
    """Where ``chosen``, the one; elsewhere the other. Integers become doubles beside doubles."""
    length = len(chosen)
    if yes.type is DataType.NULL and no.type is DataType.NULL:
        return nulls(length)
    if yes.type is DataType.NULL or no.type is DataType.NULL:
        known, where = (no, ~chosen) if yes.type is DataType.NULL else (yes, chosen)
        known = known.stretched(length)
        return Vector(known.type, known.data, where & known.mask())
    yes, no = yes.stretched(length), no.stretched(length)
    valid = None if yes.valid is None and no.valid is None else np.where(chosen, yes.mask(), no.mask())
    if yes.is_arrow:
        return Vector(yes.type, pc.if_else(pa.array(chosen), yes.data, no.data), valid)
    type_ = yes.type if yes.type is no.type else DataType.FLOAT
    return Vector(type_, np.where(chosen, yes.data, no.data), valid)
