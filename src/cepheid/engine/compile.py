"""The one place that knows about the compiler.

Kernels are plain functions over arrays. They are compiled once per machine and cached on disk; set
NUMBA_DISABLE_JIT=1 to run them as Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """Compile a function that the engine calls."""
    compiled: _F = numba.njit(function, cache=True, nogil=True)
    return compiled


def inline(function: _F) -> _F:
    """Compile a small function into the kernels that call it."""
    compiled: _F = numba.njit(function, cache=True, nogil=True, inline="always")
    return compiled
