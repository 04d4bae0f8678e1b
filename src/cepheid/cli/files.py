"""Files that the commands read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = {
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}


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
    import pyarrow as pa
    import pyarrow.dataset

    if not path.exists():
        raise FileError(f"{path}: there is no such file")
    format_ = FORMATS.get(path.suffix.lower())
    if format_ is None:
        raise FileError(f"{path}: expected one of {', '.join(FORMATS)}, found {path.suffix or 'no ending'!r}")
    try:
        return pyarrow.dataset.dataset(path, format=format_).schema
    except (pa.ArrowException, OSError) as error:
        raise FileError(f"{path}: {error}") from None
