"""The scalar functions of the language on vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.operators import choose, compare, negative
from cepheid.engine.vector import Vector, both_valid, nulls, number
from cepheid.language import syntax as s
from cepheid.language.functions import SCALARS, DataType, Function, find_function
from cepheid.pattern.normal import NormalForm


def call(function: Function | None, arguments: Sequence[Vector]) -> Vector:
    assert function is not None, "the checks know every function"
    name = function.name
    if function.body is not None:
        return _registered(function, arguments)
    if name in _NULL_AWARE:
        return _NULL_AWARE[name](arguments)
    length = max(map(len, arguments))
    if any(a.type is DataType.NULL for a in arguments):
        return nulls(length)
    with np.errstate(all="ignore"):
        return _FUNCTIONS[name](*arguments)


# --- numbers


def _rounding(function: Callable[[Any], Any]) -> Callable[[Vector], Vector]:
    return lambda x: x if x.data.dtype == np.int64 else number(x.type, function(x.data), x.valid)


def _real(function: Callable[..., Any]) -> Callable[..., Vector]:
    def apply(*arguments: Vector) -> Vector:
        result = function(*(a.floats() for a in arguments))
        valid = both_valid(*arguments)
        return number(DataType.FLOAT, result, None if valid is None else np.broadcast_to(valid, result.shape))

    return apply


def _absolute(x: Vector) -> Vector:
    if x.data.dtype == np.float64:
        return Vector(x.type, np.abs(x.data), x.valid)
    return choose(np.asarray(x.data < 0), negative(x), x)


def _sign(x: Vector) -> Vector:
    return Vector(DataType.INTEGER, np.sign(x.data).astype(np.int64), x.valid)


# --- what knows NULL


def _coalesce(arguments: Sequence[Vector]) -> Vector:
    length = max(map(len, arguments))
    result = arguments[-1].stretched(length)
    for argument in reversed(arguments[:-1]):
        stretched = argument.stretched(length)
        result = choose(stretched.mask(), stretched, result)
    return result


def _extreme(smaller: bool) -> Callable[[Sequence[Vector]], Vector]:
    def apply(arguments: Sequence[Vector]) -> Vector:
        length = max(map(len, arguments))
        result = arguments[0].stretched(length)
        for argument in arguments[1:]:
            other = argument.stretched(length)
            better = compare("<" if smaller else ">", other, result).true() | (~result.mask() & other.mask())
            result = choose(better, other, result)
        return result

    return apply


def _nullif(arguments: Sequence[Vector]) -> Vector:
    length = max(map(len, arguments))
    left, right = (a.stretched(length) for a in arguments)
    return choose(compare("=", left, right).true(), nulls(length), left)


# --- strings: a function is asked once for each different string


def map_strings(text: Vector, function: Callable[[str], Any], type_: DataType) -> Vector:
    encoded = text.data.dictionary_encode() if not pa.types.is_dictionary(text.data.type) else text.data
    results = [function(word) for word in encoded.dictionary.to_pylist()]
    codes = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    if type_ is DataType.STRING:
        values = pa.array([*results, None], pa.large_string())
        known = np.where(text.mask(), codes, len(results))
        found = values.take(pa.array(known))
        return Vector(type_, found, None if found.null_count == 0 else found.is_valid().to_numpy(zero_copy_only=False))
    dtype = np.bool_ if type_ is DataType.BOOLEAN else np.int64
    table: Any = np.array([*results, 0], dtype=dtype)
    return Vector(type_, table[codes] if results else np.zeros(len(text), dtype=dtype), text.valid)


def like(text: Vector, pattern: Vector) -> Vector:
    if DataType.NULL in (text.type, pattern.type):
        return nulls(max(len(text), len(pattern)))
    if len(pattern) == 1 and pattern.valid is None:
        regex = _regex(pattern.data[0].as_py())
        return map_strings(text, lambda word: regex.fullmatch(word) is not None, DataType.BOOLEAN)
    return _row_by_row(
        lambda word, wanted: _regex(wanted).fullmatch(word) is not None, [text, pattern], DataType.BOOLEAN
    )


@lru_cache(maxsize=1000)
def _regex(pattern: str) -> re.Pattern[str]:
    """``%`` is any text, ``_`` any character, and a backslash takes the next one as it is."""
    parts = re.findall(r"\\.|.|\\$", pattern, re.DOTALL)
    translated = [{"%": ".*", "_": "."}.get(p, re.escape(p[1:] if len(p) > 1 else p)) for p in parts]
    return re.compile("".join(translated), re.DOTALL)


def _substr(text: Vector, start: Vector, length: Vector | None = None) -> Vector:
    def cut(word: str, first: int, count: int | None = None) -> str | None:
        if first < 1 or (count is not None and count < 0):
            return None
        return word[first - 1 :] if count is None else word[first - 1 : first - 1 + count]

    rest = [start] if length is None else [start, length]
    if all(len(r) == 1 and r.valid is None for r in rest):
        numbers = [int(r.data[0]) for r in rest]
        return map_strings(text, lambda word: cut(word, *numbers), DataType.STRING)
    return _row_by_row(cut, [text, *rest], DataType.STRING)


def _concat(*texts: Vector) -> Vector:
    length = max(map(len, texts))
    joined = pc.binary_join_element_wise(*(t.stretched(length).data for t in texts), pa.scalar("", pa.large_string()))
    return Vector(
        DataType.STRING, joined, None if joined.null_count == 0 else joined.is_valid().to_numpy(zero_copy_only=False)
    )


def _row_by_row(function: Callable[..., Any], arguments: Sequence[Vector], type_: DataType) -> Vector:
    """For the rare string functions whose other arguments are not constants."""
    length = max(map(len, arguments))
    columns = [a.stretched(length) for a in arguments]
    valid = both_valid(*columns)
    lists = [c.data.to_pylist() if c.is_arrow else c.data.tolist() for c in columns]
    known = np.ones(length, dtype=np.bool_) if valid is None else valid
    results = [function(*row) if ok else None for ok, *row in zip(known, *lists, strict=True)]
    array = pa.array(results, pa.large_string() if type_ is DataType.STRING else pa.bool_())
    mask = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    data = array if type_ is DataType.STRING else pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    return Vector(type_, data, mask)


# --- lists


def _correlation(x: Vector, y: Vector) -> Vector:
    """Pearson's, row by row; rows with lists of one length are computed together."""
    length = max(len(x), len(y))
    x, y = x.stretched(length), y.stretched(length)
    sizes = [pc.fill_null(pc.list_value_length(v.data), 0).to_numpy(zero_copy_only=False) for v in (x, y)]
    valid = (sizes[0] == sizes[1]) & (sizes[0] >= 2) & x.mask() & y.mask()
    result = np.full(length, np.nan)
    for size in np.unique(sizes[0][valid]):
        rows = np.flatnonzero(valid & (sizes[0] == size))
        left, right = (_matrix(v, rows, int(size)) for v in (x, y))
        left -= left.mean(axis=1, keepdims=True)
        right -= right.mean(axis=1, keepdims=True)
        scale = np.sqrt((left * left).sum(axis=1) * (right * right).sum(axis=1))
        result[rows] = np.where(scale > 0, (left * right).sum(axis=1) / np.where(scale > 0, scale, 1), np.nan)
    return number(DataType.FLOAT, result, None)


