"""What does it cost to know the speed at every point of a road, from six sensors?

A polynomial of the place is fitted to the speeds of the last hour, or half hour (figures 4.7 and 4.8): the sensor at l
observes x = (1, l, l², l³, l⁴) and y, its speed. Speeds are of detectors in Los Angeles, every five minutes for a week;
which six lie on one road is not known, so that six were taken that slow down together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks._monitor import ERROR, MESSAGES, compare, data_file, draw, legend_beside, models
from cepheid.cli.bench import Result, Steps, Value
from cepheid.monitor import LeastSquaresMonitor
from cepheid.monitor.baselines import trace
from cepheid.monitor.kernels import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLACES = np.array([1.0, 3.0, 7.0, 11.0, 14.0, 18.0])
WINDOWS = {12: "an hour", 6: "half an hour"}
SHOWN = 25.0
"""ε of the curves that are shown."""


def run(quick: bool, progress: Steps) -> Result:
    speeds, note = _speeds()
    speeds = speeds[:600] if quick else speeds
    y = speeds
    x: Floats = np.broadcast_to(PLACES[:, None] ** np.arange(5.0), (*y.shape, 5)).copy()
    thresholds = (25.0, 85.0) if quick else (5.0, 10.0, 15.0, 25.0, 40.0, 60.0, 85.0)
    rows: list[dict[str, Value]] = []
    beta = {window: models(x, y, epsilon=1.0, window=window) for window in WINDOWS}
    size = float(np.nanmean(np.linalg.norm(beta[12][12:], axis=1)))
    for window, epsilon in progress([(w, e) for w in WINDOWS for e in thresholds]):
        found = compare(x, y, window, beta=beta[window], epsilon=epsilon, window=window)
        rows += [{"window": window, "ε": epsilon, "place": None, "speed": None, "true": None, **row} for row in found]
    rows += _curve(x, y, beta[12])
    notes = [f"the mean of ‖β‖ is {size:.0f}", *([note] if note else [])]
    return Result(rows, notes)


def _curve(x: Floats, y: Floats, beta: Floats) -> list[dict[str, Value]]:
    """The road's speeds at the moment, of the morning of the second day, when the model in force is worst."""
    found = trace(LeastSquaresMonitor(6, 5, SHOWN, window=12), x, y, beta)
    morning = slice(288 + 84, 288 + 120)
    at = morning.start + int(np.nanargmax(found.error[morning]))
    monitor = LeastSquaresMonitor(6, 5, SHOWN, window=12)
    for _ in monitor.run((x[: at + 1], y[: at + 1])):
        pass
    assert monitor.model is not None
    places = np.linspace(1, 18, 35)
    powers = places[:, None] ** np.arange(5)
    return [
        {
            "window": 12, "ε": SHOWN, "place": float(place), "speed": float(line @ monitor.model),
            "true": float(line @ beta[at]), "way": f"round {at}", MESSAGES: None, ERROR: float(found.error[at]),
        }
        for place, line in zip(places, powers, strict=True)
    ]  # fmt: skip


def _speeds() -> tuple[Floats, str]:
    """Six sensors' speeds in each interval, of shape (intervals, 6)."""
    table, note = data_file("la_loop_speed.parquet")
    if table is None:
        return _made_up(), note
    sensors, index = np.unique(table["sensor"].to_numpy(), return_inverse=True)
    times, row = np.unique(table["ts"].to_numpy(), return_inverse=True)
    speeds = np.full((len(times), len(sensors)), np.nan)
    speeds[row, index] = table["speed"].to_numpy()
    for at in range(1, len(speeds)):  # what was not reported is as it was
        gone = np.isnan(speeds[at])
        speeds[at, gone] = speeds[at - 1, gone]
    alike = np.corrcoef(speeds.T)
    first = int(np.sort(alike, axis=1)[:, -6:-1].sum(axis=1).argmax())
    return speeds[:, np.argsort(alike[first])[-6:]], note


def _made_up() -> Floats:
    """A week of six sensors that share rush hours and jams."""
    rng = np.random.default_rng(0)
    at = np.arange(2016)
    rush = np.exp(-(((at % 288) - 96) ** 2) / 600) + np.exp(-(((at % 288) - 210) ** 2) / 900)
    shape = rng.uniform(0.3, 1.0, size=6)
    speeds: Floats = 65 - 35 * rush[:, None] * shape + rng.normal(0, 2, size=(2016, 6))
    return speeds


def plot(result: Result, figure: Figure) -> None:
    figure.set_size_inches(13, 5)
    panels = figure.subplots(1, 3)
    for axes, (window, name) in zip(panels, WINDOWS.items(), strict=False):
        draw(axes, Result([row for row in result.rows if row["place"] is None]), "ε", window=window)
        axes.set(title=f"window: {name}", ylabel=MESSAGES)
    curve = [row for row in result.rows if row["place"] is not None]
    panels[2].plot([row["place"] for row in curve], [row["true"] for row in curve], "--", label="present model")
    panels[2].plot([row["place"] for row in curve], [row["speed"] for row in curve], label="model in force")
    panels[2].set(title=f"{curve[0]['way']}, ε = {SHOWN:g}", xlabel="place", ylabel="miles per hour")
    panels[2].legend()
    legend_beside(figure, panels[0])
