"""Conditions and expressions of the reference matcher: three-valued logic on one combination of events at a time.

NULL is None. A part of tests/oracle.py, which says how it is used.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cepheid.language import syntax as s
from cepheid.language.functions import find_function
from cepheid.language.values import Interval, Timestamp

EventRow = dict[str, Any]
Binding = dict[str, list[int]]  # for each variable, the row numbers of its events


class Stream:
    """The events, and what the caller said about them. Times with a zone are taken to UTC."""

    def __init__(
        self, events: list[EventRow], time: str = "ts", type: str | None = "type", tie_breaker: str | None = None
    ) -> None:
        self.events = [{name: _in_utc(value) for name, value in event.items()} for event in events]
        self.time, self.type, self.tie_breaker = time, type, tie_breaker
        for row, event in enumerate(self.events):
            for name in (time, tie_breaker):
                if name is not None and event[name] is None:
                    raise ValueError(f"event {row} has no {name}")

    def order(self, row: int) -> tuple[Any, ...]:
        """Event x is before event y when order(x) < order(y); with equal orders, neither is before the other."""
        event = self.events[row]
        return (event[self.time],) if self.tie_breaker is None else (event[self.time], event[self.tie_breaker])

    def listed(self, row: int) -> tuple[Any, ...]:
        """Where an event stands in a list: by time; what was not ordered, by its attributes, NULL last."""
        return self.order(row), self.content(row)

    def content(self, row: int) -> tuple[Any, ...]:
        def key(value: Any) -> tuple[Any, ...]:
            if value is None or (isinstance(value, float) and math.isnan(value)):
                return (1,)
            return (0, tuple(map(key, value))) if isinstance(value, list) else (0, value)

        return tuple(key(value) for value in self.events[row].values())

    def attribute(self, row: int, name: str) -> Any:
        event = self.events[row]
        value = event[self.time] if name == "ts" and "ts" not in event else event[name]
        return None if isinstance(value, float) and math.isnan(value) else value

    def has_type(self, row: int, type_: str) -> bool:
        return self.type is None or self.events[row][self.type] == type_


def _in_utc(value: Any) -> Any:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone.utc).replace(tzinfo=None)
    return value


# --- conditions -----------------------------------------------------------------------------------------


def mentioned(node: Any) -> set[str]:
    """The variables that an expression mentions."""
    if isinstance(node, tuple):
        return set().union(*map(mentioned, node))
    if not isinstance(node, s.Node):
        return set()
    own = {node.variable} if isinstance(node, (s.EventRef, s.Attribute, s.Neighbour, s.Aggregate)) else set()
    return own.union(*(mentioned(getattr(node, f.name)) for f in fields(node)))


def collect(node: Any, kind: type, into_aggregates: bool = False) -> set[str]:
    """The variables of the nodes of one kind; those inside an aggregate only if asked for."""
    if isinstance(node, tuple):
        return set().union(*(collect(n, kind, into_aggregates) for n in node))
    if not isinstance(node, s.Node):
        return set()
    own = {node.variable} if isinstance(node, kind) else set()  # type: ignore[attr-defined]
    if isinstance(node, s.Aggregate) and not into_aggregates:
        return own
    return own.union(*(collect(getattr(node, f.name), kind, into_aggregates) for f in fields(node)))


def aggregated(condition: s.Expression) -> set[str]:
    return collect(condition, s.Aggregate)


def holds(condition: s.Expression, binding: Binding, kleene: set[str], stream: Stream) -> bool:
    """TRUE for every event of each KL variable that is mentioned as such, and for every pair of neighbours."""
    each = sorted(collect(condition, s.Attribute) & kleene)
    pairs = sorted(collect(condition, s.Neighbour))
    singles = {name: rows[0] for name, rows in binding.items() if name not in kleene}
    for rows in itertools.product(*(binding[name] for name in each)):
        for neighbours in itertools.product(*(_neighbours(binding[name], stream) for name in pairs)):
            current = {**singles, **dict(zip(each, rows, strict=True))}
            scope = Scope(current, dict(zip(pairs, neighbours, strict=True)), binding, stream)
            if scope.value(condition) is not True:
                return False
    return True


def _neighbours(rows: list[int], stream: Stream) -> list[tuple[int, int]]:
    """Pairs of events, one before the other and none of the set between them."""
    before = {(x, y) for x in rows for y in rows if stream.order(x) < stream.order(y)}
    return [(x, y) for x, y in before if not any((x, z) in before and (z, y) in before for z in rows)]


@dataclass(frozen=True)
class Scope:
    """What the variables stand for while an expression is evaluated. NULL is None."""

    events: dict[str, int]
    neighbours: dict[str, tuple[int, int]]
    sets: Binding
    stream: Stream

    def value(self, e: s.Expression) -> Any:
        match e:
            case s.Literal(Timestamp(nanoseconds)):
                return dt.datetime(1970, 1, 1) + interval(nanoseconds)
            case s.Literal(Interval(nanoseconds)):
                return interval(nanoseconds)
            case s.Literal(constant):
                return constant
            case s.Attribute(variable, name):
                return self.stream.attribute(self.events[variable], name) if variable in self.events else None
            case s.Neighbour(variable, offset, name):
                earlier, later = self.neighbours[variable]
                return self.stream.attribute(later if offset == 0 else earlier, name)
            case s.Aggregate(function, variable, argument):
                return self.aggregate(function, self.sets.get(variable, []), variable, argument)
            case s.Negative(operand):
                return _checked(lambda x: -x, self.value(operand))
            case s.Arithmetic(operator, left, right):
                return _checked(_ARITHMETIC[operator], self.value(left), self.value(right))
            case s.Comparison(operator, left, right):
                return _compare(operator, self.value(left), self.value(right))
            case s.Not(operand):
                return _not(self.value(operand))
            case s.And(operands):
                return _and([self.value(o) for o in operands])
            case s.Or(operands):
                return _or([self.value(o) for o in operands])
            case s.In(operand, items):
                return _or([_compare("=", self.value(operand), self.value(item)) for item in items])
            case s.Between(operand, low, high):
                x = self.value(operand)
                return _and([_compare(">=", x, self.value(low)), _compare("<=", x, self.value(high))])
            case s.Like(operand, pattern):
                return _like(self.value(operand), self.value(pattern))
            case s.IsNull(operand):
                return self.value(operand) is None
            case s.Case(cases, otherwise):
                for condition, result in cases:
                    if self.value(condition) is True:
                        return self.value(result)
                return None if otherwise is None else self.value(otherwise)
            case s.Call(function, arguments):
                return _call(function, [self.value(a) for a in arguments])
        raise AssertionError(f"{e} has no value")

    def aggregate(self, function: str, rows: list[int], variable: str, argument: s.Expression | None) -> Any:
        if argument is None:
            return len(rows)
        order = self.stream.order
        if function == "FIRST":
            rows = [row for row in rows if not any(order(other) < order(row) for other in rows)]
        elif function == "LAST":
            rows = [row for row in rows if not any(order(other) > order(row) for other in rows)]
        scopes = [Scope({variable: row}, {}, {}, self.stream) for row in rows]
        values = [v for v in (scope.value(argument) for scope in scopes) if v is not None]
        if function == "COUNT":
            return len(values)
        if not values or (function == "STDDEV" and len(values) < 2):
            return None
        match function:
            case "SUM":
                return _sum(values)
            case "AVG":
                return _checked(lambda total: total / len(values), _sum([float(v) for v in values]))
            case "STDDEV":
                return (
                    _checked(statistics.stdev, [float(v) for v in values]) if all(map(math.isfinite, values)) else None
                )
            case "MIN" | "FIRST":
                return min(values)
            case "MAX" | "LAST":
                return max(values)
        raise AssertionError(function)


def _sum(values: list[Any]) -> Any:
    if any(isinstance(v, float) for v in values):
        try:
            return math.fsum(values)
        except OverflowError:
            return _checked(sum, [float(v) for v in values])  # infinite
        except ValueError:
            return None  # infinity minus infinity
    total = values[0]
    for value in values[1:]:
        total = total + value
    return _in_64_bits(total)


def interval(nanoseconds: int) -> dt.timedelta:
    assert nanoseconds % 1000 == 0, "the reference matcher counts microseconds"
    return dt.timedelta(microseconds=nanoseconds // 1000)


def _in_64_bits(value: Any) -> Any:
    """An integer beyond 64 bits is NULL, and so is what is not a number."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**63) <= value < 2**63 else None
    return value


