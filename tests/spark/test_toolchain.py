"""The Java, PySpark and pyarrow that set-up installed work together."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from cepheid.spark import session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def test_rows_come_back_unchanged_from_python_workers(spark: SparkSession) -> None:
    def identity(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    rows = [(1, "one"), (2, None), (3, "drei ≠ zwei")]
    frame = spark.createDataFrame(rows, "id long, name string")
    back = frame.mapInArrow(identity, frame.schema).orderBy("id").collect()
    assert [tuple(row) for row in back] == rows


def test_a_session_that_runs_is_used_as_it_is(spark: SparkSession) -> None:
    before = {name: spark.conf.get(name) for name in ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions")}
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try:
        again = session(spark__sql__ansi__enabled=spark.conf.get("spark.sql.ansi.enabled"))
        assert again.conf.get("spark.sql.session.timeZone") == "Europe/Berlin"
        assert again.conf.get("spark.sql.shuffle.partitions") == "7"
        assert session(spark__sql__shuffle__partitions=3).conf.get("spark.sql.shuffle.partitions") == "3"
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def test_the_settings_of_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A master elsewhere keeps what its cluster is set to: the Python of the workers, addresses, memory, the UI."""
    for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(name, raising=False)
    dotted = "spark.hadoop.fs.s3a.bucket.my__bucket.endpoint"
    local, said = opened(monkeypatch, spark__master="local[3]", **{dotted: "x"})
    assert local[dotted] == "x"
    assert {"PYSPARK_PYTHON", "SPARK_LOCAL_IP"} <= os.environ.keys()
    assert (local["spark.sql.shuffle.partitions"], said) == ("3", {})
    assert local["spark.driver.memory"] == "6144m"

    for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(name)
    cluster, said = opened(monkeypatch, spark__master="spark://head:7077")
    assert not {"PYSPARK_PYTHON", "SPARK_LOCAL_IP"} & os.environ.keys()
    assert not {"spark.sql.shuffle.partitions", "spark.driver.memory", "spark.ui.enabled"} & cluster.keys()
    assert said == {"spark.sql.shuffle.partitions": 12}  # as many as tasks run there
    _, said = opened(monkeypatch, spark__master="yarn", spark__sql__shuffle__partitions=48)
    assert said == {}
    with pytest.raises(ValueError, match=r"cores=2 says how many cores .* and so does the master, 'yarn'"):
        session(cores=2, spark__master="yarn")


def opened(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """What Spark would be told before it starts, and after that."""
    told: dict[str, str] = {}
    said: dict[str, Any] = {}
    builder = SimpleNamespace()
    builder.master = builder.appName = lambda name: builder

    def config(name: str, value: str) -> SimpleNamespace:
        told[name] = value
        return builder

    builder.config = config
    context = SimpleNamespace(getConf=lambda: SimpleNamespace(contains=told.__contains__), defaultParallelism=12)
    builder.getOrCreate = lambda: SimpleNamespace(conf=SimpleNamespace(set=said.__setitem__), sparkContext=context)
    module = sys.modules[session.__module__]  # its name in the package is that of the function
    with monkeypatch.context() as patched:
        patched.setattr(module, "SparkSession", SimpleNamespace(builder=builder, getActiveSession=lambda: None))
        patched.setattr(module, "SparkContext", SimpleNamespace(_gateway=None))
        patched.setattr(module, "driver_memory", lambda: "6144m")
        session(**settings)
    return told, said


def test_the_memory_of_a_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from cepheid.spark import memory

    for name in ("SPARK_DRIVER_MEMORY", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setattr("os.sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 6 * 2**20)  # 24 GB
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_CONTAINER", limit)
    assert memory.driver_memory() == "6144m"
    limit.write_text("max\n")
    assert memory.driver_memory() == "6144m"
    limit.write_text(f"{8 * 2**30}\n")
    assert memory.driver_memory() == "2048m"
    limit.write_text(f"{2**30}\n")
    assert memory.driver_memory() == "1024m"
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 3g\n")
    assert memory.driver_memory() is None  # that is said there
    (tmp_path / "spark-defaults.conf").unlink()
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "3g")
    assert memory.driver_memory() is None
