"""The state of a session as bytes: arrays, an Arrow table and a little JSON. Nothing in it is ever executed."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.language.problems import CepheidError
from cepheid.plan.tree import Plan, from_lists

MAGIC = b"cepheid snapshot\n"
VERSION = 7
"""Raised when what a snapshot holds changes, so that an older one is refused with words."""

Arrays = dict[str, npt.NDArray[Any]]


class SnapshotError(CepheidError, ValueError):
    """Bytes that no session can be restored from."""


def pack(arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> bytes:
    """One value of bytes. ``meta`` is what JSON can hold."""
    buffer = io.BytesIO()
    buffer.write(MAGIC + f"{VERSION}\n".encode())
    text = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    np.savez(buffer, **arrays, **{"meta.json": text})  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(blob: bytes) -> tuple[Arrays, dict[str, Any]]:
    if not blob.startswith(MAGIC):
        raise SnapshotError("this is no snapshot of a Cepheid session")
    version, _, content = blob[len(MAGIC) :].partition(b"\n")
    if version != str(VERSION).encode():
        raise SnapshotError(
            f"this snapshot has format {version.decode(errors='replace')!r}, and this version of Cepheid reads format "
            f"{VERSION}; restore it with the version that wrote it"
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(arrays.pop("meta.json").tobytes())
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise SnapshotError(f"this snapshot is damaged: {error}") from None
    return arrays, meta


def to_array(schema: pa.Schema, events: Iterable[pa.RecordBatch] = ()) -> npt.NDArray[np.uint8]:
    """A schema, and events that have it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in events:
            writer.write_batch(batch)
    found: npt.NDArray[np.uint8] = np.frombuffer(sink.getvalue(), dtype=np.uint8)
    return found


def from_array(array: npt.NDArray[np.uint8]) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(array.tobytes())) as reader:
        return reader.read_all()


def plan_from_json(found: Any) -> Plan | None:
    try:
        return from_lists(found)
    except ValueError as error:
        raise SnapshotError(f"this snapshot is damaged: {error}") from None


def prefixed(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def below(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """The arrays under a prefix, without it."""
    start = f"{prefix}."
    return {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}
