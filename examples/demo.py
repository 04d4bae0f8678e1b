"""Finds stolen accounts in a small made-up stream of bank events.

The stream is matched by the reference matcher of the tests: exact, and so slow that a few hundred events are its limit.
"""

from __future__ import annotations

import datetime as dt
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import cepheid

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests import oracle  # noqa: E402

START = dt.datetime(2024, 5, 17, 9)
COUNTRIES = ("DE", "FR", "IT", "PL")


def account_events(account: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """A login and some transfers. Every fifth account is robbed; the others confirm their logins."""
    home, away = rng.sample(COUNTRIES, 2)
    robbed = account % 5 == 0
    moment = START + dt.timedelta(seconds=rng.randrange(3000))
    event = {
        "ts": moment,
        "type": "Login",
        "account": f"account-{account:02}",
        "home": home,
        "country": home,
        "amount": None,
    }
    yield event | {"country": away if robbed or rng.random() < 0.3 else home}
    if not robbed:
        yield event | {"ts": moment + dt.timedelta(seconds=20), "type": "Confirm"}
    amount = 10.0
    for _ in range(rng.randrange(3, 5)):
        moment += dt.timedelta(seconds=rng.randrange(30, 90))
        amount = amount * rng.uniform(1.5, 4) if robbed else rng.uniform(5, 200)
        yield event | {"ts": moment, "type": "Transfer", "amount": round(amount, 2)}


def main() -> None:
    console = Console(highlight=False, soft_wrap=True)
    pattern = cepheid.parse((ROOT / "examples" / "account_taken.cep").read_text(encoding="utf-8"))
    for title, text in (("The pattern", pattern), ("What it means", cepheid.normalise(pattern))):
        console.print(title, style="bold")
        console.print(f"{text}\n", markup=False)
    rng = random.Random(7)
    events = [event for account in range(20) for event in account_events(account, rng)]
    rows = oracle.rows(pattern, events)
    table = Table(title=f"{len(rows)} matches in {len(events)} events")
    for name in ("start", "end", "account", "country", "transfers", "total"):
        table.add_column(name, justify="right" if name in ("transfers", "total") else "left")
    for row in sorted(rows, key=lambda r: r["end"]):
        moments = (row["start"].time(), row["end"].time())
        table.add_row(*map(str, moments), row["account"], row["country"], str(row["transfers"]), f"{row['total']:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
