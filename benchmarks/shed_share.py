"""What does each way to shed load find, when all are asked to drop the same share of the work?

In ``shed-rate`` it is the overload that decides how much is dropped. Here a session is told: then what is found depends
on what was learned alone, and not on the machine. The time that is left does: its measure is the time of the same
events with nothing dropped, of which a part is not for dropping.
"""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks._shed import OF, STRATEGIES, Matches, Rising, legend, lines, planned
from benchmarks._shed_queries import QUERIES, Query, q1, q4
from cepheid.cli.bench import Result, Steps
from cepheid.shed.strategies import Strategy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (0.2, 0.4, 0.6, 0.8)
BATCH, FEWER = 4_096, 1_024
"""About what the bound of a second allows; of positions of players, which make more work each, fewer."""
LEARNED, DROPPED = 122_880, 204_800
"""Events, before work is dropped and while it is."""


def run(quick: bool, progress: Steps) -> Result:
    rows: list[dict[str, Any]] = []
    makes, shares = ([q1, q4], (0.4,)) if quick else (QUERIES, SHARES)
    learned, dropped = (20_480, 20_480) if quick else (LEARNED, DROPPED)
    for query in progress([make() for make in makes]):
        source = Rising(query.events, [])
        first, last = (source.slice(place, 1)["ts"][0].value for place in (learned, learned + dropped - 1))
        _pushed(query, None, 0.0, learned, dropped)  # compiles what is not yet
        full, truth, _ = _pushed(query, None, 0.0, learned, dropped)
        wanted = truth.between(first, last)
        for share in shares:
            for name, kind in STRATEGIES.items():
                took, found, said = _pushed(query, kind(), share, learned, dropped)
                got = found.between(first, last)
                both = len(np.intersect1d(wanted, got, assume_unique=True))
                rows.append(
                    {
                        "query": query.name,
                        "share %": 100 * share,
                        "strategy": name,
                        "recall %": 100 * both / max(len(wanted), 1),
                        "estimated %": 100 * said["estimated recall"],
                        "FP %": 100 * (len(got) - both) / max(len(wanted), 1),
                        "time left %": 100 * took / full,
                        "matches": OF * len(wanted),
                    }
                )
    return Result(
        rows, [f"{learned:,} events to learn from, then {dropped:,} of which the share of the work is dropped"]
    )


def _pushed(
    query: Query, shed: Strategy | None, share: float, learned: int, dropped: int
) -> tuple[float, Matches, dict[str, Any]]:
    """How long the later events took, the matches of all, and what was said of them."""
    source = Rising(query.events, [])
    session, matches, took = replace(planned(query), shed=shed).open(), Matches(), 0.0
    size = FEWER if query.name == "Q4" else BATCH
    for place in range(0, learned + dropped, size):
        if shed is not None and place >= learned:
            session.overload(share)
        batch = source.slice(place, size)
        began = process_time()
        matches.add(session.push(batch, watermark=batch["ts"][-1]))
        took += process_time() - began if place >= learned else 0.0
    said = session.report().get("shedding", {})
    matches.add(session.close())
    return took, matches, said


def plot(result: Result, figure: Figure) -> None:
    queries = list(dict.fromkeys(str(row["query"]) for row in result.rows))
    figure.set_size_inches(4 * len(queries), 6)
    grid = figure.subplots(2, len(queries), squeeze=False)
    for row, column in zip(grid, ("recall %", "time left %"), strict=True):
        for axes, query in zip(row, queries, strict=True):
            lines(axes, result, "share %", column, query=query)
            axes.set_title(query)
    legend(figure, grid[0][0])
