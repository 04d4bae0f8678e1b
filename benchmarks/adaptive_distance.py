"""How much better must another choice be before a plan is made anew?

Throughput of the invariant method for several distances d, on sequences over both streams (figure 5 of the paper that
``_adaptive.py`` names), with the two ways to find d: the average distance when the plan was made, and learning it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cepheid
from benchmarks._adaptive import PLANNERS, REPEATS, SIZES, STATIC, STOCKS, TRAFFIC, cases_of, compare
from cepheid.adapt.policies import Policy
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISTANCES = (0.0, 0.1, 0.3, 0.5, 1.0, 3.0)
METHODS: dict[str, Policy | None] = {STATIC: None}
METHODS |= {f"d = {d:g}": cepheid.Invariant(distance=d) for d in DISTANCES}
METHODS |= {"average": cepheid.Invariant(distance="average"), "meta": cepheid.Invariant(distance="meta")}
NAMES = {TRAFFIC: "traffic", STOCKS: "stocks"}


def run(quick: bool, progress: Steps) -> Result:
    sizes, events, repeats = ((3, 6), 6_000, 1) if quick else (SIZES, 60_000, REPEATS)
    rows, notes = [], []
    for stream, name in NAMES.items():
        cases = [c for size in sizes for c in cases_of(stream, "sequence", size, events)]
        found = compare(stream, cases, METHODS, repeats, progress)
        rows += [{"stream": name, **row} for row in found.rows]
        notes += [f"{name}: {note}" for note in found.notes]
    return Result(rows, notes)


def plot(result: Result, figure: Figure) -> None:
    from matplotlib import colormaps

    figure.set_size_inches(14, 8)
    panels = figure.subplots(len(NAMES), len(PLANNERS), squeeze=False)
    for line, name in zip(panels, NAMES.values(), strict=True):
        for axes, planner in zip(line, PLANNERS, strict=True):
            for place, method in enumerate(METHODS):
                rows = result.where(stream=name, planner=planner, method=method)
                points = [(row["size"], row["events/s"]) for row in rows]
                style = {"color": "black", "ls": "--"} if method == STATIC else {"color": colormaps["tab10"](place)}
                axes.plot(*zip(*points, strict=True), marker="osv^DPX*h"[place % 9], label=method, ms=5, **style)
            axes.set_xticks(sorted({int(row["size"] or 0) for row in result.rows}))
            axes.set(yscale="log", xlabel="size of the pattern", ylabel="events a second", title=f"{name}, {planner}")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
