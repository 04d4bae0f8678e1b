"""What a job writes and what it reads are kept apart; above all where a folder is emptied before it is written to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from cepheid.job.description import located
from cepheid.job.environment import is_known, resolved
from cepheid.job.values import Found, at, mode
from cepheid.job.yaml_text import Place, path_text

_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")
_LOCAL = re.compile(r"^file:/+")


def one_place(values: Mapping[str, Any], folder: Path) -> Found:
    """Places that are also another's, as far as the variables in their names are set."""
    sink = _place(folder, at(values, "sink", "path"))
    named = {("source", "path"): _place(folder, at(values, "source", "path")), ("sink", "path"): sink,
             ("checkpoint",): _place(folder, values.get("checkpoint")),
             ("engine", "late_events"): _place(folder, at(values, "engine", "late_events"))}  # fmt: skip
    seen: dict[PurePosixPath, Place] = {}
    for place, path in named.items():
        first = place if path is None else seen.setdefault(path, place)
        if first != place:
            yield place, f"this is the same place as {path_text(first)}", None
    if sink is None or seen[sink] == ("source", "path"):
        return
    sources = list(_places(folder, at(values, "source", "path")))
    written = sink / f"part-00000.{at(values, 'sink', 'format')}"
    if any(_names(source, path) for source in sources for path in (sink, written)):
        yield ("source", "path"), "this stands for the files of sink.path too", None
    elif mode(values) == "batch" and at(values, "sink", "mode") == "overwrite":
        lost = dict.fromkeys(name for name, path in _needed(values, folder, sources) if _is_in(path, sink))
        if lost:
            said = f"overwrite empties this folder, and {' and '.join(lost)} would be gone before anything is read"
            yield ("sink", "path"), said, "write to a folder of its own"


def _needed(
    values: Mapping[str, Any], folder: Path, sources: list[PurePosixPath]
) -> Iterator[tuple[str, PurePosixPath]]:
    """What a job reads: what it is called, and where it is."""
    for source in sources:
        yield "source.path", source
    named = values.get("patterns")
    for file in [named] if isinstance(named, str) else named if isinstance(named, (list, tuple)) else ():
        for path in _places(folder, file):
            yield "patterns", path
    yield "the folder of this description", PurePosixPath(folder.resolve())


def _place(folder: Path, path: object) -> PurePosixPath | None:
    """Where a path of the description leads, also if it is an address; None if there is none, or nobody knows yet."""
    if not isinstance(path, str) or not is_known(path):
        return None
    return PurePosixPath(located(folder, _LOCAL.sub("/", resolved(path))))


def _places(folder: Path, path: object) -> Iterator[PurePosixPath]:
    """One for each of the alternatives that a name with ``{a,b}`` stands for; ``*``, ``?`` and ``[…]`` stay."""
    if not isinstance(path, str) or not is_known(path):
        return
    texts = [resolved(path)]
    while texts:
        text = texts.pop()
        found = _ALTERNATIVES.search(text)
        if found is None:
            yield PurePosixPath(located(folder, _LOCAL.sub("/", text)))
        else:
            texts += [text[: found.start()] + word + text[found.end() :] for word in found[1].split(",")]


def _names(pattern: PurePosixPath, path: PurePosixPath) -> bool:
    """Whether a name with ``*`` stands for a path."""
    return len(pattern.parts) == len(path.parts) and _is_in(pattern, path)


def _is_in(pattern: PurePosixPath, folder: PurePosixPath) -> bool:
    """Whether what a name stands for is a folder, or may be in it."""
    if len(pattern.parts) < len(folder.parts):
        return False
    pairs = zip(pattern.parts, folder.parts, strict=False)
    return all(part == wanted or fnmatchcase(part, wanted.replace("[^", "[!")) for wanted, part in pairs)
