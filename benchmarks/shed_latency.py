"""Does every event stay within the latency bound, for a minute at twice the load that can be taken?

Figure 9 of the paper that ``_shed.py`` names, at 200 per cent for a minute, for all queries and all ways to shed load:
the latency of half of the events, of 99 of 100, and of the slowest one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks._shed import BOUND, STRATEGIES, Trial, compare
from benchmarks._shed_queries import QUERIES
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(quick: bool, progress: Steps) -> Result:
    return compare(QUERIES, (200,), Trial(2, 5) if quick else Trial(4, 60), 1, progress, exact=False)


def plot(result: Result, figure: Figure) -> None:
    queries = list(dict.fromkeys(str(row["query"]) for row in result.rows))
    figure.set_size_inches(12, 6)
    panels = figure.subplots(1, len(queries), sharey=True, squeeze=False)[0]
    for axes, query in zip(panels, queries, strict=True):
        rows = [result.where(query=query, strategy=name)[0] for name in STRATEGIES]
        places = np.arange(len(rows))
        for offset, quantile in enumerate(("p50", "p99", "max")):
            heights = [float(row[f"{quantile} ms"] or 0) for row in rows]
            axes.bar(places + 0.27 * (offset - 1), heights, 0.27, label=quantile)
        axes.axhline(1000 * BOUND, color="black", lw=1, label="bound")
        axes.set_xticks(places, list(STRATEGIES), rotation=30, ha="right")
        axes.set_title(query)
    panels[0].set_ylabel("latency (ms)")
    panels[0].legend(fontsize="small")
