"""What does it cost to be ready to shed load, when there is no overload?

Throughput with each strategy armed against an engine that has none, on the same events in batches of the same size: of
the first third, in which it learns what would be worth dropping, and of the rest, as it goes on. The matches must be
the same, to the last one.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import cepheid
from benchmarks._shed import BOUND, PREVIEW, STRATEGIES, Matches, Rising
from benchmarks._shed_queries import QUERIES, Query
from cepheid.cli.bench import Result, Steps
from cepheid.local.match import prepare

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NONE = "none"
BATCH = 2_000
LEARNING = 1 / 3


def run(quick: bool, progress: Steps) -> Result:
    events, repeats = (30_000, 1) if quick else (300_000, 5)
    rows: list[dict[str, Any]] = []
    for query in progress([make() for make in QUERIES]):
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in (NONE, *STRATEGIES)}
        found: dict[str, Any] = {}
        for turn in range(repeats + 1):
            for name, times in seconds.items():
                took, found[name] = _measure(query, name, events)
                if turn:  # the first is to warm up
                    times.append(took)
        for name, times in seconds.items():
            at_first, later = np.median(times, axis=0) / np.median(seconds[NONE], axis=0) - 1
            rows.append(
                {
                    "query": query.name,
                    "strategy": name,
                    "events/s": events * (1 - LEARNING) / float(np.median(times, axis=0)[1]),
                    "while it learns %": 100 * float(at_first),
                    "cost %": 100 * float(later),
                    "same matches": bool(np.array_equal(found[name], found[NONE])),
                }
            )
    return Result(rows, [f"median of {repeats}, in turns; {events:,} events in batches of {BATCH:,}"])


def _measure(query: Query, strategy: str, events: int) -> tuple[tuple[float, float], Any]:
    """How long the first events and the others took, and the matches."""
    source = Rising(query.events, [])
    engine, _ = prepare(list(query.patterns), source.slice(0, PREVIEW))
    if strategy != NONE:
        engine = cepheid.Engine(
            engine.patterns, engine.columns, estimates=engine.estimates, shed=STRATEGIES[strategy](latency_bound=BOUND)
        )
    session, matches = engine.open(), Matches()
    batches = [source.slice(start, BATCH) for start in range(0, events, BATCH)]
    took = []
    learning = round(LEARNING * len(batches))
    for part in (batches[:learning], batches[learning:]):
        began = perf_counter()
        for batch in part:
            matches.add(session.push(batch, watermark=batch["ts"][-1]))
        took.append(perf_counter() - began)
    return (took[0], took[1]), matches.between(0, 2**62)


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
