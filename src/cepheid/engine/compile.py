"""The one place that knows about the compiler.

Kernels are plain functions over arrays. They are compiled once per machine and cached on disk; set
NUMBA_DISABLE_JIT=1 to run them as Python.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from cepheid.engine.turns import take_turns

_F = TypeVar("_F", bound=Callable[..., Any])
_said = False


def kernel(function: _F) -> _F:
    """Compile a function that the engine calls."""
    compiled: _F = numba.njit(function, cache=True, nogil=True)
    _stamp(compiled)
    take_turns(compiled)
    return compiled


@functools.cache
def _files() -> tuple[tuple[str, int, int], ...]:
    """The files that kernels are made of, as they are now."""
    here = Path(__file__)
    found = [here, here.parents[1] / "shed" / "drops.py", *sorted(here.with_name("kernels").glob("*.py"))]
    return tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in found)


def _stamp(compiled: Any) -> None:
    """Compiled code is of use while none of the files has changed: small functions are compiled into their callers.

    The compiler by itself looks at the caller's file alone.
    """
    try:
        file = compiled._cache._cache_file
        file._source_stamp = (file._source_stamp, _files())
    except AttributeError:  # not compiled at all, or a compiler that keeps its cache otherwise
        return


def announce(compiled: Any) -> None:
    """Before a kernel is first called in a process: say that the call will wait for the compiler, if it will."""
    global _said  # noqa: PLW0603
    if not _said and not _is_cached(compiled):
        _said = True
        logging.getLogger("cepheid").warning(
            "cepheid: compiling the engine, once on this machine; this can take half a minute"
        )


def _is_cached(compiled: Any) -> bool:
    """Whether there is compiled code on disk, of this version of the function. Where that cannot be told: yes."""
    try:
        return bool(compiled._cache._cache_file._load_index())
    except AttributeError:  # not compiled at all, or a compiler that keeps its cache otherwise
        return True


def inline(function: _F) -> _F:
    """Compile a small function into the kernels that call it."""
    compiled: _F = numba.njit(function, cache=True, nogil=True, inline="always")
    return compiled
