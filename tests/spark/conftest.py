"""One small local Spark session for all tests in this directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
ALWAYS = ("test_missing", "test_shard", "test_toolchain")
WITH_SPARK = os.environ.get("CEPHEID_SPARK_TESTS") == "all"
LONG = pytest.mark.skip(reason="runs Spark jobs for minutes: set CEPHEID_SPARK_TESTS=all")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Keep these tests in one xdist worker: a second JVM costs more than it saves.
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
            if not WITH_SPARK and item.path.stem not in ALWAYS:
                item.add_marker(LONG)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install 'cepheid[spark]'")
    from cepheid.spark.session import JavaError, local_session

    scratch = tmp_path_factory.mktemp("spark")
    try:
        session = local_session(
            "cepheid-tests",
            cores=1,
            spark__driver__memory="768m",
            spark__local__dir=scratch / "local",
            spark__sql__shuffle__partitions=1,
            spark__sql__warehouse__dir=scratch / "warehouse",
        )
    except JavaError as error:
        pytest.skip(str(error))
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
