"""Made-up events as files, for trials."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from cepheid import workloads
from cepheid.job.description import Workload

_LONG_AGO = 1_000_000_000
_DESCRIBED = "_made_of.json"
"""What the events were made of. Spark does not read files whose names begin like this."""


def generate(source: Workload, folder: Path) -> None:
    """Write the events of a workload as Parquet files, in the order of time.

    A stream takes files in the order in which they were last changed, so each is dated a second after the one before.
    The folder is there once all of them are.
    """
    table = made(source.workload, source.events, source.arguments)
    beside = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(beside, ignore_errors=True)  # of a run that was interrupted
    beside.mkdir(parents=True)
    size = -(-table.num_rows // source.files)
    for number, start in enumerate(range(0, table.num_rows, size)):
        path = beside / f"events-{number:05d}.parquet"
        pa.parquet.write_table(table.slice(start, size), path)
        os.utime(path, (_LONG_AGO + number, _LONG_AGO + number))
    (beside / _DESCRIBED).write_text(_described(source), encoding="utf-8")
    beside.rename(folder)


def made_otherwise(source: Workload, folder: Path) -> str | None:
    """What the events in a folder were made of, if there are any and it is something else."""
    if not folder.exists():
        return None
    path = folder / _DESCRIBED
    found = path.read_text(encoding="utf-8") if path.exists() else "nothing that is known"
    return None if found == _described(source) else found


def _described(source: Workload) -> str:
    said = source.model_dump(include={"workload", "events", "arguments", "files"})
    return json.dumps(said, default=str, sort_keys=True)


def made(workload: str, events: int, arguments: Mapping[str, Any]) -> pa.Table:
    """The events of a workload. YAML has days too: such a moment is the first of its day."""
    moments = {
        name: dt.datetime.combine(value, dt.time()) if type(value) is dt.date else value
        for name, value in arguments.items()
    }
    return in_utc(getattr(workloads, workload)(events, **moments))


def in_utc(table: pa.Table) -> pa.Table:
    """With times that are moments: Spark's watermarks want them so."""
    fields = [
        field.with_type(pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
