"""Monitored quantities are events, and patterns can use them together with others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import cepheid
from cepheid.monitor import AverageMonitor, LeastSquaresMonitor, Observations, Readings, event_table

START = np.datetime64("2024-05-13T06:00:00", "us")
MINUTE = np.timedelta64(1, "m")


def test_a_pattern_over_both_monitors_and_other_events() -> None:
    """A road is closed; the model of speeds changes, and then the average speed falls."""
    rng = np.random.default_rng(0)
    rounds, nodes = 600, 4
    times = np.repeat(START + MINUTE * np.arange(rounds), nodes)
    x = np.stack([np.ones((rounds, nodes)), rng.uniform(size=(rounds, nodes))], axis=2)
    slope = np.where(np.arange(rounds) < 300, -10.0, -60.0)[:, None]
    y = 80 + slope * x[:, :, 1] + rng.normal(size=(rounds, nodes))
    node = np.tile(np.arange(nodes), rounds)

    models = LeastSquaresMonitor(nodes, 2, 8.0, window=60)
    drifts = list(models.run(Observations(node, x.reshape(-1, 2), y.ravel(), times)))
    average = AverageMonitor(nodes, 50.0)
    crossings = list(average.run(Readings(node, y.ravel(), times)))

    watched = event_table([*drifts, *crossings]).sort_by("ts")
    closed = pa.table({"ts": pa.array([START + 295 * MINUTE]), "type": ["RoadClosed"], "road": ["bridge"]})
    events = pa.concat_tables([watched, closed], promote_options="default").sort_by("ts")
    found = cepheid.match(
        """
        PATTERN SEQ(RoadClosed r, ModelDrift d, ThresholdCrossed t)
        WHERE d.change > 3 AND t.below AND t.average < 50
        WITHIN 30 minutes
        RETURN r.road AS road, d.change AS change, t.average AS average
        """,
        events,
    )
    assert found.num_rows >= 1
    assert set(found["road"].to_pylist()) == {"bridge"}
    assert min(found["change"].to_pylist()) > 3


def test_a_table_of_no_events_has_its_columns() -> None:
    assert event_table([]).column_names == ["ts", "type"]
