"""What holds for every workload."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid import workloads

WORKLOADS: list[Callable[..., pa.Table]] = [getattr(workloads, name) for name in workloads.__all__]
START = datetime.datetime(2025, 1, 1, 12, 0)
every_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=workloads.__all__)


@every_workload
def test_the_same_seed_gives_the_same_table_and_another_seed_another(workload: Callable[..., pa.Table]) -> None:
    assert workload(3000, seed=5).equals(workload(3000, seed=5))
    assert not workload(3000, seed=5).equals(workload(3000, seed=6))


@every_workload
@pytest.mark.parametrize("count", [1, 2, 7, 24, 1000, 20_011])
def test_there_are_as_many_events_as_asked_for_each_at_a_time_of_its_own(
    workload: Callable[..., pa.Table], count: int
) -> None:
    table = workload(count, start=START)
    assert table.num_rows == count
    assert table.schema.field("ts").type == pa.timestamp("us")
    assert table.schema.field("type").type == pa.string()
    times = table["ts"].to_numpy()
    assert times[0] >= np.datetime64(START)
    assert (np.diff(times) > np.timedelta64(0)).all()
    assert table["type"].null_count == 0
    for column in table.columns:
        if pa.types.is_floating(column.type):
            assert np.isfinite(column.drop_null().to_numpy()).all()


@every_workload
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count is 1 or more, got 0"),
        ({"count": 2.5}, "count is a whole number, got 2.5"),
        ({"count": 10, "start": datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc)}, "start has no time zone"),
    ],
)
def test_senseless_arguments_are_refused(
    workload: Callable[..., pa.Table], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        workload(**arguments)


@pytest.mark.parametrize(
    ("workload", "arguments", "message"),
    [
        (workloads.stock_quotes, {"history": -1}, "history is 0 or more, got -1"),
        (workloads.stock_quotes, {"correlation": 1.5}, "correlation is a number, from 0 to 1, got 1.5"),
        (workloads.stock_quotes, {"drift": float("nan")}, "drift is a number, 0 or more, got nan"),
        (workloads.stock_quotes, {"per_second": 0}, "per_second is a number above 0, got 0"),
        (workloads.stock_quotes, {"symbols": "AAPL"}, r"symbols is a list of names, .* write \['AAPL'\]"),
        (workloads.stock_quotes, {"symbols": []}, "symbols is empty"),
        (workloads.stock_quotes, {"symbols": ["A", "B", "A"]}, "has 'A' several times"),
        (
            workloads.stock_quotes,
            {"symbols": ["A", "B"], "rates": {"A": 1, "C": 2}},
            r"unknown: \['C'\], missing: \['B'\]",
        ),
        (
            workloads.stock_quotes,
            {"symbols": ["A", "B"], "rates": [1, 2, 3]},
            "expected 2 rates, one for each type, got 3",
        ),
        (workloads.stock_quotes, {"rates": {"A": 0, "B": 0}}, "rates are 0 or more, and not all 0"),
        (workloads.stock_quotes, {"rates": {"A": 1, "B": -1}}, "rates are 0 or more"),
        (workloads.stock_quotes, {"rates": [(1, {"A": 1}), {"A": 1}]}, r"a piece of rates is a pair \(length, rates\)"),
        (
            workloads.stock_quotes,
            {"rates": [(0, {"A": 1})]},
            "the length of a piece of rates is a number above 0, got 0",
        ),
        (workloads.traffic_sensors, {"sensors": 0}, "sensors is 1 or more, got 0"),
        (workloads.traffic_sensors, {"sensors": ["x", "x"]}, "has 'x' several times"),
        (workloads.traffic_sensors, {"drift": 2}, "drift is a number, from 0 to 1, got 2"),
        (workloads.traffic_sensors, {"interval": 1}, "interval is a number, from 60 to 3600, got 1"),
        (workloads.soccer_positions, {"players": 2}, "players is from 4 to 50, got 2"),
        (workloads.soccer_positions, {"hertz": 0}, "hertz is from 1 to 1000, got 0"),
        (workloads.card_payments, {"accounts": 0}, "accounts is 1 or more, got 0"),
        (workloads.card_payments, {"fraud": -0.1}, "fraud is a number, from 0 to 1, got -0.1"),
        (workloads.card_payments, {"daily": 0}, "daily is a number above 0, got 0"),
    ],
)
def test_senseless_options_are_refused(
    workload: Callable[..., pa.Table], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        workload(10, **arguments)
