"""Do shared plans keep up with arrival rates that change?

Types change places every so many events; plans are made at the start and kept, or follow the data (figure 13 of the
paper that ``_multi.py`` names).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks._multi import BATCH, NOTES, TRIVIAL, Run, Workload, methods, numbers
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANGED = 5
"""So many types change places (the paper's y)."""


def run(quick: bool, progress: Steps) -> Result:
    count, seconds, events = (20, 0.5, 4_000) if quick else (100, 2.0, 16_000)
    rows: list[dict[str, Any]] = []
    for every in progress((1_000, 2_000) if quick else (1_000, 2_000, 4_000, 8_000), lambda n: f"every {n:,} events"):
        made = Run(Workload(patterns=count, events=events))
        made.events = reshuffled(made.events, every)
        for name, method in methods(("SA-EDGE",), seconds).items():
            for follows in (False,) if name == TRIVIAL else (False, True):
                measured = made.measure(method, **({"adapt": True, "check_every": BATCH // 4} if follows else {}))
                rows.append({"every": every, "method": f"{name}{', follows' if follows else ''}", **measured})
    return Result(rows, NOTES)


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
    axes = figure.subplots()
    for name in dict.fromkeys(row["method"] for row in result.rows):
        some = result.where(method=name)
        axes.plot(numbers(some, "every"), numbers(some, "events per second"), marker="o", label=str(name))
    axes.set(xscale="log", yscale="log", xlabel="events between two changes of rates", ylabel="events per second")
    axes.legend()
