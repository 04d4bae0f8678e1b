"""How many messages does it take to keep the model within ε?

The paper's fixed and drift sets (figure 4.5): 10 nodes, 10 dimensions, σ = 10, window 1300.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks._monitor import MESSAGES, WAYS, compare, draw, legend_beside, models
from cepheid.cli.bench import Result, Steps, Value
from cepheid.monitor.streams import drift_set, fixed_set

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETS = ("fixed", "drift")


def run(quick: bool, progress: Steps) -> Result:
    window, epoch = (300, 900) if quick else (1300, 3900)
    thresholds = (0.5, 1.35) if quick else (0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.35, 2.0, 3.0)
    rows: list[dict[str, Value]] = []
    data = {"fixed": fixed_set(3 * epoch if quick else 16_900), "drift": drift_set(3 if quick else 5, epoch)}
    beta = {name: models(x, y, epsilon=1.0, window=window) for name, (x, y) in data.items()}
    for name, epsilon in progress([(name, e) for name in SETS for e in thresholds], lambda c: f"{c[0]} {c[1]:g}"):
        skipped = window if name == "fixed" else epoch
        found = compare(*data[name], skipped, beta=beta[name], epsilon=epsilon, window=window)
        rows += [{"set": name, "ε": epsilon, **row} for row in found]
    return Result(rows, [_against_paper(rows, way.name) for way in WAYS[1:]])


def _against_paper(rows: list[dict[str, Value]], way: str) -> str:
    """How much of the paper's messages another way sends at ε = 0.5."""
    sent = {(row["set"], row["way"]): float(row[MESSAGES] or 0) for row in rows if row["ε"] == 0.5}
    ratios = [f"{name} {sent[name, way] / sent[name, WAYS[0].name]:.2f}" for name in SETS]
    return f"{way}: messages at ε = 0.5 compared with the paper's zone: {', '.join(ratios)}"


def plot(result: Result, figure: Figure) -> None:
    figure.set_size_inches(11, 5)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name in zip(panels, SETS, strict=True):
        draw(axes, result, "ε", set=name)
        axes.set(xscale="log", title=f"{name} set")
    panels[0].set_ylabel(MESSAGES)
    legend_beside(figure, panels[0])
