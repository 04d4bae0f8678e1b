"""These run Spark for minutes, in processes of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LONG = pytest.mark.skip(reason="runs Spark jobs for minutes: set CEPHEID_SPARK_TESTS=all")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
            if os.environ.get("CEPHEID_SPARK_TESTS") != "all":
                item.add_marker(LONG)
