"""How much faster than the trivial plan is a shared one, for which window?

Windows of time and windows of events (figures 11 c, d and 12 c, d, g, h of the paper that ``_multi.py`` names).
Patterns with windows of events share nothing yet: what they gain they gain by reordering.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks._multi import STOCKS, TRAFFIC, Workload, draw, legend, methods, sweep
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"minutes": ("apart", "RE", "SH", "SA-EDGE", "TS-EDGE"), "events": ("apart", "RE", "SA-EDGE")}


def run(quick: bool, progress: Steps) -> Result:
    count, seconds, events = (20, 0.5, 4_000) if quick else (100, 2.0, 20_000)
    lengths = {"minutes": (5, 10) if quick else (5, 10, 20), "events": (50, 100) if quick else (75, 300)}
    cases = [
        (
            {"data": data, "kind": kind, "window": length},
            Workload(data, patterns=count, window=f"{length} {kind}", events=events),
            methods(names, seconds),
        )
        for data in (STOCKS, TRAFFIC)
        for kind, names in NAMES.items()
        for length in lengths[kind]
    ]
    return sweep(cases, progress)


def plot(result: Result, figure: Figure) -> None:
    figure.set_size_inches(9, 7.5)
    panels = figure.subplots(2, 2)
    for row, data in zip(panels, (STOCKS, TRAFFIC), strict=True):
        for axes, kind in zip(row, NAMES, strict=True):
            draw(axes, result, "window", data=data, kind=kind)
            axes.set(title=data, ylabel="times the trivial plan", xlabel=f"window, {kind}")
    legend(figure, panels[0][0])
