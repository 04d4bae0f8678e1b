"""Checks of what a workload is asked for."""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Sequence


def whole(name: str, value: int, least: int = 1, most: int | None = None) -> int:
    """``value`` as an int, if it is a whole number within its bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is a whole number, got {value!r}") from None
    if number < least or (most is not None and number > most):
        bounds = f"{least} or more" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} is {bounds}, got {number}")
    return number


def positive(name: str, value: float) -> float:
    """``value``, if it is a number above zero."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} is a number above 0, got {value!r}")
    return float(value)


def within(name: str, value: float, least: float, most: float = math.inf) -> float:
    """``value``, if it is a number within its bounds."""
    if not (math.isfinite(value) and least <= value <= most):
        bounds = f"{least:g} or more" if most == math.inf else f"from {least:g} to {most:g}"
        raise ValueError(f"{name} is a number, {bounds}, got {value!r}")
    return float(value)


def distinct_names(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """``values`` as a tuple, if there are any and none occurs twice."""
    if isinstance(values, str):
        raise ValueError(f"{name} is a list of names, got the string {values!r}. Hint: write [{values!r}]")
    names = tuple(values)
    if not names:
        raise ValueError(f"{name} is empty: expected at least one name")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"{name} has each name once, but has {', '.join(map(repr, twice))} several times")
    return names


def local_start(start: datetime.datetime) -> datetime.datetime:
    """``start``, if it has no time zone: the columns of times have none either."""
    if start.tzinfo is not None:
        raise ValueError(f"start has no time zone, got {start.isoformat()}. Hint: start.replace(tzinfo=None)")
    return start
