"""How much the workers are told of a query: more than Spark sends to a stream at once is found before it starts."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cepheid.spark.session import FUNCTION_BYTES
from cepheid.spark.task import UserFunction

ELSE = 2**14
"""Bytes that Spark adds at the most."""


def packed(value: Any) -> bytes:
    found: bytes = zlib.compress(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]
    return found


def check_size(spark: SparkSession, sent: Any, functions: Iterable[UserFunction]) -> None:
    """What is longer is broadcast, and the operators of a stream cannot be made of that."""
    most, size = most_bytes(spark), len(cloudpickle.dumps(sent))  # type: ignore[no-untyped-call]
    if most is None or size + ELSE <= most:
        return
    sizes = {f"the function {function.name!r}": len(packed(function)) for function in functions}
    largest = max(sizes, key=lambda name: sizes[name], default="the patterns")
    raise ValueError(
        f"what Spark's workers are told of this query takes {_mega(size)}, most of it {largest}, and Spark sends "
        f"{_mega(most)} to a stream at the most. Set {FUNCTION_BYTES} to more when Spark is started, as "
        "cepheid.spark.session() does, or let functions read what they need from a file"
    )


def most_bytes(spark: SparkSession) -> int | None:
    """None on Spark Connect, which broadcasts nothing of that kind."""
    try:
        context = spark.sparkContext
    except (AttributeError, NotImplementedError, PySparkException):
        return None
    found: int = context._jvm.PythonUtils.getBroadcastThreshold(context._jsc)  # type: ignore[union-attr]
    return found


def _mega(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
