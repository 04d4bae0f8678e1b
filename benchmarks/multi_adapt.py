"""Do shared plans keep up with arrival rates that change?

Types change places every so many events; plans are made for the events before the first change and kept, or follow the
data (figure 13 of the paper that ``_multi.py`` names). Patterns are chosen by what is expected of them in the stream as
a whole. To plan 100 patterns again takes about half a second, so it takes a longer stream than elsewhere for that to
pay. Candidates are the pairs of partial matches that were looked at: they do not depend on how busy the machine is.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks._multi import BATCH, MOST, Run, Workload, methods, numbers
from cepheid.cli.bench import Result, Steps
from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.engine.sample import estimate_all

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANGED = 5
"""So many types change places (the paper's y)."""
KEPT, FOLLOWS = "kept", "follows"
METHODS = ("apart", "SA-EDGE")


@dataclass
class Changing(Run):
    every: int = 10_000

    def stream(self) -> pa.Table:
        return reshuffled(super().stream(), self.every)

    def measured(self, name: str, seconds: float, *, follows: bool) -> dict[str, Any]:
        method = methods((name,), seconds)[name]
        first = estimate_all(self.patterns, self.events.slice(0, self.every), EventColumns())
        engine = Engine(
            self.patterns, planner=method.planner, share=method.share, estimates=first, max_partial_matches=MOST,
            adapt=follows,
        )  # fmt: skip
        session = engine.open()
        session.prepare(self.events.schema)
        found = self.pushed(session, limit=None)
        report = session.report()
        changes = report["adaptation"]["changed"] if follows else 0
        candidates = report["candidates"] / self.events.num_rows
        return {
            "events per second": found["rate"], "candidates per event": candidates, "changes of plans": changes,
            "matches": found["matches"],
        }  # fmt: skip


def run(quick: bool, progress: Steps) -> Result:
    count, seconds, events = (20, 0.5, 20_000) if quick else (100, 2.0, 200_000)
    rows: list[dict[str, Any]] = []
    for every in progress((5_000,) if quick else (12_500, 50_000, 100_000), lambda n: f"every {n:,} events"):
        made = Changing(Workload(patterns=count, events=events), every)
        for name in METHODS:
            for follows in (False, True):
                measured = made.measured(name, seconds, follows=follows)
                rows.append({"every": every, "method": name, "plans": FOLLOWS if follows else KEPT, **measured})
        assert len({row["matches"] for row in rows if row["every"] == every}) == 1, "a plan never changes the result"
    return Result(rows, [f"batches of {BATCH:,} events; {CHANGED} types change places each time"])


def reshuffled(events: pa.Table, every: int) -> pa.Table:
    """After each so many events, some types take each other's places from then on."""
    source = random.Random(0)
    types = events["type"].unique().to_pylist()
    codes = events["type"].combine_chunks().dictionary_encode()
    names = codes.dictionary.to_pylist()
    now, found = list(names), []
    for start in range(0, events.num_rows, every):
        places = source.sample(range(len(types)), CHANGED)
        turned = places[1:] + places[:1]
        if start:
            for new, old in zip(places, [now[place] for place in turned], strict=True):
                now[new] = old
        found.append(np.array(now, object)[codes.indices.to_numpy()[start : start + every]])
    return events.set_column(events.schema.get_field_index("type"), "type", pa.array(np.concatenate(found)))


def plot(result: Result, figure: Figure) -> None:
    panels = figure.subplots(1, 2)
    for axes, column in zip(panels, ("events per second", "candidates per event"), strict=True):
        for place, name in enumerate(METHODS):
            for plans, line in ((KEPT, "--"), (FOLLOWS, "-")):
                some = result.where(method=name, plans=plans)
                label = f"{name}, {plans}"
                axes.plot(
                    numbers(some, "every"), numbers(some, column), line, color=f"C{place}", marker="o", label=label
                )
        axes.set(xscale="log", xlabel="events between two changes of rates", ylabel=column)
        axes.set_ylim(bottom=0)
        places = sorted({int(row["every"] or 0) for row in result.rows})
        axes.set_xticks(places, [f"{place:,}" for place in places])
        axes.set_xticks([], minor=True)
    panels[0].legend()
