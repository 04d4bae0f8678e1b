"""Events as lines of JSON: from standard input or a socket, parsed in blocks."""

from __future__ import annotations

import io
import os
import selectors
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa
import pyarrow.json

from cepheid.engine.ingest import EventColumns
from cepheid.language.problems import CepheidError
from cepheid.local.signals import Stop
from cepheid.local.stream.queue import Chunk

BLOCK = 1 << 18
"""Bytes to read at once, at the most."""


class LinesError(CepheidError):
    """Lines that are no events."""


class LineParser:
    """Blocks of lines to tables that all have the same columns.

    ``schema`` says the columns, and other fields are left out. Without one the first block does, and a later line that
    has more, or other types, is an error: to lose an attribute silently would be worse. Times are text as ISO 8601 has
    it, or numbers.

    >>> parser = LineParser("lines", None, "ts")
    >>> parser.table(b'{"ts": "2024-05-17T09:30:00.5Z", "type": "A", "x": 1}').schema.types
    [TimestampType(timestamp[us]), DataType(string), DataType(int64)]
    """

    def __init__(self, name: str, schema: pa.Schema | None, time: str) -> None:
        self._name = name
        self._time = time
        self._schema = schema
        self._unexpected = "ignore"
        self._lines = 0

    def table(self, block: bytes) -> pa.Table:
        """The events of some whole lines."""
        try:
            if self._schema is None:
                self._schema, self._unexpected = self._guessed(_parse(block)), "error"
            table = _parse(block, explicit_schema=self._schema, unexpected_field_behavior=self._unexpected)
        except pa.ArrowInvalid as error:
            lines = block.count(b"\n") + 1
            raise LinesError(self._explained(str(error), lines)) from None
        self._lines += block.count(b"\n") + 1
        return table.combine_chunks()

    def _guessed(self, first: pa.Table) -> pa.Schema:
        """Times to the microsecond, also where the first have whole seconds or were taken for text."""
        unknown = [repr(found.name) for found in first.schema if pa.types.is_null(found.type)]
        if unknown:
            column = f"the column {unknown[0]} has" if len(unknown) == 1 else f"the columns {', '.join(unknown)} have"
            raise LinesError(
                f"{self._where(first.num_rows)}: {column} no value in these first lines, so its type is not known. "
                f"Say which columns there are, with a schema (schema=, --schema) such as {_in_words(first.schema)!r}"
            )
        fields = []
        for found in first.schema:
            text_time = found.name == self._time and pa.types.is_string(found.type)
            moment = text_time or pa.types.is_timestamp(found.type)
            fields.append(found.with_type(pa.timestamp("us")) if moment else found)
        return pa.schema(fields)

    def _explained(self, error: str, lines: int) -> str:
        hint = ""
        if self._unexpected == "error" and self._schema is not None:
            found = ", ".join(f"{f.name} {f.type}" for f in self._schema)
            hint = f"\nThe first lines had the columns {found}. Say which columns there are, with a schema."
        return f"{self._where(lines)}: expected a JSON object in each line; {error}{hint}"

    def _where(self, lines: int) -> str:
        return f"{self._name}, line {self._lines + 1}" + (f" to {self._lines + lines}" if lines > 1 else "")


def _in_words(schema: pa.Schema) -> str:
    """As a user may write it, with a guess for what is not known."""

    def word(type_: pa.DataType) -> str:
        if pa.types.is_timestamp(type_):
            return "timestamp"
        return "double" if pa.types.is_null(type_) else str(type_)

    return ", ".join(f"{field.name} {word(field.type)}" for field in schema)


def _parse(block: bytes, **options: object) -> pa.Table:
    return pa.json.read_json(
        io.BytesIO(block),
        # One block: a line must not be cut. The thread of the source is the one that should work.
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(block) + 64),
        parse_options=pa.json.ParseOptions(**options),
    )


def read_lines(descriptor: int, parser: LineParser, stop: Stop) -> Iterator[Chunk]:
    """Chunks of the lines that can be read, until the end or until it is asked to stop."""
    rest = b""
    with selectors.PollSelector() as selector:  # unlike epoll it takes files too
        selector.register(descriptor, selectors.EVENT_READ)
        selector.register(stop, selectors.EVENT_READ)
        while not stop.asked:
            if not any(key.fd == descriptor for key, _ in selector.select()):
                return
            data = os.read(descriptor, BLOCK)
            came = perf_counter()
            whole, newline, rest = (rest + data).rpartition(b"\n") if data else (rest, b"\n", b"")
            if newline and whole.strip():
                yield Chunk(parser.table(whole), came)
            if not data:
                return


@dataclass(frozen=True)
class StandardInput:
    """Lines of JSON on standard input."""

    schema: pa.Schema | None = None

    def preview(self, columns: EventColumns) -> pa.Table | None:
        return None if self.schema is None else self.schema.empty_table()

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[Chunk]:
        yield from read_lines(sys.stdin.fileno(), LineParser("standard input", self.schema, columns.time), stop)


@dataclass(frozen=True)
class Socket:
    """Lines of JSON from a connection: to a server, or, with ``listen``, from the first that connects to this one.

    ``on_listening`` is called with the port that was opened; port 0 is any that is free.
    """

    host: str
    port: int
    listen: bool = False
    schema: pa.Schema | None = None
    on_listening: Callable[[int], object] | None = None

    def preview(self, columns: EventColumns) -> pa.Table | None:
        return None if self.schema is None else self.schema.empty_table()

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[Chunk]:
        name = f"{'listen' if self.listen else 'tcp'}://{self.host}:{self.port}"
        connection = self._accepted(stop) if self.listen else socket.create_connection((self.host, self.port))
        if connection is None:
            return
        with connection:
            yield from read_lines(connection.fileno(), LineParser(name, self.schema, columns.time), stop)

    def _accepted(self, stop: Stop) -> socket.socket | None:
        with closing(socket.create_server((self.host, self.port))) as server, selectors.PollSelector() as selector:
            if self.on_listening is not None:
                self.on_listening(server.getsockname()[1])
            selector.register(server, selectors.EVENT_READ)
            selector.register(stop, selectors.EVENT_READ)
            if not any(key.fileobj is server for key, _ in selector.select()):
                return None
            return server.accept()[0]
