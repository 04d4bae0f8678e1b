"""Late events, as files that a second stream can read."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import SparkSession

from cepheid.language.problems import CepheidError
from cepheid.spark.pack import from_bytes


class LateEventsError(CepheidError, ValueError):
    """Late events cannot be written where they are to go."""


def make_folder(spark: SparkSession, folder: str) -> None:
    """Make the folder before there are late events: a stream that reads it can start, and a wrong address is found."""
    try:
        spark.sparkContext  # noqa: B018
    except Exception:  # with Spark Connect, this machine may be another than that of the server and the workers
        spark.range(0, 1, 1, 1).mapInArrow(_Made(folder), "id long").collect()
    else:
        try_folder(folder)


class _Made:
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try_folder(self._folder)
        yield from batches


def try_folder(folder: str) -> None:
    """Make it, unless it is there, and write to it."""
    try:
        system, path = _located(folder)
        system.create_dir(path, recursive=True)
        trial = f"{path}/.{uuid.uuid4().hex}"
        with system.open_output_stream(trial):
            pass
        system.delete_file(trial)
    except (OSError, ValueError, NotImplementedError) as error:  # Arrow's errors are among these
        raise LateEventsError(
            f"late_events={folder!r}: events that come too late cannot be written there: {error}. Expected is a folder "
            "that all workers can write to: on this machine, or an address that Arrow knows, such as s3://bucket/late. "
            "Arrow writes there, with credentials from the environment of the driver and the workers; it knows nothing "
            "of Spark's settings"
        ) from error


def write_late(folder: str, packed: bytes, batch: str, shard: int, result: str) -> None:
    """One Parquet file for a micro-batch and a shard of a result, of which a query may have several.

    A micro-batch that is done again writes the same events under the same name: there is never a file too many. It is
    written under another name first, which starts with a dot, so that no reader sees half of it.
    """
    events, _ = from_bytes(packed)
    system, path = _located(folder)
    system.create_dir(path, recursive=True)
    own = hashlib.sha256(result.encode()).hexdigest()[:8]
    name = f"late-{batch}-{shard}-{own}.parquet"
    hidden = f"{path}/.{name}.{uuid.uuid4().hex}"
    pq.write_table(events, hidden, filesystem=system)
    system.move(hidden, f"{path}/{name}")


def _located(folder: str) -> tuple[fs.FileSystem, str]:
    if not urlsplit(folder).scheme:
        return fs.LocalFileSystem(), os.path.abspath(folder)
    system, path = fs.FileSystem.from_uri(folder.replace("s3a://", "s3://", 1))  # as Spark says it, and Arrow
    return system, path
