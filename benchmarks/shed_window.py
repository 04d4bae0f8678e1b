"""What does each way to shed load lose with longer windows?

Figure 8 of the paper that ``_shed.py`` names: Q1 and Q3 with windows of 18 to 28 minutes, at 180 per cent of what the
engine can take: its throughput without shedding, false negatives and false positives.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks._shed import REPEATS, Trial, compare, legend, lines
from benchmarks._shed_queries import q1, q3
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOWS = (18, 20, 22, 25, 28)
PANELS = ("μ", "FN %", "FP %")


def run(quick: bool, progress: Steps) -> Result:
    if quick:
        return compare([partial(q1, minutes) for minutes in (18, 22)], (180,), Trial(2, 3), 1, progress, exact=True)
    queries = [partial(query, minutes) for query in (q1, q3) for minutes in WINDOWS]
    return compare(queries, (180,), Trial(4, 10), REPEATS, progress, exact=True)


def plot(result: Result, figure: Figure) -> None:
    queries = list(dict.fromkeys(str(row["query"]) for row in result.rows))
    figure.set_size_inches(12, 4 * len(queries))
    grid = figure.subplots(len(queries), len(PANELS), squeeze=False)
    for row, query in zip(grid, queries, strict=True):
        for axes, column in zip(row, PANELS, strict=True):
            lines(axes, result, "window", column, query=query)
            axes.set(title=query, xlabel="window (minutes)")
    legend(figure, grid[0][0])
