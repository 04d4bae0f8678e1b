"""The Spark session of a job."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.job.description import Job
from cepheid.job.environment import resolved
from cepheid.job.part import Options

if TYPE_CHECKING:
    from cepheid.spark.pyspark_names import SparkSession

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
STREAMING: dict[str, str] = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""State on disk, written as what has changed."""
USUAL = {
    "spark.ui.showConsoleProgress": "false",  # the terminal is the job's own
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # the older form has no zone, others read it wrongly
}


def open_session(job: Job) -> SparkSession:
    """A session with the job's settings: at its master, on its server, or on all cores of this machine."""
    from cepheid.spark import session
    from cepheid.spark.pyspark_names import SparkSession

    _send_modules(job)
    wanted: dict[str, Any] = dict(settings(job))
    if job.spark.remote is not None:
        builder = SparkSession.builder.remote(resolved(job.spark.remote)).appName(resolved(job.name))
        for key, value in wanted.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    if job.spark.master is not None:
        wanted["spark.master"] = resolved(job.spark.master)
    spark = session(resolved(job.name), **wanted)
    spark.sparkContext.setLogLevel(job.spark.log_level)
    return spark


def _send_modules(job: Job) -> None:
    """The workers do not look beside the description: what its modules define is sent to them as it is."""
    from cepheid.spark.pyspark_names import cloudpickle

    folder = job.folder.resolve()
    for name, module in list(sys.modules.items()) if job.modules else ():
        top = folder / name.partition(".")[0]
        path = Path(getattr(module, "__file__", None) or "").resolve()
        if path == top.with_suffix(".py") or (top.joinpath("__init__.py").exists() and path.is_relative_to(top)):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def settings(job: Job) -> dict[str, str]:
    """Spark's settings: what is said in the job comes before what is usual.

    >>> from cepheid.job import parse_job
    >>> text = "{mode: stream, source: {workload: card_payments}, patterns: x.cep, sink: {format: none}}"
    >>> [name for name in settings(parse_job(text, check=False)) if name.endswith("providerClass")]
    ['spark.sql.streaming.stateStore.providerClass']
    """
    wanted = USUAL | (STREAMING if job.mode == "stream" else {})
    hands = job.engine.shards or _local_cores(job)
    if hands is not None and job.mode == "stream":
        wanted["spark.sql.shuffle.partitions"] = str(hands)  # each costs something in every micro-batch
    packages = [resolved(package) for package in job.spark.packages or ()]
    wanted |= as_texts(job.spark.settings)
    if job.spark.log_level in ("WARN", "ERROR", "OFF") and job.spark.remote is None:
        wanted.setdefault("spark.driver.extraJavaOptions", _quiet_from_the_start())
    formats = {getattr(job.source, "format", None), job.sink.format}
    jars: list[str] = []
    if "kafka" in formats and not _kafka_is_named([*packages, *wanted.values()]):
        jars = _fetched_connector()
        packages += [] if jars else [f"{KAFKA}:{version('pyspark')}"]
    for name, more in (("spark.jars", jars), ("spark.jars.packages", packages)):
        if more:
            wanted[name] = ",".join([*([wanted[name]] if name in wanted else []), *more])
    return wanted


def _local_cores(job: Job) -> int | None:
    """How many a session on this machine has; None if it is elsewhere."""
    if job.spark.remote is not None:
        return None
    found = re.fullmatch(r"local(?:\[(\d+|\*).*\])?", job.spark.master or "local[*]")
    if found is None:
        return None
    return int(found[1]) if (found[1] or "*") != "*" else (os.cpu_count() or 1) if found[1] else 1


def _quiet_from_the_start() -> str:
    """The level of the log is set when Spark runs; it has said something by then, unless it is told before."""
    return f"-Dlog4j2.configurationFile={files('cepheid.job').joinpath('log4j2.properties')}"


def as_texts(options: Options) -> dict[str, str]:
    """Options as Spark takes them, with the values of environment variables: not to be shown to anyone."""
    return {
        name: str(value).lower() if isinstance(value, bool) else resolved(str(value)) for name, value in options.items()
    }


def _kafka_is_named(texts: Iterable[str]) -> bool:
    """Whether the connector is asked for already, or lies with Spark's own jars."""
    found = find_spec("pyspark")
    own = Path(found.origin).parent / "jars" if found is not None and found.origin else Path()
    return any("spark-sql-kafka" in text for text in texts) or any(own.glob("spark-sql-kafka*.jar"))


def _fetched_connector() -> list[str]:
    """The connector's jars, if scripts/fetch_jars.sh has put them into the environment."""
    return sorted(map(str, Path(sys.prefix, "jars", "connector").glob("*.jar")))
