"""What does it cost to keep a model of gas sensors whose errors depend on each other?

Three nodes with three sensors each; a node predicts its third from the other two and a constant, by generalised least
squares with AR(1) errors (figure 4.9): messages against ε with φ = 0.95, and against φ with ε = 0.1. φ = 0 is ordinary
least squares. Fifteen runs of the array one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks._monitor import MESSAGES, compare, data_file, draw, legend_beside, models
from cepheid.cli.bench import Result, Steps, Value
from cepheid.monitor.kernels import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS, WINDOW, PHI, EPSILON = 7500, 250, 0.95, 0.1
RIDGE = 1e-3
"""The sensors report hundredths, and nothing changes for a while: then the window does not determine a model."""


def run(quick: bool, progress: Steps) -> Result:
    x, y, note = _observations(1500 if quick else ROUNDS)
    thresholds = (0.1, 0.5) if quick else (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    phis = (0.0, 0.95) if quick else (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)
    rows: list[dict[str, Value]] = []
    sizes: dict[float, float] = {}
    for phi, epsilon in progress([(PHI, e) for e in thresholds] + [(p, EPSILON) for p in phis if p != PHI]):
        options: dict[str, Any] = {"epsilon": epsilon, "window": WINDOW, "ridge": RIDGE, "ar1": phi or None}
        beta = models(x, y, **options)
        sizes[phi] = float(np.linalg.norm(beta[WINDOW:], axis=1).mean())
        found = compare(x, y, WINDOW, beta=beta, **options)
        rows += [{"φ": phi, "ε": epsilon, **row} for row in found]
    return Result(rows, [f"the mean of ‖β‖ with φ = {PHI} is {sizes[PHI]:.2f}", *([note] if note else [])])


def _observations(rounds: int) -> tuple[Floats, Floats, str]:
    table, note = data_file("gas_array.parquet")
    if table is None:
        rng = np.random.default_rng(0)
        level = np.cumsum(rng.normal(0, 0.01, size=(rounds, 3)), axis=0)
        values = np.round(
            0.4 + np.repeat(level, 3, axis=1) + np.cumsum(rng.normal(0, 0.003, size=(rounds, 9)), axis=0), 2
        )
    else:
        values = np.stack([table[f"s{number}"].to_numpy()[:rounds] for number in range(1, 10)], axis=1)
    nodes = values.reshape(rounds, 3, 3)
    x = np.concatenate([nodes[:, :, :2], np.ones((rounds, 3, 1))], axis=2)
    return x, nodes[:, :, 2].copy(), note


def plot(result: Result, figure: Figure) -> None:
    figure.set_size_inches(11, 5)
    left, right = figure.subplots(1, 2, sharey=True)
    draw(left, result, "ε", φ=PHI)
    left.set(xscale="log", title=f"φ = {PHI}", ylabel=MESSAGES)
    draw(right, Result(sorted(result.where(ε=EPSILON), key=lambda row: float(row["φ"] or 0))), "φ")
    right.set(title=f"ε = {EPSILON}")
    legend_beside(figure, left)
