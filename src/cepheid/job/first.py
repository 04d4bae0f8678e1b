"""The first matches of a stream, to show when it ends. What was written by earlier runs is not looked at: it may be a
lot, or gone.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cepheid.job import sql
from cepheid.job.batch import first_of
from cepheid.job.description import FileSink, Job, ShownSink
from cepheid.job.outcome import MicroBatch
from cepheid.job.sinks import read_back
from cepheid.job.spark_errors import in_a_line
from cepheid.job.watch import Watcher

if TYPE_CHECKING:
    from cepheid.spark.pyspark_names import DataFrame, SparkSession

Rows = Sequence[Mapping[str, Any]]
NOT_READ = "The first matches could not be read: {}"


class First(Protocol):
    """Is told of each micro-batch when it is done. ``trouble``: why there are none to show."""

    trouble: str | None

    def seen(self, batch: MicroBatch) -> None: ...

    def taken(self) -> tuple[Rows, str]:
        """Matches, and what they are if not simply the first."""
        ...


def first_matches(spark: SparkSession, job: Job, found: DataFrame, printer: Printer, most: int) -> First:
    """``found``: all matches, for their columns."""
    match job.sink:
        case FileSink() as sink if not has_examples(job):
            return _Written(spark, job, sink, found, most)
        case ShownSink(format="memory", name=name):
            return _InMemory(spark, job, name, most)
        case ShownSink(format="console"):
            return printer
    return _Examples(found, most)


def has_examples(job: Job) -> bool:
    """Whether micro-batches report a match of theirs, as it cannot be had again from where they were written."""
    return job.sink.format in ("kafka", "none", "delta")


def example(found: DataFrame) -> str:
    """The earliest match of a micro-batch, as an aggregate in SQL."""
    return f"min(struct(end, start, {sql.to_json(sql.struct(found.columns))} AS match))"


class Printer:
    """The console. It keeps the first matches for the end."""

    trouble: str | None = None

    def __init__(self, job: Job, watcher: Watcher, most: int) -> None:
        self._first: list[Mapping[str, Any]] = []
        self._rows = job.sink.rows if isinstance(job.sink, ShownSink) else 0
        self._watcher = watcher
        self._most = most

    def __call__(self, found: DataFrame, number: int) -> None:
        found = found.persist()  # all of it is worked out once, so that the state of the stream is complete
        try:
            count = found.count()
            rows = first_of(found, self._rows) if count else []
        finally:
            found.unpersist()
        if rows:
            self._watcher.matches(rows, count - len(rows))
        self._first += rows[: max(self._most - len(self._first), 0)]

    def seen(self, batch: MicroBatch) -> None: ...

    def taken(self) -> tuple[Rows, str]:
        return self._first, ""


class _Written:
    """Read from what was written, as soon as the first micro-batches that found some are done. Files of earlier runs
    are told by their age, without a look into them.
    """

    def __init__(self, spark: SparkSession, job: Job, sink: FileSink, found: DataFrame, most: int) -> None:
        since = int(1000 * dt.datetime.now(dt.timezone.utc).timestamp())
        new = f"_metadata.file_modification_time >= timestamp_millis({since}L)"
        self._read: Callable[[], Rows] = lambda: first_of(read_back(spark, job, sink, found).where(new), most)
        self._job = job
        self._most = most
        self._first: Rows = ()
        self.trouble: str | None = None

    def seen(self, batch: MicroBatch) -> None:
        if not batch.matches or len(self._first) >= self._most or self.trouble:
            return
        try:
            self._first = self._read()
        except Exception as error:  # the stream has done its work, whatever becomes of what it has written
            self.trouble = NOT_READ.format(in_a_line(error, self._job))

    def taken(self) -> tuple[Rows, str]:
        return self._first, self.trouble or "Those of the first micro-batches of this run that found some."


class _InMemory:
    def __init__(self, spark: SparkSession, job: Job, name: str, most: int) -> None:
        self._spark, self._job, self._name, self._most = spark, job, name, most
        self.trouble: str | None = None

    def seen(self, batch: MicroBatch) -> None: ...

    def taken(self) -> tuple[Rows, str]:
        try:
            return first_of(self._spark.table(sql.name(self._name)), self._most), ""
        except Exception as error:  # as above
            self.trouble = NOT_READ.format(in_a_line(error, self._job))
            return (), self.trouble


class _Examples:
    trouble: str | None = None

    def __init__(self, found: DataFrame, most: int) -> None:
        self._moments = {field.name for field in found.schema if field.dataType.typeName() == "timestamp"}
        self._most = most
        self._first: list[Mapping[str, Any]] = []

    def seen(self, batch: MicroBatch) -> None:
        if batch.example is not None and len(self._first) < self._most:
            self._first.append(_with_moments(json.loads(batch.example), self._moments))

    def taken(self) -> tuple[Rows, str]:
        return self._first, "The earliest match of each micro-batch."


def _with_moments(match: Mapping[str, Any], names: Collection[str]) -> Mapping[str, Any]:
    """Times of a match in JSON as times."""
    times = {name: dt.datetime.fromisoformat(match[name].replace("Z", "+00:00")) for name in names if name in match}
    return {**match, **times}
