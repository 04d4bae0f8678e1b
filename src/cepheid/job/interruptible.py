"""Work of Spark's that can be stopped at any time."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from cepheid.job.description import Job
from cepheid.job.quiet import no_log
from cepheid.job.watch import Watcher
from cepheid.local.signals import Stop

if TYPE_CHECKING:
    from cepheid.spark.pyspark_names import SparkSession

T = TypeVar("T")
POLL = 0.1
PATIENCE = 10.0
"""Seconds that the work has to end when it is told to."""


def interruptible(spark: SparkSession, job: Job, watcher: Watcher, stop: Stop, work: Callable[[], T]) -> T:
    """What the work returns or raises; KeyboardInterrupt if it had to be stopped.

    An interrupt in the midst of a call to Spark would end as a lot of Java's and Python's tracebacks, so the calls are
    made by a thread that no signal reaches, and what they are waiting for is cancelled.
    """
    thread = _Thread(spark, job.spark.remote is not None, work)
    thread.start()
    while thread.is_alive() and not stop.asked:
        thread.join(POLL)
    if thread.is_alive():
        watcher.phase("stopping")
        with no_log(spark, job):
            last_call = time.perf_counter() + PATIENCE
            while thread.is_alive() and time.perf_counter() < last_call:
                thread.cancel()  # again and again: the next job may have begun since
                thread.join(POLL)
            # Its tasks end later, as their Python is given some time; if Java ended before them, it would complain.
            while thread.has_tasks() and time.perf_counter() < last_call:
                time.sleep(POLL)
    if thread.results:
        return thread.results[0]
    if stop.asked or thread.error is None:
        raise KeyboardInterrupt
    raise thread.error


class _Thread(threading.Thread, Generic[T]):
    def __init__(self, spark: SparkSession, connected: bool, work: Callable[[], T]) -> None:
        super().__init__(daemon=True)  # what does not end in time is left behind
        self._group = f"cepheid-{uuid.uuid4().hex}"
        self._connected = connected
        self.results: list[T] = []
        self.error: BaseException | None = None
        self._spark = spark
        self._work = work

    def cancel(self) -> None:
        if self._connected:
            self._spark.interruptTag(self._group)
        else:  # tags do not reach from thread to thread
            self._spark.sparkContext.cancelJobGroup(self._group)

    def has_tasks(self) -> bool:
        """Whether tasks still run, of whatever work. A server does not tell."""
        if self._connected:
            return False
        # Asked of the scheduler itself: what Spark tells in public is a little behind, and says too early that none do.
        try:
            counts = self._spark.sparkContext._jsc.sc().taskScheduler().runningTasksByExecutors().valuesIterator()
            while counts.hasNext():
                if counts.next():
                    return True
        except Exception:  # another Spark has other insides; then it may complain
            pass
        return False

    def run(self) -> None:
        try:
            if self._connected:
                self._spark.addTag(self._group)
            else:
                self._spark.sparkContext.setJobGroup(self._group, "a job of Cepheid's")
            self.results.append(self._work())
        except BaseException as error:  # is raised where it is waited for
            self.error = error
