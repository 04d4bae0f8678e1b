"""Rows of a shard packed into a few values of bytes, so that a stateful operator handles few rows."""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

ROWS = 1_000_000
BYTES = 128 * 2**20
"""So much is gathered before it is packed: what a Python worker holds at a time."""
PIECE = 16 * 2**20
"""A value of bytes is not much longer than this."""

PACKED = "shard long, events binary"
PACKED_NAMES: Sequence[str] = ["shard", "events"]
NOTHING = b""
"""Goes to the first shard if nothing else does: it looks at every micro-batch whether the state fits the job."""


@functools.cache
def settle() -> None:
    """Spark's Python workers look for garbage after every task, through all that is loaded: for 70 ms.

    What is there when the first task begins stays, so that it need not be looked at again.
    """
    if TaskContext.get() is not None:
        gc.freeze()


def to_bytes(table: pa.Table, about: Mapping[str, str] | None = None) -> bytes:
    """A table as an Arrow stream, with a few words about it."""
    sink = pa.BufferOutputStream()
    schema = table.schema if about is None else table.schema.with_metadata(about)
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def from_bytes(packed: bytes) -> tuple[pa.Table, dict[str, str]]:
    """The table, and what was said about it.

    >>> table, about = from_bytes(to_bytes(pa.table({"x": [1]}), {"a": "b"}))
    >>> table.to_pylist(), about
    ([{'x': 1}], {'a': 'b'})
    """
    with pa.ipc.open_stream(pa.py_buffer(packed)) as reader:
        table = reader.read_all()
    about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    return table.replace_schema_metadata(None), about


def pieces(table: pa.Table) -> Iterator[bytes]:
    """A table of any size as values that are not too long."""
    count = max(1, -(-table.nbytes // PIECE))
    size = max(1, -(-table.num_rows // count))
    for start in range(0, table.num_rows, size):
        yield to_bytes(table.slice(start, size))


@dataclass(frozen=True)
class Target:
    """Where the rows of a group of patterns go.

    ``columns``: the places of the columns that the patterns need, ``events`` what they are called and what they are;
    ``shard``: the place of the column with the number of each row's shard; ``wanted``: that of the column that says
    whether the patterns can use the row, if not all can; ``keys``: for each shard the key of its state.
    """

    columns: tuple[int, ...]
    events: pa.Schema
    shard: int
    wanted: int | None
    keys: tuple[int, ...]


@dataclass(frozen=True)
class Packer:
    """Puts the rows of each shard together."""

    targets: tuple[Target, ...]

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for table in gathered(batches):
            for target in self.targets:
                yield from _packed(table, target)


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Small batches put together."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS or size >= BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _packed(table: pa.Table, target: Target) -> Iterator[pa.RecordBatch]:
    columns = [table.column(place) for place in target.columns]
    fitting = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, target.events, strict=True)]
    events = pa.Table.from_arrays(fitting, schema=target.events)
    shards = table.column(target.shard)
    if target.wanted is not None:
        wanted = table.column(target.wanted)
        events, shards = events.filter(wanted), shards.filter(wanted)
    keys: list[int] = []
    packed: list[bytes] = []
    for shard, rows in _by_shard(events, shards.to_numpy(), len(target.keys)):
        for piece in pieces(rows):
            keys.append(target.keys[shard])
            packed.append(piece)
    if keys and keys[0] != target.keys[0]:
        keys.append(target.keys[0])
        packed.append(NOTHING)
    if keys:
        yield pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), pa.array(packed, pa.binary())], PACKED_NAMES)


def _by_shard(events: pa.Table, shards: npt.NDArray[np.int32], count: int) -> Iterator[tuple[int, pa.Table]]:
    if count == 1:
        if events.num_rows:
            yield 0, events
        return
    order = np.argsort(shards, kind="stable")
    events = events.take(pa.array(order))
    ends = np.cumsum(np.bincount(shards, minlength=count)).tolist()
    for shard, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > start:
            yield shard, events.slice(start, end - start)


@dataclass(frozen=True)
class Unpacker:
    """Packed matches as rows."""

    schema: pa.Schema

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            for packed in batch.column(0):
                if packed.is_valid:
                    table, _ = from_bytes(packed.as_buffer())
                    yield from table.to_batches()
