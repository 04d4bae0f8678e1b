"""One small local Spark session for all tests in this directory."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Keep these tests in one xdist worker: a second JVM costs more than it saves.
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    sql = pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install cepheid[spark]")
    scratch = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        own_java = Path(sys.prefix, "java")  # made by scripts/setup.sh if the machine has no Java
        if own_java.exists():
            patch.setenv("JAVA_HOME", str(own_java))
        java_home = os.environ.get("JAVA_HOME")
        if not shutil.which("java", path=java_home and f"{java_home}/bin"):
            pytest.skip("Spark needs Java 17 or newer: none in JAVA_HOME or on PATH")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")  # works where the host name does not resolve
        session = (
            sql.SparkSession.builder.master("local[1]")
            .appName("cepheid-tests")
            .config("spark.driver.memory", "768m")
            .config("spark.local.dir", str(scratch / "local"))
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
