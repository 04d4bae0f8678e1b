"""Errors in Spark's workers, as a user may read them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa
from pyspark import TaskContext

from cepheid.spark.said import SAID

Step: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@contextmanager
def plain_errors() -> Iterator[None]:
    """Spark shows an error of Python's with the way to it first. Errors that say what is wrong come without it."""
    try:
        yield
    except SAID:
        if TaskContext.get() is not None:
            sys.tracebacklimit = 0  # nobody misses it later: a worker ends with its first error
        raise


def plainly(step: Step) -> Step:
    """A step of a batch job whose errors are plain."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            yield from step(batches)

    return run
