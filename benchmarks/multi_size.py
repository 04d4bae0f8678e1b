"""How much faster than the trivial plan is a shared one, for how many patterns?

Simulated annealing and tabu search with each neighbourhood, and the other ways to share, on stocks and on traffic
(figures 10 and 12 a, e of the paper that ``_multi.py`` names).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks._multi import STOCKS, TRAFFIC, Workload, draw, methods, sweep
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = (
    "apart", "RE", "SH", "SPASS", "MOTTO", "SA-EDGE-PREFIX", "SA-EDGE", "TS-EDGE", "SA-VERTEX4", "SA-VERTEX8",
)  # fmt: skip


def run(quick: bool, progress: Steps) -> Result:
    sizes, seconds, events = ((10, 50), 0.5, 1_000) if quick else ((25, 100, 500), 5.0, 4_000)
    ways = methods(NAMES, seconds)
    cases = [
        ({"data": data, "patterns": count}, Workload(data, patterns=count, events=events), ways)
        for data in (STOCKS, TRAFFIC)
        for count in sizes
    ]
    return sweep(cases, progress)


def plot(result: Result, figure: Figure) -> None:
    for axes, data in zip(figure.subplots(1, 2), (STOCKS, TRAFFIC), strict=True):
        draw(axes, result, "patterns", data=data)
        axes.set(title=data, ylabel="throughput, times the trivial plan")
