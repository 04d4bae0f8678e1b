"""Where matches go."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TextIO, runtime_checkable

import pyarrow as pa
import pyarrow.parquet

from cepheid.local.writable import refuse_unwritable, refuse_unwritable_folder

ROWS = 1_000_000
SECONDS = 10.0
"""A Parquet file is written when there are so many matches, or the first has waited for so long."""


@runtime_checkable
class Sink(Protocol):
    """Takes the matches of each push, in the thread of the engine: while it works, events wait."""

    def write(self, matches: pa.Table) -> None: ...

    def close(self) -> None:
        """Nothing more comes: what was kept back is written."""


@runtime_checkable
class Keeping(Sink, Protocol):
    """Keeps matches back for a while."""

    def write_due(self) -> None:
        """Write what has waited for long enough. Asked about each second, whether there are matches or not."""


@runtime_checkable
class Prepared(Sink, Protocol):
    """Says at the start what would fail later, and takes the place of earlier matches only when there is reason to."""

    def check(self) -> None:
        """Before the run: fails if matches cannot go there. What is there stays as it is."""

    def begin(self) -> None:
        """The first events have come, or the stream has ended well without any."""


class Call:
    """A function that is called with the matches of each push that has any."""

    def __init__(self, function: Callable[[pa.Table], object]) -> None:
        self._function = function

    def write(self, matches: pa.Table) -> None:
        self._function(matches)

    def close(self) -> None:
        pass


class Collect:
    """Keeps all matches."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []

    @property
    def matches(self) -> pa.Table | None:
        return pa.concat_tables(self._tables) if self._tables else None

    def write(self, matches: pa.Table) -> None:
        self._tables.append(matches)

    def close(self) -> None:
        pass


class JsonLinesSink:
    """A line of JSON for each match, in a file or on standard output. Lines are there when the push is over.

    A file of earlier matches is replaced when the first events have come: a source that is not there costs nobody them.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None

    def check(self) -> None:
        if self._path is not None:
            refuse_unwritable(self._path)

    def begin(self) -> None:
        if self._file is None:
            self._file = sys.stdout if self._path is None else self._path.open("w", encoding="utf-8")

    def write(self, matches: pa.Table) -> None:
        self.begin()
        assert self._file is not None
        self._file.writelines(f"{line}\n" for line in json_lines(matches))
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.flush()
            if self._path is not None:
                self._file.close()


class ParquetFolder:
    """Parquet files in a folder, one after the other. A file is there whole or not at all; earlier ones stay.

    A file holds ``rows`` matches or more, or those of ``seconds``, to about a second.
    """

    def __init__(self, folder: Path | str, *, rows: int = ROWS, seconds: float = SECONDS) -> None:
        self._folder = Path(folder)
        if self._folder.is_file():
            raise ValueError(f"{folder} is a file: matches of a stream are written to a folder, or to a .jsonl file")
        self._rows, self._seconds = rows, seconds
        self._kept: list[pa.Table] = []
        self._since = 0.0
        self._number: int | None = None

    def check(self) -> None:
        refuse_unwritable_folder(self._folder)

    def begin(self) -> None:
        """Files are added to those that are there."""

    def write(self, matches: pa.Table) -> None:
        if not self._kept:
            self._since = perf_counter()
        self._kept.append(matches)
        if sum(table.num_rows for table in self._kept) >= self._rows:
            self._flush()
        self.write_due()

    def write_due(self) -> None:
        if self._kept and perf_counter() - self._since >= self._seconds:
            self._flush()

    def close(self) -> None:
        if self._kept:
            self._flush()

    def _flush(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._number is None:
            there = (path.stem.rpartition("-")[2] for path in self._folder.glob("matches-*.parquet"))
            self._number = max((int(number) for number in there if number.isdecimal()), default=-1)
        self._number += 1
        path = self._folder / f"matches-{self._number:06d}.parquet"
        hidden = path.with_name(f".{path.name}")  # readers of folders leave out names with a dot
        pa.parquet.write_table(pa.concat_tables(self._kept), hidden)
        hidden.replace(path)
        self._kept = []


def sink_of(sink: Any) -> Sink:
    """A sink as it is, or what a user names it by: a function, a list, a path or an address; None keeps all matches."""
    from cepheid.local.stream.addresses import sink_at

    match sink:
        case None:
            return Collect()
        case Sink():
            return sink
        case list():
            return Call(lambda matches: sink.extend(matches.to_pylist()))
        case str() | Path():
            return sink_at(sink)
    if callable(sink):
        return Call(sink)
    raise TypeError(
        f"a sink is a function, a list, a path, '-' or kafka://SERVERS/TOPIC, or has write and close; "
        f"got {type(sink).__name__}"
    )


def json_lines(matches: pa.Table) -> Iterator[str]:
    """Each match as JSON, without what it does not have.

    >>> list(json_lines(pa.table({"pattern": ["p"], "end": [dt.datetime(2024, 5, 17)], "a": [{"x": 1}], "b": [None]})))
    ['{"pattern": "p", "end": "2024-05-17T00:00:00", "a": {"x": 1}}']
    """
    for row in matches.to_pylist():
        yield as_json({name: value for name, value in row.items() if value is not None})


def as_json(value: Any) -> str:
    """As text, with what JSON has no word for as it is written by people."""
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    match value:
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return value.total_seconds()
        case Decimal():
            return float(value)
        case bytes():
            return value.hex()
    return str(value)
