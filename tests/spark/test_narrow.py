"""Columns that are sent in fewer bytes come back as they were."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.spark.narrow import narrowed, widened

INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(INTEGERS | st.none(), max_size=5), st.integers(-(2**62), 2**62), st.lists(st.integers(0, 2**32)))
def test_any_integers_come_back(wide: list[int | None], base: int, above: list[int]) -> None:
    close = [base + each for each in above]
    for values in (wide, close):
        table = pa.table({"n": pa.array(values, pa.int64()), "t": pa.array(values, pa.timestamp("us", "UTC"))})
        assert widened(narrowed(table), table.schema).equals(table)


def test_what_is_close_is_narrow_and_the_rest_is_left_alone() -> None:
    now = dt.datetime(2024, 1, 1)
    table = pa.table(
        {
            "ts": pa.array([now, now + dt.timedelta(hours=1)]),
            "far": [0, 2**32],
            "near": [-5, 2**32 - 6],
            "missing": pa.array([1, None], pa.int64()),
            "x": [0.5, 1.5],
            "small": pa.array([1, 2], pa.int32()),
        }
    )
    types = [str(field.type) for field in narrowed(table).schema]
    assert types == ["uint32", "int64", "uint32", "int64", "double", "int32"]
    assert widened(narrowed(table), table.schema).equals(table)


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows: int) -> None:
    table = pa.table({"n": pa.array([7][:rows], pa.int64())})
    assert widened(narrowed(table), table.schema).equals(table)
