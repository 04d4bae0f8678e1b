"""``cepheid match``: progress while it runs, the first matches when it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from cepheid.cli.files import check_output
from cepheid.language.pattern import Pattern
from cepheid.local.match import match
from cepheid.local.stream.sinks import as_json, json_lines


def run_match(
    patterns: list[Pattern],
    events: pa.Table,
    columns: dict[str, Any],
    options: dict[str, Any],
    output: Path | None,
    show: int,
    out: Console,
    err: Console,
) -> None:
    check_output("-o", output, WRITERS)
    started = time.perf_counter()
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("matching", total=events.num_rows)
        found = match(patterns, events, progress=lambda n: progress.advance(task, n), **options, **columns)
    seconds = time.perf_counter() - started
    if output is not None:
        WRITERS[output.suffix.lower()](found, output)
    _show(found, show, out)
    rate = events.num_rows / seconds if seconds else 0.0
    out.print(f"{found.num_rows:,} matches in {events.num_rows:,} events, {seconds:.2f} s ({rate:,.0f} events/s)")
    if not found.num_rows:
        out.print("To see why there is none, run [bold]cepheid why[/bold] with the same patterns and events.")
    if output is not None:
        out.print(f"written to {output}", markup=False)


def _write_lines(matches: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in json_lines(matches))


def _write_csv(matches: pa.Table, path: Path) -> None:
    """Events and sets of them are JSON; what else Arrow writes to no CSV is as in JSON, without quotes."""
    for place, field in enumerate(matches.schema):
        if pa.types.is_string_view(field.type):
            matches = matches.set_column(place, field.name, matches.column(place).cast(pa.string()))
        elif any(is_one(field.type) for is_one in _NOT_IN_CSV):
            texts = [None if v is None else as_json(v).strip('"') for v in matches.column(place).to_pylist()]
            matches = matches.set_column(place, field.name, pa.array(texts, pa.string()))
    pa.csv.write_csv(matches, path)


_NOT_IN_CSV = (
    pa.types.is_nested, pa.types.is_interval, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)  # fmt: skip


WRITERS: Mapping[str, Callable[[pa.Table, Path], object]] = {
    ".parquet": pa.parquet.write_table,
    ".jsonl": _write_lines,
    ".csv": _write_csv,
}


def _show(matches: pa.Table, most: int, out: Console) -> None:
    """The first matches of each pattern, with the columns that it has."""
    for name in matches["pattern"].unique().to_pylist():
        mine = matches.filter(pc.equal(matches["pattern"], name))
        columns = [c for c in mine.column_names if c != "pattern" and mine[c].null_count < mine.num_rows]
        table = Table(title=f"{name}: {mine.num_rows:,} matches")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in mine.select(columns).slice(0, most).to_pylist():
            table.add_row(*(_text(value) for value in row.values()))
        out.print(table, markup=False)


def _text(value: Any) -> str:
    """Short: an event is its attributes, a set the number of its events and the first of them."""
    match value:
        case None:
            return ""
        case dict():
            return " ".join(str(v) for v in value.values() if v is not None)
        case [dict() as first, *rest]:
            return f"{_text(first)}" + (f" … {len(rest)} more" if rest else "")
        case float():
            return f"{value:g}"
    return str(value)
