"""The worked examples of docs/semantics.md: streams, patterns and expected matches, read from its tables."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "semantics.md"
BLOCK = re.compile(
    r"```cepheid\n(?P<pattern>(?s:.*?))```|(?P<table>(?:^\|.*\|\n)+)|(?P<text>^[^|\n].*\n)", re.MULTILINE
)


@dataclass(frozen=True)
class Example:
    """One pattern on one stream, and the rows that the page shows for it."""

    line: int
    pattern: str
    options: dict[str, Any]
    labels: list[str]
    events: list[dict[str, Any]]
    columns: list[str]
    rows: list[list[str]]

    def expected_values(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, map(value, row), strict=True)) for row in self.rows]


def value(cell: str) -> Any:
    """What a cell stands for."""
    match cell:
        case "" | "NULL":
            return None
        case "NaN":
            return float("nan")
        case "true" | "false":
            return cell == "true"
    if re.fullmatch(r"-?\d+", cell):
        return int(cell)
    if re.fullmatch(r"-?\d+\.\d+", cell):
        return float(cell)
    if re.fullmatch(r"\d{4}-\d\d-\d\d .*", cell):
        return dt.datetime.fromisoformat(cell)
    return json.loads(cell) if cell.startswith("[") else cell


def examples() -> list[Example]:
    text = PAGE.read_text(encoding="utf-8")
    found = []
    labels: list[str] = []
    events: list[dict[str, Any]] = []
    pattern: str | None = None
    options: dict[str, Any] = {}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        if block["pattern"] is not None:
            assert pattern is None, f"{PAGE.name}:{line}: the pattern before this one has no result"
            pattern = block["pattern"]
        elif block["table"] is not None:
            header, rows = _table(block["table"])
            if header[0] == "event":
                labels = [row[0] for row in rows]
                events = [dict(zip(header[1:], map(value, row[1:]), strict=True)) for row in rows]
            else:
                assert pattern is not None, f"{PAGE.name}:{line}: a result without a pattern"
                rows = [] if rows[0][0] == "none" else rows
                found.append(Example(line, pattern, options, labels, events, header, rows))
                pattern, options = None, {}
        else:
            for name, quoted in re.findall(r"`(type|time|tie_breaker)=(None|\"\w+\")`", block["text"]):
                options[name] = None if quoted == "None" else quoted.strip('"')
    return found


def _table(text: str) -> tuple[list[str], list[list[str]]]:
    header, _, *rows = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in text.splitlines()]
    return header, rows
