"""The streams and queries of the benchmarks of load shedding.

After A. Slo, S. Bhowmik, K. Rothermel: hSPICE, state-aware event shedding in complex event processing (DEBS 2020). Its
queries Q1 to Q4 (table 3), on stock quotes and on positions of soccer players, as in its evaluation.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from cepheid.workloads import soccer_positions, stock_quotes

GAP = 3_600_000_000
"""Microseconds from one stream to the next: longer than any window."""
# --- streams


def _folder() -> Path:
    return Path(os.environ.get("CEPHEID_DATA", Path(__file__).parents[2] / "shared" / "data"))


SYMBOLS = 20
"""Companies in the stock stream; the queries ask for ten of them."""
MEMORY = 30
"""A change is told in units of its usual size over so many quotes of the company: markets are calm at noon, and a
stream whose load comes in bursts would say nothing about a rate that is 120 per cent of μ."""


@functools.cache
def stocks() -> tuple[pa.Table, str]:
    """Quotes of twenty companies C0 to C19, one of each a minute: n, ts, type, change. Real ones where the file is.

    Other companies follow under the same names when the quotes of the first are over, so that there are enough.
    """
    path = _folder() / "stocks_1min.parquet"
    if path.is_file():
        bars = pa.parquet.read_table(path, columns=["ts", "ticker", "close"])
        counts = pc.value_counts(bars["ticker"]).to_pylist()
        full = sorted(found["values"] for found in counts if found["counts"] > 5_700)
        groups = [full[start : start + SYMBOLS] for start in range(0, len(full) - SYMBOLS + 1, SYMBOLS)]
        parts = [_changes(bars, names) for names in groups]
        said = f"real quotes of {len(groups) * SYMBOLS} companies, {SYMBOLS} at a time"
    else:
        names = [f"S{n}" for n in range(SYMBOLS)]
        quotes = stock_quotes(1_600_000, symbols=names, rates=dict.fromkeys(names, 1.0), per_second=SYMBOLS / 60)
        bars = pa.table({"ts": quotes["ts"], "ticker": quotes["type"].cast(pa.string()), "close": quotes["price"]})
        parts = [_changes(bars, names)]
        said = f"made-up quotes: there is no {path.name} in the folder that CEPHEID_DATA names"
    return one_after_the_other(parts), said


def _changes(bars: pa.Table, names: Sequence[str]) -> pa.Table:
    mine = bars.filter(pc.is_in(bars["ticker"], pa.array(names))).sort_by(
        [("ticker", "ascending"), ("ts", "ascending")]
    )
    price, ticker = mine["close"].to_numpy(), mine["ticker"].to_numpy(zero_copy_only=False)
    change = np.diff(np.log(price), prepend=0.0)
    first = np.flatnonzero(np.append(True, ticker[1:] != ticker[:-1]))
    change[first] = 0.0
    total = np.cumsum(np.insert(change**2, 0, 0.0))
    begins = np.maximum(np.arange(len(change)) - MEMORY, np.repeat(first, np.diff(np.append(first, len(change)))))
    usual = np.sqrt((total[np.arange(len(change))] - total[begins]) / np.maximum(np.arange(len(change)) - begins, 1))
    size = np.where(usual > 0, change / np.where(usual > 0, usual, 1.0), 0.0)
    number = {name: place for place, name in enumerate(names)}
    types = np.array([number[name] for name in ticker[first]])
    code = np.repeat(types, np.diff(np.append(first, len(change))))
    minute = mine["ts"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    # Quotes of a minute come one after the other, in an order that differs from minute to minute.
    late = (code * 7 + minute // 60_000_000 * 3) % SYMBOLS * (60_000_000 // SYMBOLS)
    ts = minute // 60_000_000 * 60_000_000 + late
    order = np.argsort(ts, kind="stable")
    companies = pa.array([f"C{n}" for n in range(SYMBOLS)]).take(pa.array(code[order]))
    return pa.table({"ts": ts[order], "type": companies, "change": size[order]})


def one_after_the_other(parts: Sequence[pa.Table]) -> pa.Table:
    """Streams with times in microseconds as one, which starts at 0; ``n`` numbers the events."""
    times, end = [], 0
    for part in parts:
        ts = part["ts"].to_numpy()
        times.append(ts - ts[0] + end)
        end = int(times[-1][-1]) + GAP
    all_of_it = pa.concat_tables(parts).combine_chunks()
    ts = pa.array(np.concatenate(times)).cast(pa.timestamp("us"))
    return all_of_it.set_column(0, "ts", ts).add_column(0, "n", pa.array(np.arange(len(ts))))


FRAMES = 25
"""Of so many frames in a second one is taken: a defender stays near for seconds, and matches would be without number.
The others follow when the match is over, as a stream of their own."""
DEFENDERS = 6
"""Of each team those that are looked at; any three of them defend."""


@functools.cache
def soccer() -> tuple[pa.Table, str]:
    """Positions of the defenders, H0 to H5 and A0 to A5, and of two strikers while they have the ball, SH and SA."""
    path = _folder() / "soccer_25hz.parquet"
    if path.is_file():
        rows = pa.parquet.read_table(path, columns=["ts", "frame", "object", "x", "y"])
        names = rows["object"].to_numpy(zero_copy_only=False)
        frame, x, y = (rows[c].to_numpy() for c in ("frame", "x", "y"))
        ts = rows["ts"].to_numpy() * 1000
        who = np.array([_short(str(name)) for name in names])
        said = "real positions of a soccer match"
    else:
        made = soccer_positions(400_000)
        made = made.filter(pc.not_equal(made["type"], "Possession"))
        who = np.array([_short_made(str(name)) for name in made["type"].to_pylist()])
        x, y = made["x"].to_numpy(), made["y"].to_numpy()
        ts = made["ts"].cast(pa.int64()).to_numpy()
        frame = (ts - ts[0]) // 40_000
        said = f"made-up positions: there is no {path.name} in the folder that CEPHEID_DATA names"
    parts = []
    for phase in range(FRAMES):
        mine = frame % FRAMES == phase
        parts.append(_positions(ts[mine], frame[mine], who[mine], x[mine], y[mine]))
    return one_after_the_other(parts), said


def _short(name: str) -> str:
    team, _, number = name.partition("_")
    return "ball" if name == "ball" else f"{team[0].upper()}{int(number) - 1}"


def _short_made(name: str) -> str:
    return "ball" if name == "Ball" else f"{name[0]}{int(name[1:]) - 1}"


def _positions(ts: Any, frame: Any, who: Any, x: Any, y: Any) -> pa.Table:
    """A striker is each team's player who is most often at the ball, and does not defend."""
    ball = who == "ball"
    place = np.full((int(frame.max()) + 1, 2), np.nan)
    place[frame[ball]] = np.stack([x[ball], y[ball]], axis=1)
    near = np.hypot(x - place[frame, 0], y - place[frame, 1]) < 2.5
    types = np.full(len(who), "", dtype=object)
    for team in "HA":
        players = sorted({name for name in who if name.startswith(team)}, key=lambda name: int(name[1:]))
        often = {name: int((near & (who == name)).sum()) for name in players}
        striker = max(players[DEFENDERS + 1 :], key=lambda name: often[name])
        types[near & (who == striker)] = f"S{team}"
        for number, name in enumerate(players[1 : DEFENDERS + 1]):
            types[who == name] = f"{team}{number}"
    mine = np.flatnonzero(types != "")
    mine = mine[np.argsort(ts[mine], kind="stable")]
    first = np.flatnonzero(np.diff(ts[mine], prepend=-1))
    rank = np.arange(len(mine)) - np.repeat(first, np.diff(np.append(first, len(mine))))
    who = pa.array(list(types[mine]), pa.string())
    return pa.table({"ts": (ts[mine] + rank * 1000).astype(np.int64), "type": who, "x": x[mine], "y": y[mine]})


