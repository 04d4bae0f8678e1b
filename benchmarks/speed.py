"""How many events a second does the engine match, and how soon is the first match there?

The reference workloads: one core, results as Arrow tables. Each figure is the best of three runs after one to warm up;
the workloads take turns, so that a busy moment of the machine does not fall on one of them alone. Goals are what the
project wants at least (events a second) or at most (seconds).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import cepheid
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 3
SEQUENCE = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x"
KEYED = f"{SEQUENCE} AND a.k = b.k AND b.k = c.k WITHIN 300000"

IMPORT = "import time; start = time.perf_counter(); import cepheid; print(time.perf_counter() - start)"
FIRST_MATCH = """
import time, cepheid
cepheid.match  # the engine, and with it the compiler, is loaded when it is first asked for
events = [{"ts": i, "type": "ABC"[i % 3], "x": i % 7} for i in range(300)]
start = time.perf_counter()
cepheid.match("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 30", events)
print(time.perf_counter() - start)
"""
LOAD = "import time, cepheid; start = time.perf_counter(); cepheid.match; print(time.perf_counter() - start)"


@dataclass(frozen=True)
class Workload:
    name: str
    goal: float | None
    unit: str
    measure: Callable[[], tuple[float, int | None]]
    """The figure, and how many matches there were."""

    def better(self, one: float, other: float) -> float:
        return max(one, other) if self.unit == "events/s" else min(one, other)

    def reached(self, figure: float) -> bool | None:
        return None if self.goal is None else self.better(figure, self.goal) == figure


def run(quick: bool, progress: Steps) -> Result:
    workloads = _workloads(events=100_000 if quick else 1_000_000, pushes=500 if quick else 3_000)
    best: dict[str, float] = {}
    matches: dict[str, int | None] = {}
    turns = [(turn, workload) for turn in range(RUNS + 1) for workload in workloads]
    for turn, workload in progress(turns, lambda step: step[1].name):
        figure, matches[workload.name] = workload.measure()
        if turn > 0:
            best[workload.name] = workload.better(figure, best.get(workload.name, figure))
    rows = [
        {
            "workload": w.name,
            "goal": w.goal,
            "measured": best[w.name],
            "unit": w.unit,
            "reached": w.reached(best[w.name]),
            "matches": matches[w.name],
        }
        for w in workloads
    ]
    return Result(rows, ("fewer events than the goals are for",) if quick else ())


def plot(result: Result, figure: Figure) -> None:
    labels = {"events/s": "events a second (more is better)", "s": "seconds (less is better)"}
    formats = {"events/s": "{:,.0f}", "s": "{:.2f} s"}
    panels = figure.subplots(2, 1, height_ratios=[len(result.where(unit=unit)) for unit in labels])
    for axes, unit in zip(panels, labels, strict=True):
        rows = result.where(unit=unit)[::-1]
        for place, row in enumerate(rows):
            measured, goal = row["measured"], row["goal"]
            assert isinstance(measured, float)
            axes.plot(measured, place, "o", color="#0072B2", ms=9)
            axes.text(1.01, place, formats[unit].format(measured), transform=axes.get_yaxis_transform(), va="center")
            if goal is not None:
                axes.plot(goal, place, "|", color="black", ms=22, mew=2)
        axes.set_yticks(range(len(rows)), [str(row["workload"]) for row in rows])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlabel(labels[unit])
    panels[0].set_xscale("log")
    panels[1].set_xlim(left=0)
    panels[0].plot([], [], "o", color="#0072B2", ms=9, label="measured")
    panels[0].plot([], [], "|", color="black", ms=16, mew=2, label="goal")
    panels[0].legend(loc="upper left")


def _workloads(events: int, pushes: int) -> list[Workload]:
    uniform, rare = _events((1, 1, 1), events), _events((1, 1, 0.01), events)
    keyed, never = _events((1, 1, 1), events, keys=100_000), _events((1, 1, 0), events)
    return [
        Workload("three types, WITHIN 30", 500_000, "events/s", _whole(f"{SEQUENCE} WITHIN 30", uniform)),
        Workload("C rare, WITHIN 200", 400_000, "events/s", _whole(f"{SEQUENCE} WITHIN 200", rare)),
        Workload("100,000 keys, WITHIN 300,000", 1_000_000, "events/s", _whole(KEYED, keyed)),
        Workload("C never occurs, WITHIN 200", 3_000_000, "events/s", _whole(f"{SEQUENCE} WITHIN 200", never)),
        Workload("one event a push, WITHIN 30", 10_000, "events/s", _pushed(f"{SEQUENCE} WITHIN 30", uniform, pushes)),
        Workload("import cepheid", 0.5, "s", _process(IMPORT)),
        Workload("loading the engine, once", None, "s", _process(LOAD)),
        Workload("first match, engine loaded", 0.3, "s", _process(FIRST_MATCH)),
    ]


def _events(shares: tuple[float, float, float], count: int, keys: int = 0) -> pa.Table:
    """Integer time 0, 1, …, three types, x uniform; k uniform over some keys."""
    rng = np.random.default_rng(0)
    probability = np.array(shares) / sum(shares)
    columns = {
        "ts": np.arange(count),
        "type": np.array(["A", "B", "C"])[rng.choice(3, count, p=probability)],
        "x": rng.random(count),
    }
    return pa.table(columns | ({"k": rng.integers(0, keys, count)} if keys else {}))


def _whole(pattern: str, table: pa.Table) -> Callable[[], tuple[float, int]]:
    def measure() -> tuple[float, int]:
        started = time.perf_counter()
        found = cepheid.match(pattern, table)
        return table.num_rows / (time.perf_counter() - started), found.num_rows

    return measure


def _pushed(pattern: str, table: pa.Table, pushes: int) -> Callable[[], tuple[float, int]]:
    batches = [table.slice(i, 1) for i in range(pushes)]

    def measure() -> tuple[float, int]:
        session = cepheid.Engine([cepheid.parse(pattern)]).open()
        started = time.perf_counter()
        found = sum(session.push(batch, watermark=i).num_rows for i, batch in enumerate(batches))
        return pushes / (time.perf_counter() - started), found

    return measure


def _process(code: str) -> Callable[[], tuple[float, None]]:
    """The seconds that a new process prints."""

    def measure() -> tuple[float, None]:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return float(done.stdout), None

    return measure
