"""What Spark would say on the terminal of a job besides the job itself."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cepheid.job.description import Job

if TYPE_CHECKING:
    from cepheid.spark.pyspark_names import SparkSession

_REPEATING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def no_repeated_errors() -> Iterator[None]:
    """PySpark logs an error of SQL in full before it raises it, with the values of variables. What is raised is told
    by the job itself, without them.
    """
    # Loggers of PySpark's own kind: one of another kind, made here, would not understand what PySpark logs later.
    named = importlib.import_module("pyspark.logger").PySparkLogger
    loggers = [named.getLogger(name) for name in _REPEATING]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


@contextmanager
def no_log(spark: SparkSession, job: Job) -> Iterator[None]:
    """Spark calls it an error when it is interrupted. A server has a log of its own."""
    if job.spark.remote is not None:
        yield
        return
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        spark.sparkContext.setLogLevel(job.spark.log_level)
