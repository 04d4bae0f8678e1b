"""When does sharing pay, and when reordering?

How much patterns have in common, and how much arrival rates within a pattern differ (figure 14 of the paper that
``_multi.py`` names).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks._multi import Run, Workload, draw, legend, methods, sweep
from cepheid.cli.bench import Result, Steps
from cepheid.pattern.normalise import normalise
from cepheid.plan.sharing.graph import MultiPatternGraph
from cepheid.plan.sharing.members import Catalogue, Member
from cepheid.stats.estimates import Estimates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("apart", "RE", "SH", "SA-EDGE", "TS-EDGE")


def run(quick: bool, progress: Steps) -> Result:
    count, seconds, events = (20, 0.5, 4_000) if quick else (100, 2.0, 20_000)
    ways = methods(NAMES, seconds)
    cases = []
    for types in (10, 12) if quick else (10, 12, 16, 24, 48):
        workload = Workload(patterns=count, types=types, events=events)
        cases.append(({"of": "density", "value": round(density(workload), 3)}, workload, ways))
    for difference in (0.2, 1.0) if quick else (0.1, 0.3, 0.6, 1.0):
        workload = Workload(patterns=count, difference=difference, events=events)
        cases.append(({"of": "rate difference", "value": difference}, workload, ways))
    return sweep(cases, progress)


def density(workload: Workload) -> float:
    """The share of the other patterns that a pattern has something in common with."""
    graph, catalogue = MultiPatternGraph(), Catalogue()
    for pattern in Run(workload).patterns:
        for branch in normalise(pattern).branches:
            graph.add(Member(branch, Estimates(), catalogue))
    return graph.density()


def plot(result: Result, figure: Figure) -> None:
    panels = figure.subplots(1, 2)
    for axes, what in zip(panels, ("density", "rate difference"), strict=True):
        draw(axes, result, "value", of=what)
        axes.set(xlabel=f"{what} of the workload", ylabel="throughput, times the trivial plan")
    legend(figure, panels[0])
