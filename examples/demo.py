"""Finds stolen accounts in a made-up morning of bank events."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import cepheid

PATTERN = Path(__file__).parent / "account_taken.cep"
COUNTRIES = np.array(["DE", "FR", "IT", "PL"])
SECOND = 1_000_000


def bank_events(accounts: int, seed: int) -> pa.Table:
    """Logins, confirmations and transfers. One account in a thousand is robbed: nobody confirms, and transfers grow."""
    rng = np.random.default_rng(seed)
    account = np.arange(accounts)
    robbed = account % 1000 == 0
    login = rng.integers(0, 4 * 3600, accounts) * SECOND
    home = rng.integers(0, 4, accounts)
    away = np.where(robbed | (rng.random(accounts) < 0.1), (home + rng.integers(1, 4, accounts)) % 4, home)
    amounts = np.where(
        robbed[:, None], 20 * np.cumprod(rng.uniform(1.5, 4, (accounts, 4)), axis=1), rng.uniform(5, 500, (accounts, 4))
    )
    offsets = np.sort(rng.integers(60, 500, (accounts, 4)), axis=1) * SECOND
    confirmed = account[~robbed]
    which = np.concatenate([account, confirmed, np.repeat(account, 4)])
    kinds = np.repeat(["Login", "Confirm", "Transfer"], [accounts, len(confirmed), 4 * accounts])
    times = np.concatenate([login, login[confirmed] + 20 * SECOND, (login[:, None] + offsets).reshape(-1)])
    start = np.datetime64("2024-05-17T08:00:00", "us").astype(np.int64)
    order = np.argsort(times, kind="stable")
    amount = np.concatenate([np.full(accounts + len(confirmed), np.nan), amounts.round(2).reshape(-1)])
    return pa.table(
        {
            "ts": pa.array(start + times[order]).cast(pa.timestamp("us")),
            "type": kinds[order],
            "account": which[order],
            "home": COUNTRIES[home[which]][order],
            "country": COUNTRIES[away[which]][order],
            "amount": pa.array(amount[order], from_pandas=True),
        }
    )


def main() -> None:
    console = Console(highlight=False, soft_wrap=True)
    pattern = cepheid.parse(PATTERN.read_text(encoding="utf-8"))
    for title, text in (("The pattern", pattern), ("What it means", cepheid.normalise(pattern))):
        console.print(title, style="bold")
        console.print(f"{text}\n", markup=False)
    events = bank_events(accounts=50_000, seed=7)
    cepheid.match(pattern, events.slice(0, 1000))  # the first run of all compiles the kernels
    started = time.perf_counter()
    found = cepheid.match(pattern, events)
    seconds = time.perf_counter() - started
    table = Table(title="The first matches")
    for name in ("start", "end", "account", "country", "transfers", "total"):
        table.add_column(name, justify="left" if name in ("start", "end", "country") else "right")
    for row in found.slice(0, 8).to_pylist():
        moments = (str(row["start"].time()), str(row["end"].time()))
        table.add_row(*moments, str(row["account"]), row["country"], str(row["transfers"]), f"{row['total']:.2f}")
    console.print(table)
    accounts = len(found["account"].unique())
    console.print(
        f"{found.num_rows:,} matches on {accounts} accounts in {events.num_rows:,} events, "
        f"{seconds:.2f} s ({events.num_rows / seconds:,.0f} events/s)"
    )


if __name__ == "__main__":
    main()