# --- queries

NEAR = 3.5
"""Metres from which a defender counts."""


@dataclass(frozen=True)
class Query:
    """``key`` stands for the events of a match."""

    name: str
    patterns: tuple[str, ...]
    window: str
    stream: Callable[[], tuple[pa.Table, str]] = field(repr=False)

    @property
    def events(self) -> pa.Table:
        return self.stream()[0]

    def __str__(self) -> str:
        return self.name


def _key(variables: Sequence[str], some: Sequence[str] = ()) -> str:
    """A number for a set of events; two sets have the same with a probability that can be forgotten.

    ``some``: of these not all are in a match. It is a part of the work, and should be a small one.
    """
    factors = np.random.default_rng(5).random(len(variables) + len(some)).tolist()
    parts = [f"{v}.n * {f}" for v, f in zip(variables, factors, strict=False)]
    parts += [f"COALESCE({v}.n * {f}, 0.0)" for v, f in zip(some, factors[len(variables) :], strict=True)]
    return " + ".join(parts) + " AS key"


def _stock_query(
    name: str, steps: Sequence[int], x: float, minutes: int, absent: int | None = None, y: float = 0.0
) -> Query:
    """All rise by ``x`` usual changes, or all fall; the one at the place ``absent`` does not by ``y``."""
    texts = []
    for direction, sign in (("rise", ">= "), ("fall", "<= -")):
        names = [f"c{place}" for place in range(len(steps))]
        leaves = [f"C{company} {v}" for company, v in zip(steps, names, strict=True)]
        if absent is not None:
            leaves[absent] = f"NOT({leaves[absent]})"
        conditions = [f"{v}.change {sign}{y if place == absent else x}" for place, v in enumerate(names)]
        key = _key([v for place, v in enumerate(names) if place != absent])
        texts.append(
            f"NAME {direction} PATTERN SEQ({', '.join(leaves)}) WHERE {' AND '.join(conditions)} "
            f"WITHIN {minutes} minutes SLIDE 1 minute RETURN {key}"
        )
    return Query(name, tuple(texts), f"{minutes} minutes", stocks)


