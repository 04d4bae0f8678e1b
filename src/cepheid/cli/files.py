"""Files that the commands read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from cepheid.local.events import open_events


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
