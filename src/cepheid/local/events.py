"""Events in whatever form a user has them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

FORMATS = {
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}


def as_table(events: Any) -> pa.Table:
    """Arrow, pandas, polars, a list of dictionaries, or a path to a file."""
    match events:
        case pa.Table():
            return events
        case pa.RecordBatch():
            return pa.Table.from_batches([events])
        case pa.RecordBatchReader():
            return events.read_all()
        case str() | Path():
            return open_events(Path(events)).to_table()
        case list() | tuple():
            return pa.Table.from_pylist(list(events))
        case dict():
            raise TypeError(
                "expected events, such as a list of dictionaries; got one dictionary: if it is an event, put it into a "
                "list, [event]; if it holds columns, make a table of it, pyarrow.table(columns)"
            )
    if hasattr(events, "__arrow_c_stream__"):  # polars, DuckDB and others
        return pa.table(events)
    if type(events).__module__.split(".")[0] == "pandas":
        return pa.Table.from_pandas(events, preserve_index=False)
    if isinstance(events, Iterable):
        return pa.Table.from_pylist(list(events))
    raise TypeError(
        "events are an Arrow table, a pandas or polars frame, a list of dictionaries or the path of a file; "
        f"got {type(events).__name__}"
    )


def open_events(path: Path) -> pa.dataset.Dataset:
    """A file of events; the ending of its name says what it is."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"expected a name that ends in {', '.join(FORMATS)}; found {path.suffix or 'no ending'!r}")
    return pa.dataset.dataset(path, format=FORMATS[path.suffix.lower()])
