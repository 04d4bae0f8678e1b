"""How much does a longer search for a shared plan gain?

Figure 11 b of the paper that ``_multi.py`` names. The cost is what the planner expects, as part of that of the best
plans that share nothing, which take as long to make as they need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks._multi import STOCKS, TRAFFIC, Run, Workload, numbers
from cepheid.cli.bench import Result, Steps
from cepheid.pattern.normalise import normalise
from cepheid.plan.sharing import Sharing, share_plans

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(quick: bool, progress: Steps) -> Result:
    times, count = ((0.2, 1.0), 50) if quick else ((1.0, 2.0, 5.0, 10.0), 500)
    rows: list[dict[str, Any]] = []
    for data in progress((STOCKS, TRAFFIC)):
        made = Run(Workload(data, patterns=count, events=4_000))
        branches = [branch for pattern in made.patterns for branch in normalise(pattern).branches]
        alone = share_plans(branches, made.estimates, Sharing(steps=0, descend=False)).cost_alone
        for seconds in times:
            for search in ("annealing", "tabu"):
                for descend in (False, True):
                    sharing = Sharing(search=search, seconds=seconds, descend=descend)
                    found = share_plans(branches, made.estimates, sharing)
                    row = {"data": data, "patterns": count, "search": search, "descent": descend, "seconds": seconds}
                    row |= {"seconds taken": found.seconds, "steps": found.steps, "cost": found.cost / alone}
                    rows.append(row)
    return Result(rows)


def plot(result: Result, figure: Figure) -> None:
    for axes, data in zip(figure.subplots(1, 2), (STOCKS, TRAFFIC), strict=True):
        for search in ("annealing", "tabu"):
            for descend in (False, True):
                some = result.where(data=data, search=search, descent=descend)
                label = f"{search}, {'with' if descend else 'without'} descent"
                axes.plot(numbers(some, "seconds"), numbers(some, "cost"), marker="o", label=label)
        axes.set(xscale="log", title=data, xlabel="seconds of search", ylabel="cost, part of that without sharing")
        axes.legend(fontsize=8)