def _matrix(vector: Vector, rows: Any, size: int) -> Any:
    values = vector.data.take(pa.array(rows)).flatten()
    return pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False).reshape(-1, size).copy()


# --- functions of the caller


def bound(normal: NormalForm, known: dict[str, Function | None]) -> NormalForm:
    """A pattern with the functions that are registered now. ``known``: those that stay as they were; it is added to."""

    def change(expression: s.Expression) -> s.Expression:
        found = s.map_children(expression, change)
        if isinstance(found, s.Call) and found.function not in SCALARS:
            name = found.function
            found = replace(found, bound=known.setdefault(name, find_function(name)))
        return found

    branches = tuple(branch.map_expressions(change) for branch in normal.branches)
    if normal.output is None:
        return replace(normal, branches=branches)
    output = tuple(replace(item, expression=change(item.expression)) for item in normal.output)
    return replace(normal, branches=branches, output=output)


def _registered(function: Function, arguments: Sequence[Vector]) -> Vector:
    """Ask only about rows without NULL, all of them in one call."""
    length = max(map(len, arguments), default=1)
    columns = [a.stretched(length) for a in arguments]
    valid = both_valid(*columns)
    rows = np.arange(length) if valid is None else np.flatnonzero(valid)
    if any(c.type is DataType.NULL for c in columns) or not len(rows):
        return nulls(length)
    given = [c.take(rows) for c in columns]
    assert function.body is not None
    found = function.body(*(g.data.to_numpy(zero_copy_only=False) if g.is_arrow else g.data for g in given))
    found = np.asarray(found)
    if found.shape != rows.shape:
        raise ValueError(
            f"the function {function.name!r} was given {len(rows)} rows and must return an array of that length; "
            f"it returned one of shape {found.shape}"
        )
    assert function.result is not None
    if function.result is DataType.STRING:
        texts = np.full(length, None, dtype=object)
        texts[rows] = found
        array = pa.array(texts, pa.large_string())
        return Vector(
            DataType.STRING, array, None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
        )
    dtype = {DataType.INTEGER: np.int64, DataType.FLOAT: np.float64, DataType.BOOLEAN: np.bool_}[function.result]
    data: Any = np.zeros(length, dtype=dtype)
    data[rows] = found.astype(dtype)
    return number(function.result, data, valid)


_NULL_AWARE: dict[str, Callable[[Sequence[Vector]], Vector]] = {
    "COALESCE": _coalesce,
    "LEAST": _extreme(smaller=True),
    "GREATEST": _extreme(smaller=False),
    "NULLIF": _nullif,
}
_FUNCTIONS: dict[str, Callable[..., Vector]] = {
    "ABS": _absolute,
    "SIGN": _sign,
    "FLOOR": _rounding(np.floor),
    "CEIL": _rounding(np.ceil),
    "ROUND": _rounding(lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
    "SQRT": _real(np.sqrt),
    "EXP": _real(np.exp),
    "LN": _real(lambda x: np.log(np.where(x > 0, x, np.nan))),
    "POWER": _real(np.power),
    "LOWER": lambda t: map_strings(t, str.lower, DataType.STRING),
    "UPPER": lambda t: map_strings(t, str.upper, DataType.STRING),
    "TRIM": lambda t: map_strings(t, lambda word: word.strip(" "), DataType.STRING),
    "LENGTH": lambda t: map_strings(t, len, DataType.INTEGER),
    "SUBSTR": _substr,
    "CONCAT": _concat,
    "CORR": _correlation,
}
