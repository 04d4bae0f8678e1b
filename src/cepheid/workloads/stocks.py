"""Stock quotes: prices as random walks that the market and the sectors move together."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.workloads.arguments import distinct_names, local_start, positive, whole, within
from cepheid.workloads.columns import SECOND, apart, lists, moments, words
from cepheid.workloads.rates import Floats, Rates, pieces_of, types_by_rate

MARKET: Mapping[str, tuple[str, ...]] = {
    "hitech": ("AAPL", "MSFT", "INTC", "CSCO", "NVDA", "GOOG"),
    "finance": ("BAC", "JPM", "WFC", "C", "MS", "GS"),
    "energy": ("XOM", "CVX", "SLB", "COP"),
    "health": ("PFE", "MRK", "ABT", "JNJ"),
    "retail": ("WMT", "HD", "TGT", "COST"),
}
"""The symbols of each sector, if the caller names none."""


def stock_quotes(
    count: int,
    *,
    seed: int = 0,
    symbols: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    rates: Rates | None = None,
    history: int = 0,
    drift: float = 0.0,
    correlation: float = 0.5,
    volatility: float = 0.001,
    per_second: float = 2.0,
    start: datetime.datetime = datetime.datetime(2024, 5, 17, 9, 30),
) -> pa.Table:
    """A stream of stock quotes: ts, type (the symbol), sector, price, change, volume, and history if asked for.

    ``symbols``: a list, or a mapping from sectors to their symbols; if not given, those that ``rates`` names, or 24
    known ones. ``change`` is the difference from the symbol's previous price. ``history=n`` adds the symbol's last
    n prices as a list, this one included; each list is full.

    ``rates``: how often each symbol is quoted compared with the others, as a mapping or in the order of the symbols; if
    not given, the n-th symbol of a sector has 1/n of the rate of the first. A list of pairs ``(length, rates)`` cuts
    the stream into pieces whose rates differ; lengths are relative to each other. ``drift`` changes all rates little by
    little: with 1.0, a rate is typically 2.7 times higher or lower at the end (one standard deviation).

    ``correlation``, from 0 to 1: of the price changes of two symbols of a sector; between sectors it is half of it.
    ``volatility``: the standard deviation of the price change in a minute, relative to the price. ``per_second``:
    quotes of all symbols together. No two quotes have the same time.

    >>> from cepheid.workloads import stock_quotes
    >>> quotes = stock_quotes(1000, rates={"A": 1, "B": 1, "C": 0.1}, history=3)
    >>> quotes.column_names
    ['ts', 'type', 'sector', 'price', 'change', 'volume', 'history']
    >>> row = quotes.slice(0, 1).to_pylist()[0]
    >>> row["history"][-1] == row["price"], round(row["history"][-1] - row["history"][-2], 2) == row["change"]
    (True, True)

    The rarest symbol changes twice in this stream:

    >>> c_rare, a_rare, b_rare = {"A": 1, "B": 1, "C": 0.01}, {"A": 0.01, "B": 1, "C": 1}, {"A": 1, "B": 0.01, "C": 1}
    >>> switching = stock_quotes(3000, rates=[(1000, c_rare), (1000, a_rare), (1000, b_rare)])
    >>> [switching["type"].slice(s, 1000).to_pylist().count("C") > 100 for s in (0, 1000, 2000)]
    [False, True, True]
    """
    whole("count", count)
    whole("history", history, least=0)
    within("drift", drift, 0)
    within("correlation", correlation, 0, 1)
    positive("volatility", volatility)
    positive("per_second", per_second)
    local_start(start)
    pieces = [] if rates is None else pieces_of(rates)
    if symbols is None:
        symbols = tuple(pieces[0][1]) if pieces and isinstance(pieces[0][1], Mapping) else MARKET
    names, sectors, sector_of = _sectors(symbols)
    rng = np.random.default_rng(seed)
    codes, shares = types_by_rate(rng, count, names, pieces or [(1.0, _usual_rates(sector_of))], drift)
    times = np.cumsum(rng.exponential(1 / per_second, count))
    # Quotes before the start, so that the first ones too have a change and a full history.
    before = max(1, history - 1)
    gaps = 1 / (per_second * np.where(shares > 0, shares, 1.0))
    early = (gaps[:, None] * -np.arange(1, before + 1)).reshape(-1)
    order = np.argsort(early, kind="stable")
    every_code = np.concatenate([np.repeat(np.arange(len(names)), before)[order], codes])
    every_time = np.concatenate([early[order], times])
    by_symbol = np.argsort(every_code.astype(np.int32), kind="stable")
    prices = _prices(rng, every_time, every_code, by_symbol, sector_of, correlation, volatility)
    place = np.empty(len(by_symbol), np.int64)
    place[by_symbol] = np.arange(len(by_symbol))
    place = place[len(early) :]
    columns = {
        "ts": moments(start, apart(np.rint(times * SECOND).astype(np.int64))),
        "type": words(names, codes),
        "sector": words(sectors, sector_of[codes]),
        "price": pa.array(prices[place]),
        "change": pa.array(np.round(prices[place] - prices[place - 1], 2) + 0.0),
        "volume": pa.array(100 * np.ceil(rng.lognormal(0.3, 1.2, count)).astype(np.int64)),
    }
    if history:
        columns["history"] = lists(np.lib.stride_tricks.sliding_window_view(prices, history)[place - history + 1])
    return pa.table(columns)


def _sectors(
    symbols: Sequence[str] | Mapping[str, Sequence[str]],
) -> tuple[tuple[str, ...], tuple[str, ...], npt.NDArray[np.int64]]:
    """The symbols, the sectors, and the number of each symbol's sector."""
    if isinstance(symbols, Mapping):
        sector = [(symbol, name) for name, members in symbols.items() for symbol in members]
    else:
        known = {symbol: name for name, members in MARKET.items() for symbol in members}
        sector = [(symbol, known.get(symbol, "other")) for symbol in distinct_names("symbols", symbols)]
    names = distinct_names("symbols", [symbol for symbol, _ in sector])
    sectors = tuple(dict.fromkeys(name for _, name in sector))
    return names, sectors, np.array([sectors.index(name) for _, name in sector])


