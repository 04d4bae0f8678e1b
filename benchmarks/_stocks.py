"""Stock quotes with price histories, made up or real, in which one type is as rare as wanted."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

HISTORY = 20
"""Prices in a history (the papers' h)."""
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""How many quotes of C there are for each of A, and of B (the paper's f_c)."""
FILE = "stocks_1min.parquet"
TICKERS = {"A": ("BAC", "JPM"), "B": ("AAPL", "MSFT"), "C": ("GOOG",)}
"""Finance, technology, Google: the categories of the paper's pattern."""
MADE_UP, REAL = "made up", "real"
WINDOWS = {MADE_UP: f"{HISTORY} seconds", REAL: f"{HISTORY} minutes"}
"""As long as a history is: real quotes come each minute, those of A and B that are made up each second or so."""


def correlated(sequence: str, window: str, threshold: float = 0.85) -> str:
    """The paper's pattern: neighbours in a, b, c have similar histories, whatever the order of the sequence."""
    steps = ", ".join(f"{variable.upper()} {variable}" for variable in sequence)
    conditions = " AND ".join(f"CORR({x}.history, {y}.history) > {threshold}" for x, y in ("ab", "bc"))
    return f"PATTERN SEQ({steps}) WHERE {conditions} WITHIN {window} RETURN a.price AS price"


class Quotes:
    """The streams that there are: made up, and real where the file is."""

    def __init__(self) -> None:
        self._real, reason = _real_quotes()
        self.names = [MADE_UP] if self._real is None else [MADE_UP, REAL]
        self.notes = [reason] if reason else []

    def events(self, name: str, count: int, share: float) -> pa.Table:
        """About ``count`` quotes: as many of A as of B, and of C the given share of that."""
        if name == REAL and self._real is not None:
            return _with_share(self._real.slice(0, count), share)
        return made_up(count, share)


def made_up(count: int, share: float) -> pa.Table:
    """One quote of A and one of B a second on average."""
    from cepheid.workloads import stock_quotes

    both = 2 + share
    rates = {"A": 1.0, "B": 1.0, "C": share}
    return stock_quotes(int(count * both / 2), rates=rates, per_second=both, history=HISTORY)


def _real_quotes() -> tuple[pa.Table | None, str]:
    """Real minute bars with types and histories, or nothing and the reason."""
    default = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("CEPHEID_DATA", default)) / FILE
    if not path.is_file():
        return None, f"without real quotes: there is no {FILE} in the folder that CEPHEID_DATA names"
    types = {ticker: type_ for type_, tickers in TICKERS.items() for ticker in tickers}
    bars = pa.parquet.read_table(path, columns=["ts", "ticker", "close"])
    bars = bars.filter(pc.is_in(bars["ticker"], pa.array(list(types))))
    parts = []
    for ticker, type_ in types.items():
        mine = bars.filter(pc.equal(bars["ticker"], ticker))
        prices = mine["close"].to_numpy()
        histories = np.lib.stride_tricks.sliding_window_view(prices, HISTORY)
        full = mine.slice(HISTORY - 1)
        names = pa.array([type_] * len(full))
        parts.append(pa.table({"ts": full["ts"], "type": names, "price": full["close"], "history": list(histories)}))
    return pa.concat_tables(parts).sort_by("ts"), ""


def _with_share(quotes: pa.Table, share: float) -> pa.Table:
    """Real quotes with fewer or more of C: some are left out, or all are repeated, as in the paper."""
    is_c = quotes["type"].to_numpy(zero_copy_only=False) == "C"
    others, rare = np.flatnonzero(~is_c), np.flatnonzero(is_c)
    wanted = round(share * len(others) / 2)
    rng = np.random.default_rng(0)
    whole, rest = divmod(wanted, len(rare))
    chosen = np.concatenate([*([rare] * whole), rng.choice(rare, rest, replace=False)])
    return quotes.take(np.sort(np.concatenate([others, chosen])))
