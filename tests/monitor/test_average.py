"""The average of sensors: on which side of the threshold it is, and what it costs to know."""

from __future__ import annotations

import datetime as dt
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.monitor import AverageMonitor, Balanced, JsonLines, Readings, ThresholdCrossed, read_readings
from cepheid.workloads import traffic_sensors


@given(
    values=st.lists(
        st.tuples(st.integers(0, 3), st.integers(-20, 20), st.integers(0, 3), st.booleans()), min_size=4, max_size=120
    ),
    threshold=st.integers(-5, 5),
    weighted=st.booleans(),
    cut=st.integers(1, 30),
)
def test_the_side_is_right_after_every_moment(
    values: list[tuple[int, int, int, bool]], threshold: int, weighted: bool, cut: int
) -> None:
    """Integers, so that the average is exactly the threshold now and then."""
    node = np.array([v[0] for v in values])
    value = np.array([float(v[1]) for v in values])
    weight = np.array([float(v[2]) for v in values])
    time = np.cumsum([v[3] for v in values])
    monitor = AverageMonitor(4, threshold, weighted=weighted)
    last: dict[int, tuple[float, float]] = {}
    start = 0
    below = None
    while start < len(values):
        # A moment is never divided between batches.
        stop = start + cut
        while stop < len(values) and time[stop] == time[stop - 1]:
            stop += 1
        part = slice(start, min(stop, len(values)))
        for event in monitor.run(Readings(node[part], value[part], time[part], weight[part])):
            if isinstance(event, ThresholdCrossed):
                assert event.below != (below or False)
                below = event.below
        for place in range(part.start, part.stop):
            last[int(node[place])] = (value[place], weight[place] if weighted else 1.0)
        if len(last) == 4:
            assert monitor.below == (sum(w * (v - threshold) for v, w in last.values()) < 0)
        else:
            assert monitor.below is None
        start = stop


def test_every_message_is_counted() -> None:
    monitor = AverageMonitor(3, 50.0)
    events = list(monitor.run(Readings(np.array([0, 1, 2]), np.array([60.0, 55.0, 80.0]))))
    assert events == []
    assert monitor.sent == {"report": 3, "threshold": 3}
    # 15 to spare each. Sensor 0 is below its own (45) by 5; the first that is asked has enough to spare.
    (event,) = monitor.run(Readings(np.array([0]), np.array([40.0])))
    assert isinstance(event, Balanced)
    assert monitor.sent == {"report": 4, "poll": 1, "answer": 1, "threshold": 5}
    assert monitor.messages == 11


def test_quiet_sensors_cost_nothing() -> None:
    rng = np.random.default_rng(0)
    node = np.tile(np.arange(20), 5000)
    value = 60 + rng.normal(size=len(node))
    monitor = AverageMonitor(20, 50.0)
    list(monitor.run(Readings(node, value)))
    assert monitor.messages == 40
    assert monitor.readings == 100_000


def test_a_jam_is_told_once_and_so_is_its_end() -> None:
    file = io.StringIO()
    monitor = AverageMonitor(2, 50.0, sinks=[JsonLines(file)])
    speeds = [80.0, 70.0, 40.0, 30.0, 20.0, 20.0, 90.0, 85.0]
    list(monitor.run(Readings(np.tile([0, 1], 4), np.array(speeds), np.repeat(np.arange(4), 2))))
    told = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [(row["time"], row["average"], row["below"]) for row in told] == [("1", 35.0, True), ("3", 87.5, False)]


def test_made_up_traffic_is_cheap_to_watch() -> None:
    table = traffic_sensors(30_000, sensors=40, jams=0.0, drift=0.0, interval=60.0)
    table = table.rename_columns(["ts", "sensor", "velocity", "vehicles"])
    monitor = AverageMonitor(40, 30.0)
    list(monitor.run(Readings.table(table)))
    assert monitor.below is False
    assert monitor.messages / monitor.readings < 0.4


@pytest.mark.parametrize("names", ["", "time,sensor,velocity,vehicles\n"])
@pytest.mark.parametrize("zone", ["", "Z"])
def test_the_papers_input(tmp_path: Path, names: str, zone: str) -> None:
    file = tmp_path / "speeds.csv"
    file.write_text(
        f"{names}2014-11-01T08:00:00{zone},S1,87.5,12\n2014-11-01T08:01:00{zone},S2,63,20\n", encoding="utf-8"
    )
    table = read_readings(file)
    assert table.column_names == ["ts", "sensor", "velocity", "vehicles"]
    assert table["ts"][1].as_py().replace(tzinfo=None) == dt.datetime(2014, 11, 1, 8, 1)
    readings = Readings.table(table)
    assert readings.node.tolist() == [0, 1]
    assert readings.value.tolist() == [87.5, 63.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2014-11-01T08:00:00,S1,fast,12\n", "expected lines of time, sensor, velocity, number of vehicles"),
        ("2014-11-01T08:00:00,S1,87.5,\n", "line 1: there is no vehicles"),
        ("2014-11-01 at noon,S1,87.5,3\n", "times are as in 2014-11-01T08:00:00"),
    ],
)
def test_input_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "speeds.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        read_readings(file)
