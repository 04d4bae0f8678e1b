"""Finds stolen accounts in a made-up day of bank events, on one machine: payments.yaml does the same on Spark."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import cepheid
from cepheid import workloads

PATTERN = Path(__file__).parent / "account_taken.cep"


def main() -> None:
    console = Console(highlight=False, soft_wrap=True)
    pattern = cepheid.parse(PATTERN.read_text(encoding="utf-8"))
    for title, text in (("The pattern", pattern), ("What it means", cepheid.normalise(pattern))):
        console.print(title, style="bold")
        console.print(f"{text}\n", markup=False)
    events = workloads.card_payments(300_000, accounts=50_000, seed=7)  # one account in a thousand is robbed
    cepheid.match(pattern, events.slice(0, 1000))  # the first run of all compiles the kernels
    started = time.perf_counter()
    found = cepheid.match(pattern, events)
    seconds = time.perf_counter() - started
    table = Table(title="The first matches")
    for name in ("start", "end", "account", "country", "transfers", "total"):
        table.add_column(name, justify="left" if name in ("start", "end", "country") else "right")
    for row in found.slice(0, 8).to_pylist():
        moments = (f"{row['start']:%H:%M:%S}", f"{row['end']:%H:%M:%S}")
        table.add_row(*moments, str(row["account"]), row["country"], str(row["transfers"]), f"{row['total']:.2f}")
    console.print(table)
    accounts = len(found["account"].unique())
    console.print(
        f"{found.num_rows:,} matches on {accounts} accounts in {events.num_rows:,} events, "
        f"{seconds:.2f} s ({events.num_rows / seconds:,.0f} events/s)"
    )


if __name__ == "__main__":
    main()
