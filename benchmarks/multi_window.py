"""How much faster than the trivial plan is a shared one, for which window?

Windows of time and windows of events (figures 11 c, d and 12 c, d, g, h of the paper that ``_multi.py`` names).
Patterns with windows of events share nothing yet: what they gain they gain by reordering.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks._multi import STOCKS, TRAFFIC, Workload, draw, methods, sweep
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("RE", "SH", "SPASS", "MOTTO", "SA-EDGE", "TS-EDGE")
KINDS = ("minutes", "events")


def run(quick: bool, progress: Steps) -> Result:
    count, seconds, events = (20, 0.5, 1_000) if quick else (100, 5.0, 3_000)
    lengths = {"minutes": (5, 10) if quick else (5, 10, 15, 20), "events": (50, 100) if quick else (75, 150, 225, 300)}
    ways = methods(NAMES, seconds)
    cases = [
        (
            {"data": data, "kind": kind, "window": length},
            Workload(data, patterns=count, window=f"{length} {kind}", events=events),
            ways,
        )
        for data in (STOCKS, TRAFFIC)
        for kind in KINDS
        for length in lengths[kind]
    ]
    return sweep(cases, progress)


def plot(result: Result, figure: Figure) -> None:
    panels = figure.subplots(2, 2)
    for row, data in zip(panels, (STOCKS, TRAFFIC), strict=True):
        for axes, kind in zip(row, KINDS, strict=True):
            draw(axes, result, "window", data=data, kind=kind)
            axes.set(title=data, ylabel="times the trivial plan", xlabel=f"window, {kind}")
