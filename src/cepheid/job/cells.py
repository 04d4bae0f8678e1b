"""Matches in tables: on a terminal and on a page."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any


def cell(value: Any) -> str:
    """A value in few words: an event is its attributes, a set its first event and how many more there are.

    >>> cell({"ts": 3, "type": "A", "x": None}), cell([{"x": 1}, {"x": 2}]), cell(0.1 + 0.2)
    ('3 A', '1 … 1 more', '0.3')
    """
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case dt.datetime():
            text = value.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
            return text.removesuffix(".000")
        case Mapping():
            return " ".join(cell(v) for v in value.values() if v is not None)
        case [Mapping() as first, *rest]:
            return cell(first) + (f" … {len(rest)} more" if rest else "")
        case list() | tuple():
            return json.dumps(value, default=str)
        case float():
            return f"{value:,.10g}" if abs(value) >= 1e4 else f"{value:.10g}"
    return str(value)


def by_pattern(matches: Sequence[Mapping[str, Any]]) -> dict[str, tuple[list[str], list[Mapping[str, Any]]]]:
    """For each pattern the columns that its matches have, and the matches. Those of other patterns are NULL there."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for match in matches:
        found.setdefault(str(match.get("pattern", "")), []).append(match)
    return {
        name: (
            list(dict.fromkeys(c for row in rows for c, value in row.items() if c != "pattern" and value is not None)),
            rows,
        )
        for name, rows in found.items()
    }


def column(values: Sequence[Any]) -> list[str]:
    """Cells below each other: numbers with equally many decimals, but not more than four.

    >>> column([2221.0, 3888.13, None])
    ['2221.00', '3888.13', '']
    """
    numbers = [value for value in values if isinstance(value, float)]
    if not numbers or any(not is_number(value) for value in values if value is not None):
        return [cell(value) for value in values]
    decimals = max(len(f"{value:.4f}".rstrip("0").partition(".")[2]) for value in numbers)
    if any(value and abs(value) < 1e-3 for value in numbers):
        return [cell(value) for value in values]
    return ["" if value is None else f"{value:.{decimals}f}" for value in values]


def day_of(matches: Sequence[Mapping[str, Any]]) -> dt.date | None:
    """The day of all moments in some matches, if it is one."""
    days = {value.date() for match in matches for value in match.values() if isinstance(value, dt.datetime)}
    return days.pop() if len(days) == 1 else None


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
