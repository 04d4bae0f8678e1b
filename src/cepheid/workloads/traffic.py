"""Traffic sensors: road points that report speed and vehicles every few minutes, through rush hours and jams."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.workloads.arguments import distinct_names, local_start, whole, within
from cepheid.workloads.columns import SECOND, moments, words
from cepheid.workloads.rates import Floats

HOURS = (
    np.array([6, 5, 5, 8, 25, 70, 150, 220, 170, 120, 120, 130, 140, 140, 170, 220, 210, 150, 90, 60, 50, 40, 25, 12])
    / 100
)
"""Vehicles in each hour of a working day, relative to the day's mean."""
WEEKEND = 0.6
"""Vehicles on a Saturday or Sunday, relative to a working day."""


def traffic_sensors(
    count: int,
    *,
    seed: int = 0,
    sensors: int | Sequence[str] = 100,
    skew: float = 1.3,
    drift: float = 0.05,
    jams: float = 0.2,
    interval: float = 300.0,
    start: datetime.datetime = datetime.datetime(2024, 5, 13, 6, 0),
) -> pa.Table:
    """A stream of traffic reports: ts, type (the road point), speed in km/h, vehicles in the interval.

    ``sensors``: how many (``P1``, ``P2``, …), or their names. Each reports once in every ``interval`` seconds, at a
    moment of its own, if any vehicle has passed: so a quiet road is a rare type, and at night there are few events.
    Speed falls a little as vehicles become more. ``skew`` is how much the roads differ in traffic (the standard
    deviation of its logarithm).

    ``drift``: the share of sensors whose traffic changes at some point of the stream, to a tenth or tenfold, as when a
    road is closed and another takes the vehicles. ``jams``: how many a sensor has in a day; in a jam, of half an
    hour or so, vehicles crawl. No two reports have the same time.

    >>> from cepheid.workloads import traffic_sensors
    >>> reports = traffic_sensors(1000, sensors=["bridge", "tunnel", "ring"])
    >>> reports.column_names
    ['ts', 'type', 'speed', 'vehicles']
    >>> sorted(reports["type"].unique().to_pylist())
    ['bridge', 'ring', 'tunnel']
    """
    whole("count", count)
    if isinstance(sensors, int):
        names = tuple(f"P{number}" for number in range(1, whole("sensors", sensors) + 1))
    else:
        names = distinct_names("sensors", sensors)
    within("skew", skew, 0, 5)
    within("drift", drift, 0, 1)
    within("jams", jams, 0)
    within("interval", interval, 60, 3600)
    local_start(start)
    ticks = 0
    while True:
        rng = np.random.default_rng(seed)
        level = _levels(rng, len(names), skew) * interval / 300
        ticks = max(ticks, _ticks(count, level, interval, start))
        vehicles, speed = _observe(rng, level, _busy(np.arange(ticks), interval, start), drift, jams, interval)
        if np.count_nonzero(vehicles) >= count:
            break
        ticks += 10 + ticks // 10
    tick, sensor = np.nonzero(vehicles)
    # Each sensor has a moment of its own within the interval, so the order of the sensors is one of time too.
    moment = (np.arange(len(names)) + 0.5) * (interval * SECOND / len(names))
    times = np.floor(tick[:count] * (interval * SECOND) + moment[sensor[:count]]).astype(np.int64)
    names = tuple(np.array(names, object)[rng.permutation(len(names))])
    return pa.table(
        {
            "ts": moments(start, times),
            "type": words(names, sensor[:count]),
            "speed": pa.array(np.round(speed[tick[:count], sensor[:count]], 1)),
            "vehicles": pa.array(vehicles[tick[:count], sensor[:count]]),
        }
    )


def _levels(rng: np.random.Generator, sensors: int, skew: float) -> Floats:
    """Vehicles that pass each sensor in five minutes of an average hour: evenly spread quantiles of a lognormal
    distribution, so that the rates of three sensors are as skewed as those of many.
    """
    normal = NormalDist()
    quantiles = np.array([normal.inv_cdf((number + 0.5) / sensors) for number in range(sensors)])
    levels: Floats = rng.permutation(2.0 * np.exp(skew * quantiles))
    return levels


def _busy(ticks: npt.NDArray[np.int64], interval: float, start: datetime.datetime) -> Floats:
    """How busy the roads are in each interval, relative to a working day's mean."""
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    hours = ((start - midnight).total_seconds() + ticks * interval) / 3600
    weekend = (start.weekday() + hours // 24) % 7 >= 5
    busy: Floats = np.interp(hours % 24, np.arange(25), np.append(HOURS, HOURS[0])) * np.where(weekend, WEEKEND, 1.0)
    return busy


def _ticks(count: int, level: Floats, interval: float, start: datetime.datetime) -> int:
    """In how many intervals so many reports are expected."""
    grid = np.linspace(0, HOURS.max(), 50)
    reports = (1 - np.exp(-grid[:, None] * level)).sum(axis=1)
    ticks = 1 + count // len(level)
    while True:
        expected = np.cumsum(np.interp(_busy(np.arange(ticks), interval, start), grid, reports))
        if expected[-1] >= count:
            return 1 + int(np.searchsorted(expected, count))
        ticks *= 2


def _observe(
    rng: np.random.Generator, level: Floats, busy: Floats, drift: float, jams: float, interval: float
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Vehicles and speed, a row for each interval and a column for each sensor."""
    shape = (len(busy), len(level))
    load = np.repeat(busy[:, None], len(level), axis=1)
    jammed = _jams(rng, shape, jams * interval / 86_400, max(1, round(1800 / interval)))
    vehicles = load * level
    for sensor in np.flatnonzero(rng.random(len(level)) < drift):
        since = rng.integers(len(busy))
        vehicles[since:, sensor] *= rng.choice([0.1, 10.0])
    vehicles[jammed] *= 1.5
    # Roads differ in their limits, and slow down when they are busy.
    speed = np.clip(rng.normal(50, 17, len(level)), 20, 110) * (1 - 0.12 * load)
    speed[jammed] *= 0.2
    speed += rng.normal(0, 5, shape)
    return rng.poisson(vehicles), np.clip(speed, 2, 150)


def _jams(rng: np.random.Generator, shape: tuple[int, int], chance: float, length: int) -> npt.NDArray[np.bool_]:
    """In which intervals each sensor is in a jam."""
    row, sensor = np.nonzero(rng.random(shape) < chance)
    turns = np.zeros((shape[0] + 1, shape[1]), np.int32)
    np.add.at(turns, (row, sensor), 1)
    np.add.at(turns, (np.minimum(row + rng.integers(1, 2 * length + 1, len(row)), shape[0]), sensor), -1)
    jammed: npt.NDArray[np.bool_] = np.cumsum(turns, axis=0)[:-1] > 0
    return jammed