def _usual_rates(sector_of: npt.NDArray[np.int64]) -> list[float]:
    return [1 / (1 + int((sector_of[:number] == sector).sum())) for number, sector in enumerate(sector_of)]


def _prices(
    rng: np.random.Generator,
    times: Floats,
    codes: npt.NDArray[np.int64],
    by_symbol: npt.NDArray[np.int64],
    sector_of: npt.NDArray[np.int64],
    correlation: float,
    volatility: float,
) -> Floats:
    """The prices of all quotes, in the order ``by_symbol``."""
    steps = np.sqrt(np.diff(times, prepend=times[0]))
    shared = np.cumsum(rng.normal(size=len(times)) * steps)  # the market
    sectors = sector_of[codes]
    for sector in range(sector_of.max() + 1):
        here = sectors == sector
        shared[here] += np.cumsum(rng.normal(size=len(times)) * steps)[here]
    sizes = np.bincount(codes, minlength=len(sector_of))
    firsts = np.cumsum(sizes) - sizes
    own_steps = np.diff(times[by_symbol], prepend=0.0)
    own_steps[firsts] = 0
    own = np.cumsum(rng.normal(size=len(times)) * np.sqrt(own_steps))
    # Market and sector have half of the shared variance each.
    walk = np.sqrt(correlation / 2) * shared[by_symbol] + np.sqrt(1 - correlation) * own
    walk -= np.repeat(walk[firsts], sizes)
    opening = rng.lognormal(np.log(80), 0.6, len(sector_of))
    cents = np.rint(100 * np.repeat(opening, sizes) * np.exp(volatility / np.sqrt(60) * walk))
    prices: Floats = np.maximum(cents, 1.0) / 100
    return prices
