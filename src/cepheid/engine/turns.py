"""Processes that compile take turns: one compiles, and the others, who would compile the same, find it on disk.

Spark starts a worker for each core, and all of them need the same kernels at the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # not on Windows, where each compiles for itself
    fcntl = None  # type: ignore[assignment]

PATIENCE = 120.0
"""Seconds after which a process compiles out of turn: the one that is at it may have been stopped."""
_LOOK = 0.05

_depth = 0
"""A kernel is compiled while one that calls it is."""


def take_turns(compiled: Any) -> None:
    """Let a compiled function wait for its turn before it compiles. What is on disk already is loaded at once."""
    try:
        compile_, folder = compiled.compile, Path(compiled._cache._cache_path)
    except AttributeError:  # not compiled at all, or a compiler that keeps its cache otherwise
        return

    def compile_in_turn(signature: Any) -> Any:
        if _is_on_disk(compiled, signature):
            return compile_(signature)
        with _turn(folder / "compiling.lock"):
            return compile_(signature)  # looks on the disk again

    compiled.compile = compile_in_turn


def _is_on_disk(compiled: Any, signature: Any) -> bool:
    try:
        cache = compiled._cache
        key = cache._index_key(signature, compiled.targetctx.codegen())
        return key in cache._cache_file._load_index()
    except (AttributeError, OSError):
        return False


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    global _depth  # noqa: PLW0603
    with global_compiler_lock:  # the compiler's own among threads, and always the first
        _depth += 1
        try:
            if _depth > 1 or fcntl is None:
                yield
                return
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = path.open("wb")
            except OSError:  # nothing can be kept there, so there is nothing to wait for
                yield
                return
            with file:
                _wait_for(file)
                yield
        finally:
            _depth -= 1


def _wait_for(file: IO[bytes]) -> None:
    """The lock ends with the process, however that ends, and is not passed on to its children."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOOK)
        except OSError:  # a file system without locks
            return
        else:
            return
