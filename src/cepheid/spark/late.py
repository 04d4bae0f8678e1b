"""Late events, as files that a second stream can read."""

from __future__ import annotations

import os
import uuid
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from pyarrow import fs

from cepheid.spark.pack import from_bytes


def write_late(folder: str, packed: bytes, batch: str, shard: int) -> None:
    """One Parquet file for a micro-batch and a shard.

    A micro-batch that is done again writes the same events under the same name: there is never a file too many. It is
    written under another name first, which starts with a dot, so that no reader sees half of it.
    """
    events, _ = from_bytes(packed)
    if urlsplit(folder).scheme:
        system, path = fs.FileSystem.from_uri(folder.replace("s3a://", "s3://", 1))  # as Spark says it, and Arrow
    else:
        system, path = fs.LocalFileSystem(), os.path.abspath(folder)
    system.create_dir(path, recursive=True)
    name = f"late-{batch}-{shard}.parquet"
    hidden = f"{path}/.{name}.{uuid.uuid4().hex}"
    pq.write_table(events, hidden, filesystem=system)
    system.move(hidden, f"{path}/{name}")
