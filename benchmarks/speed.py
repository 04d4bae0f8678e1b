"""How many events a second does the engine match? The reference workloads, one core, results as Arrow tables.

Run with ``.venv/bin/python benchmarks/speed.py [FILE.csv]``. Each figure is the best of three runs after one to warm
up; goals are what the project wants at least.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import cepheid

EVENTS = 1_000_000
PUSHES = 3_000
SEQUENCE = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x"


def events(shares: tuple[float, float, float], keys: int = 0) -> pa.Table:
    """Integer time 0, 1, …, three types, x uniform; k uniform over some keys."""
    rng = np.random.default_rng(0)
    probability = np.array(shares) / sum(shares)
    columns = {
        "ts": np.arange(EVENTS),
        "type": np.array(["A", "B", "C"])[rng.choice(3, EVENTS, p=probability)],
        "x": rng.random(EVENTS),
    }
    return pa.table(columns | ({"k": rng.integers(0, keys, EVENTS)} if keys else {}))


def best(pattern: str, table: pa.Table) -> tuple[float, int]:
    """Events a second, and matches."""
    seconds = []
    for _ in range(4):
        started = time.perf_counter()
        found = cepheid.match(pattern, table)
        seconds.append(time.perf_counter() - started)
    return table.num_rows / min(seconds[1:]), found.num_rows


def one_by_one(pattern: str, table: pa.Table) -> tuple[float, int]:
    batches = [table.slice(i, 1) for i in range(PUSHES)]
    rates, found = [], 0
    for _ in range(3):
        session = cepheid.Engine([cepheid.parse(pattern)]).open()
        started = time.perf_counter()
        found = sum(session.push(batch, watermark=i).num_rows for i, batch in enumerate(batches))
        rates.append(PUSHES / (time.perf_counter() - started))
    return max(rates), found


def main() -> None:
    uniform = events((1, 1, 1))
    keyed = f"{SEQUENCE} AND a.k = b.k AND b.k = c.k WITHIN 300000"
    rows = [
        ("three types, WITHIN 30", 500_000, *best(f"{SEQUENCE} WITHIN 30", uniform)),
        ("C rare, WITHIN 200", 400_000, *best(f"{SEQUENCE} WITHIN 200", events((1, 1, 0.01)))),
        ("100,000 keys, WITHIN 300 000", 1_000_000, *best(keyed, events((1, 1, 1), keys=100_000))),
        ("C never occurs, WITHIN 200", 3_000_000, *best(f"{SEQUENCE} WITHIN 200", events((1, 1, 0)))),
        ("one event a push, WITHIN 30", 10_000, *one_by_one(f"{SEQUENCE} WITHIN 30", uniform)),
    ]
    table = Table(title="Events a second")
    for name in ("workload", "goal", "measured", "matches"):
        table.add_column(name, justify="left" if name == "workload" else "right")
    for workload, goal, measured, found in rows:
        table.add_row(workload, f"{goal:,}", f"{measured:,.0f}", f"{found:,}")
    Console().print(table)
    if len(sys.argv) > 1:
        with Path(sys.argv[1]).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("workload", "goal", "measured", "matches"), *rows])


if __name__ == "__main__":
    main()
