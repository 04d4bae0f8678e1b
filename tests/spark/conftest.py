"""One small local Spark session for all tests in this directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
WITH_SPARK = [
    ROOT / place for place in ("tests/spark", "src/cepheid/spark", "src/cepheid/job", "docs/job.md", "docs/spark.md")
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Keep these tests in one xdist worker: a second JVM costs more than it saves.
    for item in items:
        if any(place == item.path or place in item.path.parents for place in WITH_SPARK):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")
    from cepheid.spark.session import JavaError
    from cepheid.spark.session import session as local_session

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
