"""The same Spark session as for the tests of Spark itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.conftest import spark

__all__ = ["spark"]

HERE = Path(__file__).parent
NEEDS_SPARK = ("test_run", "test_run_streams", "test_command")

pytest.importorskip("pydantic", reason="needs pydantic: pip install '.[spark]'")
pytest.importorskip("yaml", reason="needs PyYAML: pip install '.[spark]'")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.path.stem in NEEDS_SPARK:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture
def patterns(tmp_path: Path) -> Path:
    """A file with two patterns, one of which gives out whole events."""
    path = tmp_path / "rules.cep"
    path.write_text(
        "NAME up PATTERN SEQ(A a, B b) WHERE a.x < b.x PARTITION BY k WITHIN 10 seconds RETURN a.x AS low, b.x AS high;\n"
        "NAME pair PATTERN SEQ(B b, C c) PARTITION BY k WITHIN 10 seconds RETURN b AS first, c.x AS last\n",
        encoding="utf-8",
    )
    return path
