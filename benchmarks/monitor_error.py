"""How far is the model in force from the present one, and when does it change?

The paper's drift set with ε = 1.35 and three epochs (figure 4.4): error and new models over time, and PER(100), which
sends as often whether something changes or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks._monitor import WAYS
from cepheid.cli.bench import Result, Steps, Value
from cepheid.monitor import LeastSquaresMonitor
from cepheid.monitor.baselines import periodic_error, trace
from cepheid.monitor.streams import drift_set

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON = 1.35
PERIOD = 100
EVERY = 50
"""Rounds between the rows of the table; an error is the largest of them."""


def run(quick: bool, progress: Steps) -> Result:
    epoch, window = (900, 300) if quick else (3900, 1300)
    x, y = drift_set(epochs=3, epoch=epoch)
    rows: list[dict[str, Value]] = []
    notes = []
    beta = None
    ways = [way for way in WAYS if way.resolution != "balance"]
    for way in progress(ways, lambda way: way.name):
        monitor = LeastSquaresMonitor(10, 10, EPSILON, window=window, zone=way.zone, resolution=way.resolution)  # type: ignore[arg-type]
        found = trace(monitor, x, y, beta)
        beta = found.beta
        new = np.bincount(found.syncs // EVERY, minlength=len(y) // EVERY)
        rows += _rows(way.name, found.error, beta, window, new)
        notes.append(
            f"{way.name}: {found.normalised(epoch):.4f} messages per node and round after the first epoch, largest "
            f"error {found.largest_error(window):.2f}, {len(found.syncs)} models"
        )
    assert beta is not None
    error = periodic_error(beta[window:], PERIOD)
    rows += _rows(f"PER({PERIOD})", np.append(np.full(window, np.nan), error), beta, window, None)
    notes.append(f"PER({PERIOD}): {1 / PERIOD:.4f} messages per node and round, largest error {error.max():.2f}")
    return Result(rows, notes)


def _rows(way: str, error: np.ndarray, beta: np.ndarray, window: int, new: np.ndarray | None) -> list[dict[str, Value]]:
    size = np.linalg.norm(beta, axis=1)
    found: list[dict[str, Value]] = []
    for at in range(window, len(error) - EVERY + 1, EVERY):
        models = 0 if new is None else int(new[at // EVERY])
        largest = float(error[at : at + EVERY].max())
        found.append({"way": way, "round": at, "error": largest, "new models": models, "‖β‖": float(size[at])})
    return found


def plot(result: Result, figure: Figure) -> None:
    figure.set_size_inches(9, 8)
    ways = list(dict.fromkeys(str(row["way"]) for row in result.rows))
    panels = figure.subplots(len(ways), 1, sharex=True, sharey=True)
    for axes, way in zip(panels, ways, strict=True):
        rows = result.where(way=way)
        at = [row["round"] for row in rows]
        axes.plot(at, [row["error"] for row in rows], lw=1, label="‖β − β₀‖")
        axes.axhline(EPSILON, color="0.3", ls="--", lw=1, label="ε")
        syncs = [row["round"] for row in rows if row["new models"]]
        axes.vlines(syncs, -0.35, -0.1, color="C1", lw=0.8, label="new model")
        axes.plot(at, [float(row["‖β‖"] or 0) / 4 for row in rows], color="C3", lw=0.8, alpha=0.6, label="‖β‖ / 4")
        axes.set_title(way, loc="left", fontsize=9)
    panels[0].legend(ncols=4, fontsize=8, loc="upper right")
    panels[-1].set_xlabel("round")
