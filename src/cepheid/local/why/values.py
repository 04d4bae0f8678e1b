"""What values there are where a condition lets none of them through."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.language.problems import closest
from cepheid.language.text import expression_text
from cepheid.language.values import Interval
from cepheid.language.words import quote_string
from cepheid.local.why.trial import Trial
from cepheid.pattern.normal import has_neighbours

SHOWN = 3
"""How many values are shown as examples."""


def how_near(condition: s.Expression, pattern: Pattern, trial: Trial) -> str | None:
    """How near the matches of a pattern come to a condition that it does not ask for."""
    if has_neighbours(condition):
        return None
    match condition:
        case s.Comparison(operator, left, right) if not s.variables(right):
            return _against_constant(operator, left, right, pattern, trial)
        case s.Comparison(operator, left, right) if s.variables(left) & s.variables(right) == frozenset():
            return _pair(operator, left, right, trial.found(pattern, left, right))
        case s.In(operand, _) | s.Like(operand, _) | s.Not(s.In(operand, _) | s.Like(operand, _)):
            return _common(operand, trial.found(pattern, operand)["0"], None)
        case s.IsNull(operand):
            return f"{expression_text(operand)} is never NULL"
        case s.Not(s.IsNull(operand)):
            return f"{expression_text(operand)} is always NULL"
    return None


def _against_constant(
    operator: s.ComparisonOperator, left: s.Expression, right: s.Expression, pattern: Pattern, trial: Trial
) -> str | None:
    name = expression_text(left)
    column = trial.found(pattern, left)["0"]
    if column.null_count == len(column):
        return f"{name} is NULL in all of them"
    if not _ordered(column.type):
        wanted = right.value if isinstance(right, s.Literal) else None
        return _common(left, column, wanted if isinstance(wanted, str) else None) if _plain(column.type) else None
    bounds = pc.min_max(column).as_py()
    low, high = value_text(bounds["min"]), value_text(bounds["max"])
    match operator:
        case ">" | ">=":
            return f"the largest {name} is {high}"
        case "<" | "<=":
            return f"the smallest {name} is {low}"
        case "<>":
            return f"{name} is always {low}"
    return f"{name} is always {low}" if low == high else f"{name} is between {low} and {high}"


def _common(operand: s.Expression, column: pa.ChunkedArray, wanted: str | None) -> str | None:
    """The most frequent values, and one that may have been meant."""
    name = expression_text(operand)
    if not _plain(column.type):
        return None
    counts = most_common(column)
    if not counts:
        return f"{name} is NULL in all of them"
    shown = ", ".join(f"{value_text(value)} ({count:,})" for value, count in counts[:SHOWN])
    text = f"{name} is {shown}" if len(counts) <= SHOWN else f"{name} is mostly {shown}"
    hint = None if wanted is None else closest(wanted, [str(value) for value, _ in counts])
    return f"{text}; {hint}" if hint else text


def _pair(operator: s.ComparisonOperator, left: s.Expression, right: s.Expression, found: pa.Table) -> str | None:
    """The two values that come nearest to satisfying a comparison."""
    both = found.filter(pc.and_(pc.is_valid(found["0"]), pc.is_valid(found["1"])))
    for side, column in ((left, "0"), (right, "1")):
        if found.num_rows and found[column].null_count == found.num_rows:
            return f"{expression_text(side)} is NULL in all of them"
    if not both.num_rows or operator == "<>" or not all(_number(both[c].type) for c in ("0", "1")):
        return None
    gap = pc.subtract(both["0"].cast(pa.float64()), both["1"].cast(pa.float64()))
    if operator in (">", ">="):
        gap = pc.negate(gap)
    elif operator == "=":
        gap = pc.abs(gap)
    place = int(pc.index(gap, pc.min(gap)).as_py())
    values = (f"{expression_text(e)} = {value_text(both[c][place].as_py())}" for e, c in ((left, "0"), (right, "1")))
    return f"the nearest are {' and '.join(values)}"


def in_common(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    """Whether two columns share a value; True where this cannot be said."""
    if not (_plain(left.type) and _plain(right.type)):
        return True
    return not {*left.unique().to_pylist()}.isdisjoint({*right.unique().to_pylist()} - {None})


def most_common(column: pa.ChunkedArray) -> list[tuple[Any, int]]:
    counts = [(item["values"], item["counts"]) for item in pc.value_counts(column).to_pylist()]
    return sorted(((v, n) for v, n in counts if v is not None), key=lambda pair: (-pair[1], str(pair[0])))


def examples(column: pa.ChunkedArray) -> str:
    shown = [value_text(value) for value, _ in most_common(column)[:SHOWN]]
    return ", ".join(shown) or "NULL"


def value_text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return f"{value:,}"
        case float():
            whole = abs(value) < 1e15 and value == int(value)
            return f"{value:,.0f}" if whole else f"{value:,.2f}" if abs(value) >= 1 else f"{value:.3g}"
        case str():
            return quote_string(value)
        case dt.timedelta():
            return str(Interval.from_timedelta(value))
    return str(value)


def _number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _ordered(type_: pa.DataType) -> bool:
    return _number(type_) or bool(pa.types.is_temporal(type_))


def _plain(type_: pa.DataType) -> bool:
    return not pa.types.is_nested(type_)
