"""How does the cost grow with the window, the selectivity, the length of the pattern and the number of keys?

Sequences over types that come equally often; each panel changes one thing and keeps the others. What is found has to be
written too, so that matches a second are shown beside events a second.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import cepheid
from cepheid.cli.bench import Result, Steps, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 3
TYPES = "ABCDEF"
WINDOW = 30
"""Events in a window, where it is not what changes."""


@dataclass(frozen=True)
class Case:
    what: str
    value: float
    pattern: str
    keys: int = 1


def run(quick: bool, progress: Steps) -> Result:
    count = 20_000 if quick else 300_000
    cases = _cases(count)
    tables = {keys: _events(count, keys) for keys in {case.keys for case in cases}}
    best: dict[Case, float] = {}
    matches: dict[Case, int] = {}
    # The first turn compiles and warms up. The cases take turns, so that a busy moment does not fall on one alone.
    turns = [(turn, case) for turn in range(RUNS + 1) for case in cases]
    for turn, case in progress(turns, lambda step: f"{step[1].what} {step[1].value:g}"):
        started = time.perf_counter()
        matches[case] = cepheid.match(case.pattern, tables[case.keys]).num_rows
        seconds = time.perf_counter() - started
        if turn:
            best[case] = min(seconds, best.get(case, seconds))
    rows: list[dict[str, Value]] = [
        {
            "changes": case.what,
            "value": case.value,
            "events/s": count / best[case],
            "matches/s": matches[case] / best[case],
            "matches": matches[case],
        }
        for case in cases
    ]
    return Result(rows)


def plot(result: Result, figure: Figure) -> None:
    figure.set_size_inches(9, 7)
    panels = figure.subplots(2, 2, sharey=True)
    for axes, (what, label) in zip(panels.flat, LABELS.items(), strict=True):
        rows = result.where(changes=what)
        values = [row["value"] for row in rows]
        axes.plot(values, [row["events/s"] for row in rows], marker="o", label="events")
        axes.plot(values, [row["matches/s"] or np.nan for row in rows], marker="s", ls="--", label="matches found")
        axes.set(xscale="linear" if what == "length" else "log", yscale="log", xlabel=label)
        if what == "length":
            axes.set_xticks(values)
    for axes in panels[:, 0]:
        axes.set_ylabel("a second")
    panels[0, 0].legend()


LABELS = {
    "window": "window (events)",
    "selectivity": "share of pairs that pass each condition",
    "length": "length of the sequence (variables)",
    "keys": f"keys (a window holds {WINDOW} events of each)",
}


def _cases(count: int) -> list[Case]:
    # A window of all keys must fit into the stream several times, or little is found.
    keys = [k for k in (1, 10, 100, 1_000, 3_000) if 3 * k * WINDOW <= count]
    return [
        *(Case("window", w, _passing(0.1, w)) for w in (10, 30, 100, 300, 1000)),
        *(Case("selectivity", s, _passing(s, 10 * WINDOW)) for s in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)),
        *(Case("length", n, _growing(n)) for n in range(2, len(TYPES) + 1)),
        *(Case("keys", k, _passing(0.1, k * WINDOW, "k"), keys=k) for k in keys),
    ]


def _passing(share: float, window: int, key: str = "") -> str:
    """Three types; of the pairs of neighbours this share passes: x and y are uniform, so P(x < 2s·y) = s."""
    partition = f" PARTITION BY {key}" if key else ""
    conditions = f"a.x < {2 * share:g} * b.y AND b.x < {2 * share:g} * c.y"
    return f"PATTERN SEQ(A a, B b, C c) WHERE {conditions}{partition} WITHIN {window}"


def _growing(length: int) -> str:
    names = TYPES[:length].lower()
    steps = ", ".join(f"{name.upper()} {name}" for name in names)
    conditions = " AND ".join(f"{one}.x < {other}.x" for one, other in itertools.pairwise(names))
    return f"PATTERN SEQ({steps}) WHERE {conditions} WITHIN {WINDOW}"


def _events(count: int, keys: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "ts": np.arange(count),
            "type": np.array(list(TYPES))[rng.integers(0, len(TYPES), count)],
            "x": rng.random(count),
            "y": rng.random(count),
            "k": rng.integers(0, keys, count),
        }
    )
