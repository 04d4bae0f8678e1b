"""How soon is a plan the best one again after the rarest type has changed?

SEQ(A, B, C) over quotes of which first C, then A, then B is rare (the stream of figure 10 of Kolchinsky, Sharfman and
Schuster, Lazy evaluation methods for detecting complex events): throughput as the stream goes on, of all chains and of
a plan that follows. All take turns, and for each stretch the median of the repeats counts.
"""

from __future__ import annotations

import gc
import statistics
import time
from itertools import permutations
from typing import TYPE_CHECKING, Any

import cepheid
from cepheid.cli.bench import Result, Steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RARE = 0.02
PIECES = "CAB"
"""Which type is rare in each piece of the stream."""
WINDOW = 300
PER_SECOND = 4
STRETCHES = 2
"""In a window."""
BATCH = 100
FOLLOWS = "adapt=True"
PATTERN = (
    "PATTERN SEQ(A a, B b, C c) WHERE a.change + 0.02 < b.change AND b.change + 0.02 < c.change "
    f"WITHIN {WINDOW} seconds"
)
"""It has few matches: to report them is the same work for all plans."""


def run(quick: bool, progress: Steps) -> Result:
    from cepheid.workloads import stock_quotes

    windows, repeats = (4, 1) if quick else (12, 5)
    piece = windows * WINDOW * PER_SECOND
    rates = [(1, {t: RARE if t == rare else 1.0 for t in "ABC"}) for rare in PIECES]
    events = stock_quotes(piece * len(PIECES), rates=rates, per_second=PER_SECOND)
    size = WINDOW * PER_SECOND // STRETCHES
    chains = ["".join(order) for order in permutations("abc")]
    seconds: dict[str, list[list[float]]] = {name: [] for name in (*chains, FOLLOWS)}
    gc.collect()
    gc.freeze()
    for repeat, name in progress([(r, n) for r in range(repeats + 1) for n in seconds], lambda step: step[1]):
        found = _seconds(name, events, size)
        if repeat:  # the first warms up
            seconds[name].append(found)
    middle = {name: list(map(statistics.median, zip(*found, strict=True))) for name, found in seconds.items()}
    rows: list[dict[str, Any]] = []
    for stretch in range(events.num_rows // size):
        start = stretch * size
        row = {
            "events": start + size,
            "rare": PIECES[start // piece],
            "windows since": (start % piece + size) / piece * windows,
        }
        rows.append(row | {name: size / found[stretch] for name, found in middle.items()})
    return Result(rows, _notes(rows, chains))


def _seconds(name: str, events: Any, size: int) -> list[float]:
    """Of each stretch."""
    pattern = cepheid.parse(PATTERN)
    how: dict[str, Any] = {"adapt": True} if name == FOLLOWS else {"order": list(name)}
    session = cepheid.Engine([pattern], **how).open()
    found = []
    for stretch in range(events.num_rows // size):
        started = time.process_time()
        for start in range(stretch * size, (stretch + 1) * size, BATCH):
            batch = events.slice(start, min(BATCH, (stretch + 1) * size - start))
            session.push(batch, watermark=batch["ts"][-1])
        found.append(time.process_time() - started)
    return found


def _notes(rows: list[dict[str, Any]], chains: list[str]) -> list[str]:
    """How fast it was after a window, compared with the chain that was the fastest from then on."""
    notes = []
    for rare in PIECES[1:]:
        later = [row for row in rows if row["rare"] == rare and row["windows since"] > 1]
        speed = {name: statistics.harmonic_mean([row[name] for row in later]) for name in (*chains, FOLLOWS)}
        best = max(chains, key=speed.__getitem__)
        notes.append(
            f"from one window after {rare} has become rare: {speed[FOLLOWS]:,.0f} events/s, "
            f"{100 * speed[FOLLOWS] / speed[best]:.0f} per cent of the best chain, which is {best}"
        )
    return notes


def plot(result: Result, figure: Figure) -> None:
    axes = figure.subplots()
    places = [float(row["events"] or 0) for row in result.rows]
    for name in (*("".join(order) for order in permutations("abc")), FOLLOWS):
        style = {"color": "black", "lw": 2.0} if name == FOLLOWS else {"lw": 1.0, "alpha": 0.8}
        axes.plot(places, [float(row[name] or 0) for row in result.rows], label=name, **style)
    piece = places[-1] / len(PIECES)
    for number, rare in enumerate(PIECES):
        axes.axvspan(number * piece, (number + 1) * piece, color="0.5", alpha=0.12 if number % 2 else 0.0, lw=0)
        axes.text((number + 0.5) * piece, 1.01, f"{rare} is rare", transform=axes.get_xaxis_transform(), ha="center")
    axes.set(yscale="log", xlabel="events so far", ylabel="events/s")
    axes.set_xlim(0, places[-1])
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
