"""Traffic sensors."""

from __future__ import annotations

import datetime

import numpy as np

from cepheid.workloads import traffic_sensors

DAY = datetime.datetime(2024, 5, 13)


def test_rates_are_highly_skewed() -> None:
    _, counts = np.unique(np.array(traffic_sensors(50_000)["type"].to_pylist()), return_counts=True)
    assert len(counts) == 100
    assert counts.max() > 10 * counts.min()


def test_rush_hours_are_busy_and_slow() -> None:
    table = traffic_sensors(40_000, sensors=50, start=DAY, drift=0)
    hours = table["ts"].to_numpy().astype("datetime64[h]").astype(int) % 24
    counts = np.bincount(hours, minlength=24)
    assert counts[7] > 3 * counts[2]
    speed, vehicles = table["speed"].to_numpy(), table["vehicles"].to_numpy()
    assert speed[hours == 7].mean() < speed[hours == 22].mean()
    assert vehicles[hours == 7].mean() > 2 * vehicles[hours == 22].mean()
    assert vehicles.min() >= 1
    assert speed.min() >= 2


def test_a_weekend_is_quieter() -> None:
    table = traffic_sensors(60_000, sensors=50, start=DAY)
    days = (table["ts"].to_numpy().astype("datetime64[D]") - np.datetime64(DAY, "D")).astype(int)
    counts = np.bincount(days)
    assert counts[5] < counts[4]


def test_drift_changes_few_sensors_extremely() -> None:
    def changes(drift: float) -> int:
        table = traffic_sensors(100_000, seed=4, sensors=40, drift=drift, jams=0, start=DAY)
        days = (table["ts"].to_numpy().astype("datetime64[D]") - np.datetime64(DAY, "D")).astype(int)
        types, vehicles = np.array(table["type"].to_pylist()), table["vehicles"].to_numpy()
        found = 0
        for name in np.unique(types):
            mine = types == name
            daily = np.bincount(days[mine], vehicles[mine], minlength=days[-1] + 1)[:-1]  # the last day is not whole
            found += daily.max() > 6 * daily[daily > 0].min()
        return found

    assert changes(0.0) <= 2 < changes(0.3) < 20


def test_jams_are_rare_and_slow() -> None:
    def crawling(jams: float) -> float:
        return float((traffic_sensors(50_000, sensors=50, jams=jams)["speed"].to_numpy() < 12).mean())

    assert crawling(0.0) < 0.02
    assert crawling(0.0) + 0.01 < crawling(5.0) < 0.3
