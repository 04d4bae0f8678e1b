"""Whether a file can be written, asked before there is anything to write: at the end of a run it would be too late."""

from __future__ import annotations

import os
from pathlib import Path


def refuse_unwritable(path: Path) -> None:
    """Nothing is made, and what is there stays as it is."""
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}: make it, or name a file elsewhere")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: expected the name of a file, found a folder")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise PermissionError(f"{path} may not be written: name a file elsewhere")


def refuse_unwritable_folder(folder: Path) -> None:
    """As for a file; the folder, and those that it is in, may still have to be made."""
    there = next((path for path in (folder, *folder.absolute().parents) if path.exists()), folder)
    if not there.is_dir():
        raise NotADirectoryError(f"{folder}: expected a folder, but {there} is a file")
    if not os.access(there, os.W_OK):
        raise PermissionError(f"{folder}: nothing may be written to {there}: name a folder elsewhere")
