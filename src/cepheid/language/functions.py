"""The functions that a condition may call: those of the language, and those that a caller registers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from cepheid.language.words import KEYWORDS, is_plain_identifier


class DataType(str, Enum):
    """What an expression can be. NUMBER is an integer or a float, UNKNOWN an attribute without a schema."""

    INTEGER = "an integer"
    FLOAT = "a floating-point number"
    NUMBER = "a number"
    STRING = "a string"
    BOOLEAN = "a truth value"
    TIMESTAMP = "a timestamp"
    INTERVAL = "an interval"
    LIST = "a list of numbers"
    OTHER = "a value that conditions cannot use"
    EVENT = "an event"
    NULL = "NULL"
    UNKNOWN = "unknown"


NUMBERS = frozenset({DataType.INTEGER, DataType.FLOAT, DataType.NUMBER})
_STRING = frozenset({DataType.STRING})
_LIST = frozenset({DataType.LIST})
_INTEGER = frozenset({DataType.INTEGER})
ORDERED = NUMBERS | {DataType.STRING, DataType.BOOLEAN, DataType.TIMESTAMP, DataType.INTERVAL}

Parameter: TypeAlias = "frozenset[DataType]"


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function: what it takes and what it gives. ``result=None``: the type that its arguments share."""

    name: str
    parameters: tuple[Parameter, ...]
    result: DataType | None
    optional: int = 0
    variadic: bool = False
    body: Callable[..., Any] | None = None

    @property
    def minimum(self) -> int:
        return len(self.parameters) - self.optional

    @property
    def maximum(self) -> int | None:
        return None if self.variadic else len(self.parameters)

    def parameter(self, position: int) -> Parameter:
        return self.parameters[min(position, len(self.parameters) - 1)]


SCALARS: dict[str, Function] = {
    f.name: f
    for f in (
        Function("ABS", (NUMBERS | {DataType.INTERVAL},), None),
        Function("SIGN", (NUMBERS,), DataType.INTEGER),
        Function("FLOOR", (NUMBERS,), None),
        Function("CEIL", (NUMBERS,), None),
        Function("ROUND", (NUMBERS,), None),
        Function("SQRT", (NUMBERS,), DataType.FLOAT),
        Function("EXP", (NUMBERS,), DataType.FLOAT),
        Function("LN", (NUMBERS,), DataType.FLOAT),
        Function("POWER", (NUMBERS, NUMBERS), DataType.FLOAT),
        Function("LEAST", (ORDERED, ORDERED), None, variadic=True),
        Function("GREATEST", (ORDERED, ORDERED), None, variadic=True),
        Function("COALESCE", (ORDERED, ORDERED), None, variadic=True),
        Function("NULLIF", (ORDERED, ORDERED), None),
        Function("LOWER", (_STRING,), DataType.STRING),
        Function("UPPER", (_STRING,), DataType.STRING),
        Function("TRIM", (_STRING,), DataType.STRING),
        Function("LENGTH", (_STRING,), DataType.INTEGER),
        Function("SUBSTR", (_STRING, _INTEGER, _INTEGER), DataType.STRING, optional=1),
        Function("CONCAT", (_STRING, _STRING), DataType.STRING, variadic=True),
        Function("CORR", (_LIST, _LIST), DataType.FLOAT),
    )
}
AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "FIRST", "LAST"})

_registered: dict[str, Function] = {}
_RESULTS = {
    "integer": DataType.INTEGER,
    "double": DataType.FLOAT,
    "string": DataType.STRING,
    "boolean": DataType.BOOLEAN,
}


def register_function(name: str, function: Callable[..., Any], *, returns: str = "double") -> None:
    """Let conditions call ``name(…)``.

    ``function`` gets one NumPy array per argument, all of one length, and returns an array of that length. It is not
    asked about rows in which an argument is NULL: the result is NULL there. Registering a name again replaces the
    function for sessions that begin later.
    ``returns`` is one of ``"integer"``, ``"double"``, ``"string"``, ``"boolean"``.

    >>> import cepheid, numpy
    >>> cepheid.register_function("distance", lambda x, y, u, v: numpy.hypot(x - u, y - v))
    >>> pattern = cepheid.parse(
    ...     "PATTERN AND(Player a, Player b) WHERE distance(a.x, a.y, b.x, b.y) < 2 WITHIN 1 second"
    ... )
    """
    if not is_plain_identifier(name) or name.upper() in KEYWORDS:
        raise ValueError(f"a function's name is a plain identifier and no keyword, got {name!r}")
    if name.upper() in SCALARS or name.upper() in AGGREGATES:
        raise ValueError(f"{name.upper()} is a function of the language; choose another name")
    if not callable(function):
        raise TypeError(f"expected a function for {name!r}, got {type(function).__name__}")
    if returns not in _RESULTS:
        raise ValueError(f"returns= is one of {', '.join(map(repr, _RESULTS))}, got {returns!r}")
    anything = frozenset(DataType) - {DataType.EVENT}
    count, optional, variadic = _arity(function)
    _registered[name] = Function(name, (anything,) * count, _RESULTS[returns], optional, variadic, function)


def _arity(function: Callable[..., Any]) -> tuple[int, int, bool]:
    """How many arguments a function takes, how many of them are optional, and whether it takes any number."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # NumPy's functions and others written in C do not say
        arguments = getattr(function, "nin", None)
        return (arguments, 0, False) if isinstance(arguments, int) else (1, 1, True)
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    optional = sum(p.default is not p.empty for p in places)
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return (len(places), optional, variadic) if places else (1, 1, variadic)


def find_function(name: str) -> Function | None:
    """A registered function by its name, or one of the language in any case."""
    return _registered.get(name) or SCALARS.get(name.upper())


def function_names() -> tuple[str, ...]:
    return (*SCALARS, *sorted(AGGREGATES), *_registered)


def canonical_name(name: str) -> str:
    """Upper case for the functions of the language, as written for others."""
    return name.upper() if name.upper() in SCALARS or name.upper() in AGGREGATES else name
