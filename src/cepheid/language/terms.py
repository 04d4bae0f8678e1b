"""Conditions in Python: ``a.price < b.price`` builds the same tree as the text does."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, Union

from cepheid.language import syntax as s
from cepheid.language.functions import AGGREGATES, canonical_name
from cepheid.language.text import expression_text
from cepheid.language.values import Interval, Timestamp
from cepheid.language.words import is_name

Value: TypeAlias = Union["Term", "EventVariable", bool, int, float, str, dt.datetime, dt.timedelta, None]


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """An expression with Python's operators: ``+ - * / %``, comparisons, and ``& | ~`` for AND, OR, NOT.

    >>> from cepheid import ev
    >>> a, b = ev("Stock", "a"), ev("Stock", "b")
    >>> (a.price * 2 < b.price) & ~b.halted
    a.price * 2 < b.price AND NOT b.halted
    """

    expression: s.Expression

    def __repr__(self) -> str:
        return expression_text(self.expression)

    def __bool__(self) -> bool:
        raise TypeError("a condition has no truth value of its own; use & for AND, | for OR and ~ for NOT")

    def __neg__(self) -> Term:
        return Term(s.negative(self.expression))

    def __add__(self, other: Value) -> Term:
        return _arithmetic("+", self, other)

    def __radd__(self, other: Value) -> Term:
        return _arithmetic("+", other, self)

    def __sub__(self, other: Value) -> Term:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: Value) -> Term:
        return _arithmetic("-", other, self)

    def __mul__(self, other: Value) -> Term:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: Value) -> Term:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: Value) -> Term:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: Value) -> Term:
        return _arithmetic("/", other, self)

    def __mod__(self, other: Value) -> Term:
        return _arithmetic("%", self, other)

    def __rmod__(self, other: Value) -> Term:
        return _arithmetic("%", other, self)

    def __eq__(self, other: Value) -> Term:  # type: ignore[override]
        return _comparison("=", self, other)

    def __ne__(self, other: Value) -> Term:  # type: ignore[override]
        return _comparison("<>", self, other)

    def __lt__(self, other: Value) -> Term:
        return _comparison("<", self, other)

    def __le__(self, other: Value) -> Term:
        return _comparison("<=", self, other)

    def __gt__(self, other: Value) -> Term:
        return _comparison(">", self, other)

    def __ge__(self, other: Value) -> Term:
        return _comparison(">=", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Value) -> Term:
        return Term(s.And((self.expression, to_expression(other))))

    def __or__(self, other: Value) -> Term:
        return Term(s.Or((self.expression, to_expression(other))))

    def __invert__(self) -> Term:
        return Term(s.Not(self.expression))

    def isin(self, *items: Value) -> Term:
        return Term(s.In(self.expression, tuple(map(to_expression, items))))

    def between(self, low: Value, high: Value) -> Term:
        return Term(s.Between(self.expression, to_expression(low), to_expression(high)))

    def like(self, pattern: Value) -> Term:
        return Term(s.Like(self.expression, to_expression(pattern)))

    def is_null(self) -> Term:
        return Term(s.IsNull(self.expression))


def _arithmetic(operator: s.ArithmeticOperator, left: Value, right: Value) -> Term:
    return Term(s.Arithmetic(operator, to_expression(left), to_expression(right)))


def _comparison(operator: s.ComparisonOperator, left: Value, right: Value) -> Term:
    return Term(s.Comparison(operator, to_expression(left), to_expression(right)))


def to_expression(value: object) -> s.Expression:
    """The expression that a Python value stands for."""
    match value:
        case Term():
            return value.expression
        case EventVariable():
            return s.EventRef(value._event.variable)
        case None | bool() | str() | Timestamp() | Interval():
            return s.Literal(value)
        case numbers.Integral():  # NumPy's integers too
            return s.Literal(int(value))
        case numbers.Real():
            if not math.isfinite(value):
                raise ValueError(f"a condition cannot hold the number {value}")
            return s.Literal(float(value))
        case dt.datetime():
            return s.Literal(Timestamp.from_datetime(value))
        case dt.timedelta():
            return s.Literal(Interval.from_timedelta(value))
    raise TypeError(f"expected a condition, a number, a string, a datetime or a timedelta, got {type(value).__name__}")


def lit(value: Value) -> Term:
    """A constant as a term, for where Python would not see that an expression begins.

    >>> lit(1) / 2
    1 / 2
    """
    return Term(to_expression(value))


def case(*cases: tuple[Value, Value], otherwise: Value = None) -> Term:
    """``CASE WHEN … THEN … ELSE … END``.

    >>> from cepheid import ev
    >>> a = ev("Stock", "a")
    >>> case((a.price > 10, "high"), otherwise="low")
    CASE WHEN a.price > 10 THEN 'high' ELSE 'low' END
    """
    pairs = tuple((to_expression(condition), to_expression(value)) for condition, value in cases)
    return Term(s.Case(pairs, None if otherwise is None else to_expression(otherwise)))


class Attributes:
    """What has attributes: ``x.price``, or ``x["unit price"]`` for a name that Python cannot write."""

    __slots__ = ("_attribute",)

    def __init__(self, attribute: Callable[[str], s.Expression]) -> None:
        self._attribute = attribute

    def __getattr__(self, name: str) -> Term:
        if name.startswith("_"):  # Python's own look-ups; such a column is x["_name"]
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Term:
        if not isinstance(name, str) or not is_name(name):
            raise ValueError(f"expected the name of an attribute, got {name!r}")
        return Term(self._attribute(name))


class EventVariable(Attributes):
    """A variable of a pattern, made by :func:`cepheid.ev`. Its attributes are terms."""

    __slots__ = ("_event",)

    def __init__(self, event: s.Event) -> None:
        super().__init__(lambda name: s.Attribute(event.variable, name))
        self._event = event

    def __repr__(self) -> str:
        return f"ev({self._event.type!r}, {self._event.variable!r})"


def current(variable: EventVariable) -> Attributes:
    """Each event of a KL variable but the first, next to its :func:`previous` one: ``b[i]``.

    >>> from cepheid import ev
    >>> b = ev("Stock", "b")
    >>> current(b).price > previous(b).price
    b[i].price > b[i-1].price
    """
    return Attributes(lambda name: s.Neighbour(variable._event.variable, 0, name))


def previous(variable: EventVariable) -> Attributes:
    """The event before the :func:`current` one of a KL variable: ``b[i-1]``.

    >>> import datetime
    >>> from cepheid import ev
    >>> b = ev("Stock", "b")
    >>> current(b).ts - previous(b).ts > datetime.timedelta(minutes=5)
    b[i].ts - b[i-1].ts > 5 minutes
    """
    return Attributes(lambda name: s.Neighbour(variable._event.variable, -1, name))


class _Functions:
    """The functions of the language and the registered ones: ``fn.abs(a.x)``, ``fn.count(b)``, ``fn.first(b).x``.

    >>> from cepheid import ev
    >>> a, b = ev("Stock", "a"), ev("Stock", "b")
    >>> fn.avg(b.price) > fn.abs(a.price)
    AVG(b.price) > ABS(a.price)
    >>> fn.first(b).price
    FIRST(b).price
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(_call, canonical_name(name))


fn = _Functions()


def _call(function: str, *arguments: Any) -> Term | Attributes:
    if function not in AGGREGATES:
        return Term(s.Call(function, tuple(map(to_expression, arguments))))
    if len(arguments) != 1:
        raise TypeError(f"{function} takes one argument, got {len(arguments)}")
    (argument,) = arguments
    if function in ("FIRST", "LAST"):
        if not isinstance(argument, EventVariable):
            raise TypeError(f"{function} takes a variable, as in fn.{function.lower()}(b).price")
        name = argument._event.variable
        return Attributes(lambda attribute: s.Aggregate(function, name, s.Attribute(name, attribute)))
    aggregate = s.aggregate(function, to_expression(argument))
    if aggregate is None:
        raise TypeError(f"{function} needs an attribute of a KL variable, as in fn.{function.lower()}(b.price)")
    return Term(aggregate)
