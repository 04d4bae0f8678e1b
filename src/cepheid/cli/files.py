"""Files that the commands read, and those that they will write."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from cepheid.local.events import open_events
from cepheid.local.stream.result import check_plot
from cepheid.local.writable import refuse_unwritable


class FileError(ValueError):
    """A file that cannot be read as what it should be."""


def read_patterns(path: Path) -> tuple[str, str]:
    """The text of a file of patterns, and what to call it in messages; ``-`` is standard input."""
    name = "<stdin>" if str(path) == "-" else str(path)
    try:
        content = sys.stdin.buffer.read() if name == "<stdin>" else path.read_bytes()
        return content.decode("utf-8-sig"), name
    except UnicodeDecodeError as error:
        raise FileError(f"{name}: patterns are text in UTF-8, and byte {error.start} is not") from None
    except IsADirectoryError:
        raise FileError(f"{name} is a folder; name the files in it") from None
    except FileNotFoundError:
        raise FileError(f"{name}: there is no such file") from None
    except OSError as error:
        raise FileError(f"{name}: {error.strerror}") from None


def read_schema(path: Path) -> pa.Schema:
    """The columns of a file of events."""
    with _reading(path):
        return open_events(path).schema


def read_table(path: Path) -> pa.Table:
    """The events of a file."""
    with _reading(path):
        return open_events(path).to_table()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileError(f"{path}: {error}") from None


def check_output(option: str, path: Path | None, endings: Iterable[str]) -> None:
    """Before the work, not after it: fails if it could not be written to this file. ``endings``: those that say how."""
    with _naming(option):
        if path is not None and path.suffix.lower() not in endings:
            raise ValueError(f"expected a name that ends in {' or '.join(endings)}; found {path.name!r}")
        if path is not None:
            refuse_unwritable(path)


def check_drawing(option: str, path: Path | None) -> None:
    """Before the work: fails if it could not be drawn to this file."""
    with _naming(option):
        if path is not None:
            check_plot(path)


@contextmanager
def _naming(option: str) -> Iterator[None]:
    try:
        yield
    except (ModuleNotFoundError, ValueError, OSError) as error:
        raise FileError(f"{option}: {error}") from None
