"""What does each way to shed load lose as events come faster?

Figures 5, 6 and 7 of the paper that ``_shed.py`` names: false negatives, the share of the work that is dropped, and
false positives, for events at 120 to 200 per cent of what the engine can take, against a run of the same events that
drops nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks._shed import RATES, REPEATS, Trial, compare, legend, lines
from benchmarks._shed_queries import QUERIES, q1, q4
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = ("FN %", "to drop %", "FP %")


def run(quick: bool, progress: Steps) -> Result:
    if quick:
        return compare([q1, q4], (140, 200), Trial(2, 3), 1, progress, exact=True)
    return compare(QUERIES, RATES, Trial(4, 10), REPEATS, progress, exact=True)


def plot(result: Result, figure: Figure) -> None:
    queries = list(dict.fromkeys(str(row["query"]) for row in result.rows))
    figure.set_size_inches(4 * len(queries), 9)
    grid = figure.subplots(len(PANELS), len(queries), squeeze=False)
    for row, column in zip(grid, PANELS, strict=True):
        for axes, query in zip(row, queries, strict=True):
            lines(axes, result, "rate %", column, query=query)
            axes.set_title(query)
    legend(figure, grid[0][0])