def _checked(function: Callable[..., Any], *values: Any) -> Any:
    if any(value is None for value in values):
        return None
    try:
        return _in_64_bits(function(*values))
    except (ZeroDivisionError, OverflowError, ValueError):
        return None


def _divide(x: Any, y: Any) -> float:
    return x / y if isinstance(x, dt.timedelta) else float(x) / float(y)


def _remainder(x: Any, y: Any) -> Any:
    """With the sign of the dividend, as in SQL."""
    if isinstance(x, int) and isinstance(y, int):
        return abs(x) % abs(y) if x >= 0 else -(abs(x) % abs(y))
    return math.fmod(x, y)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": _divide,
    "%": _remainder,
}


def _compare(operator: str, x: Any, y: Any) -> bool | None:
    if x is None or y is None:
        return None
    results = {"=": x == y, "<>": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
    return results[operator]


def _not(x: bool | None) -> bool | None:
    return None if x is None else not x


def _and(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _or(values: list[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


def _like(text: str | None, pattern: str | None) -> bool | None:
    if text is None or pattern is None:
        return None
    regex = ""
    characters = iter(pattern)
    for c in characters:
        if c == "\\":
            regex += re.escape(next(characters, "\\"))
        else:
            regex += {"%": ".*", "_": "."}.get(c, re.escape(c))
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _call(name: str, arguments: list[Any]) -> Any:
    match name:
        case "COALESCE":
            return next((a for a in arguments if a is not None), None)
        case "LEAST" | "GREATEST":
            values = [a for a in arguments if a is not None]
            return (min if name == "LEAST" else max)(values) if values else None
        case "NULLIF":
            return None if _compare("=", *arguments) else arguments[0]
    function = _FUNCTIONS.get(name) or _registered(name)
    return _checked(function, *arguments)


def _registered(name: str) -> Callable[..., Any]:
    function = find_function(name)
    assert function is not None
    assert function.body is not None
    body = function.body

    def call(*arguments: Any) -> Any:
        (result,) = body(*(np.array([a]) for a in arguments))
        return result.item() if hasattr(result, "item") else result

    return call


def _round(x: Any) -> Any:
    return x if isinstance(x, int) else float(math.copysign(math.floor(abs(x) + 0.5), x))


def _whole(function: Callable[[float], int]) -> Callable[[Any], Any]:
    return lambda x: x if isinstance(x, int) else x if math.isinf(x) else float(function(x))


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _substr(text: str, start: int, length: int | None = None) -> str | None:
    if start < 1 or (length is not None and length < 0):
        return None
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


def _corr(x: list[Any], y: list[Any]) -> float | None:
    if len(x) != len(y) or len(x) < 2 or any(v is None or math.isnan(v) for v in [*x, *y]):
        return None
    try:
        return statistics.correlation(x, y)
    except statistics.StatisticsError:  # one of them is constant
        return None


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ABS": abs,
    "SIGN": lambda x: (x > 0) - (x < 0),
    "FLOOR": _whole(math.floor),
    "CEIL": _whole(math.ceil),
    "ROUND": lambda x: x if isinstance(x, float) and math.isinf(x) else _round(x),
    "SQRT": math.sqrt,
    "EXP": _exp,
    "LN": math.log,
    "POWER": lambda x, y: np.power(float(x), float(y)).item(),
    "LOWER": str.lower,
    "UPPER": str.upper,
    "TRIM": lambda text: text.strip(" "),
    "LENGTH": len,
    "SUBSTR": _substr,
    "CONCAT": lambda *texts: "".join(texts),
    "CORR": _corr,
}
