"""What does it cost to be ready to shed load, when there is no overload?

Throughput with each strategy armed against an engine that has none, on the same events and plans: of the first third,
in which it learns what would be worth dropping, and of the rest, as it goes on. They take turns with each batch, so
that it is the same for all when the machine is slow for a while. The matches must be the same, to the last one.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks._shed import BOUND, STRATEGIES, Matches, Rising, planned
from benchmarks._shed_queries import QUERIES, Query
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NONE = "none"
BATCH = 2_000
LEARNING = 1 / 3


def run(quick: bool, progress: Steps) -> Result:
    events, repeats = (30_000, 1) if quick else (300_000, 5)
    rows: list[dict[str, Any]] = []
    for query in progress([make() for make in QUERIES]):
        _measure(query, 10 * BATCH)  # compiles what is not yet
        turns = [_measure(query, events) for _ in range(repeats)]
        for name in turns[0]:
            ratios = [seconds[name][0] / seconds[NONE][0] for seconds in turns]
            at_first, later = np.median(ratios, axis=0) - 1
            seconds = float(np.median([seconds[name][0][1] for seconds in turns]))
            rows.append(
                {
                    "query": query.name,
                    "strategy": name,
                    "events/s": events * (1 - LEARNING) / seconds,
                    "while it learns %": 100 * float(at_first),
                    "cost %": 100 * float(later),
                    "same matches": all(np.array_equal(turn[name][1], turn[NONE][1]) for turn in turns),
                }
            )
    return Result(rows, [f"median of {repeats}; {events:,} events in batches of {BATCH:,}"])


def _measure(query: Query, events: int) -> dict[str, tuple[Any, Any]]:
    """How long the first events and the others took each strategy, and the matches."""
    source, engine = Rising(query.events, []), planned(query)
    armed = {name: kind(latency_bound=BOUND) for name, kind in STRATEGIES.items()}
    sessions = {name: replace(engine, shed=shed).open() for name, shed in {NONE: None, **armed}.items()}
    seconds, matches = {name: np.zeros(2) for name in sessions}, {name: Matches(of=1) for name in sessions}
    turns = list(sessions)
    gc.collect()
    gc.freeze()
    for start in range(0, events, BATCH):
        batch = source.slice(start, BATCH)
        for name in turns:
            began = process_time()
            found = sessions[name].push(batch, watermark=batch["ts"][-1])
            seconds[name][int(start >= LEARNING * events)] += process_time() - began
            matches[name].add(found)
        turns = [*turns[1:], turns[0]]
    return {name: (seconds[name], matches[name].between(0, 2**62)) for name in sessions}


def plot(result: Result, figure: Figure) -> None:
    queries = list(dict.fromkeys(str(row["query"]) for row in result.rows))
    figure.set_size_inches(10, 5)
    axes = figure.subplots()
    places = np.arange(len(queries))
    for offset, name in enumerate(STRATEGIES):
        costs = [float(result.where(query=query, strategy=name)[0]["cost %"] or 0) for query in queries]
        axes.bar(places + 0.16 * (offset - 2), costs, 0.16, label=name)
    axes.axhline(3, color="black", lw=1, ls="--", label="3 %")
    axes.set_xticks(places, queries)
    axes.set_ylabel("time that being armed costs (%)")
    axes.legend(fontsize="small")
