"""Events as lines of JSON: from standard input or a socket, parsed in blocks."""

from __future__ import annotations

import os
import selectors
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from time import perf_counter

import pyarrow as pa

from cepheid.engine.ingest import EventColumns
from cepheid.local.signals import Stop
from cepheid.local.stream.line_parser import LineParser
from cepheid.local.stream.queue import Chunk
from cepheid.local.stream.rejected import OnBadLine, Rejected, checked_on_bad_line

BLOCK = 1 << 18
"""Bytes to read at once, at the most."""


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


@dataclass(frozen=True, kw_only=True)
class JsonEvents:
    """What all sources of events as JSON are told.

    ``schema``: the columns; what the first lines have, if not said. ``on_bad_line``: whether a line that is no event is
    the end, ``"fail"``, or is left out, ``"skip"``.
    """

    schema: pa.Schema | None = None
    on_bad_line: OnBadLine = "fail"
    rejected: Rejected = field(default_factory=Rejected, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked_on_bad_line(self.on_bad_line)

    def preview(self, columns: EventColumns) -> pa.Table | None:
        return None if self.schema is None else self.schema.empty_table()

    def parser(self, name: str, columns: EventColumns) -> LineParser:
        """For a run."""
        self.rejected.clear()
        return LineParser(name, self.schema, columns.time, self.rejected if self.on_bad_line == "skip" else None)


@dataclass(frozen=True)
class StandardInput(JsonEvents):
    """Lines of JSON on standard input."""

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[Chunk]:
        yield from read_lines(sys.stdin.fileno(), self.parser("standard input", columns), stop)


@dataclass(frozen=True)
class Socket(JsonEvents):
    """Lines of JSON from a connection: to a server, or, with ``listen``, from the first that connects to this one.

    ``on_listening`` is called with the port that was opened; port 0 is any that is free.
    """

    host: str
    port: int
    listen: bool = False
    on_listening: Callable[[int], object] | None = None

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[Chunk]:
        name = f"{'listen' if self.listen else 'tcp'}://{self.host}:{self.port}"
        connection = self._accepted(stop) if self.listen else socket.create_connection((self.host, self.port))
        if connection is None:
            return
        with connection:
            yield from read_lines(connection.fileno(), self.parser(name, columns), stop)

    def _accepted(self, stop: Stop) -> socket.socket | None:
        with closing(socket.create_server((self.host, self.port))) as server, selectors.PollSelector() as selector:
            if self.on_listening is not None:
                self.on_listening(server.getsockname()[1])
            selector.register(server, selectors.EVENT_READ)
            selector.register(stop, selectors.EVENT_READ)
            if not any(key.fileobj is server for key, _ in selector.select()):
                return None
            return server.accept()[0]
