"""How much faster than the trivial plan is a shared one, for how many patterns?

Simulated annealing and tabu search, and the other ways to share, on stocks and on traffic, made up and real (figures 10
and 12 a, e of the paper that ``_multi.py`` names). The default workload of 100 patterns is made three times. Real
events, where the folder of CEPHEID_DATA has them, are given this workload only, and the main ways to share.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from benchmarks import _adaptive
from benchmarks._multi import REAL, STOCKS, TRAFFIC, TRIVIAL, Workload, draw, legend, methods, style, sweep
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("apart", "RE", "SH", "SPASS", "MOTTO", "SA-EDGE-PREFIX", "SA-EDGE", "TS-EDGE", "SA-VERTEX4")
MAIN = ("apart", "RE", "SH", "SA-EDGE-PREFIX", "SA-EDGE")
DEFAULT = 100
SEEDS = (1, 2, 3)
"""Of the default workload; its gain is the geometric mean."""


def run(quick: bool, progress: Steps) -> Result:
    sizes, seconds, events = ((10, 50), 0.5, 4_000) if quick else ((25, DEFAULT, 500), 5.0, 20_000)
    real = [] if quick else [data for data, file in REAL.items() if _adaptive.is_real(file)]
    wanted = dict.fromkeys((STOCKS, TRAFFIC), NAMES) | dict.fromkeys(real, MAIN)
    cases = [
        ({"data": data, "patterns": count}, Workload(data, count, events=events, seed=seed), methods(names, seconds))
        for data, names in wanted.items()
        for count in (sizes if data not in REAL else (DEFAULT,))
        for seed in (SEEDS if count == DEFAULT else SEEDS[:1])
    ]
    return sweep(cases, progress)


def plot(result: Result, figure: Figure) -> None:
    figure.set_size_inches(12, 5.5)
    *panels, bars = figure.subplots(1, 3)
    for axes, data in zip(panels, (STOCKS, TRAFFIC), strict=True):
        draw(axes, result, "patterns", xscale="log", data=data)
        axes.set(title=data, ylabel="throughput, times the trivial plan")
    legend(figure, panels[0])
    data_sets = list(dict.fromkeys(str(row["data"]) for row in result.rows))
    count = DEFAULT if result.where(patterns=DEFAULT) else max(int(row["patterns"] or 0) for row in result.rows)
    for place, name in enumerate(MAIN):
        some = {data: result.where(data=data, patterns=count, method=name) for data in data_sets}
        gains = [statistics.geometric_mean(float(row["gain"] or 0) for row in rows) for rows in some.values()]
        bars.barh([n + (place - 2) * 0.16 for n in range(len(gains))], gains, 0.15, color=style(name)["color"])
    bars.set_yticks(range(len(data_sets)), data_sets)
    bars.invert_yaxis()
    bars.axvline(1, color="0.6", lw=1)
    bars.set(title=f"{count} patterns", xscale="log", xlabel=f"throughput, times the {TRIVIAL} plan")