def q1(minutes: int = 18) -> Query:
    """Ten companies rise, or fall, one after the other."""
    return _stock_query("Q1", range(10), 0.35, minutes)


def q2(minutes: int = 35) -> Query:
    """The same with repetition."""
    return _stock_query("Q2", [place // 2 for place in range(10)], 0.8, minutes)


def q3(minutes: int = 25) -> Query:
    """The same while the fifth does not."""
    return _stock_query("Q3", range(10), 0.6, minutes, absent=4, y=1.5)


def q4(seconds: int = 30) -> Query:
    """A striker has the ball, and then any three defenders of the other team come near."""
    texts = []
    for striker, team in (("SH", "A"), ("SA", "H")):
        defenders = [f"d{n}" for n in range(DEFENDERS)]
        near = " AND ".join(f"POWER({d}.x - s.x, 2) + POWER({d}.y - s.y, 2) <= {NEAR**2}" for d in defenders)
        leaves = ", ".join(f"{team}{n} {d}" for n, d in enumerate(defenders))
        texts.append(
            f"NAME {team} PATTERN SEQ({striker} s, ANY(3, {leaves})) WHERE {near} "
            f"WITHIN {seconds} seconds SLIDE 1 second RETURN {_key(['s'], defenders)}"
        )
    return Query("Q4", tuple(texts), f"{seconds} seconds", soccer)


_ASKED = os.environ.get("CEPHEID_QUERIES", "q1,q2,q3,q4").lower().split(",")
QUERIES: tuple[Callable[[], Query], ...] = tuple(make for make in (q1, q2, q3, q4) if make.__name__ in _ASKED)
"""All four take hours in some benchmarks."""
