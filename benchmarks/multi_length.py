"""How much faster than the trivial plan is a shared one, for patterns of which size?

Figures 11 a and 12 b, f of the paper that ``_multi.py`` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks._multi import STOCKS, TRAFFIC, Workload, draw, legend, methods, sweep
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("apart", "RE", "SH", "SPASS", "MOTTO", "SA-EDGE", "TS-EDGE")


def run(quick: bool, progress: Steps) -> Result:
    sizes, count, seconds, events = ((3, 4), 20, 0.5, 4_000) if quick else ((3, 4, 5, 6), 100, 2.0, 20_000)
    ways = methods(NAMES, seconds)
    cases = [
        ({"data": data, "size": size}, Workload(data, patterns=count, size=size, events=events), ways)
        for data in (STOCKS, TRAFFIC)
        for size in sizes
    ]
    return sweep(cases, progress)


def plot(result: Result, figure: Figure) -> None:
    panels = figure.subplots(1, 2)
    for axes, data in zip(panels, (STOCKS, TRAFFIC), strict=True):
        draw(axes, result, "size", data=data)
        axes.set(title=data, xlabel="events in a pattern", ylabel="throughput, times the trivial plan")
    legend(figure, panels[0])
