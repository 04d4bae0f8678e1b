"""Stock quotes."""

from __future__ import annotations

import numpy as np
import pytest

from cepheid.workloads import stock_quotes


def test_the_change_is_the_difference_from_the_previous_price_of_the_symbol() -> None:
    last: dict[str, float] = {}
    for row in stock_quotes(5000, seed=1).to_pylist():
        assert row["price"] > 0
        assert row["volume"] > 0
        if row["type"] in last:
            assert row["change"] == pytest.approx(row["price"] - last[row["type"]], abs=1e-9)
        last[row["type"]] = row["price"]
    assert len(last) == 24


def test_each_history_is_full_and_continues_the_one_before() -> None:
    last: dict[str, list[float]] = {}
    for row in stock_quotes(2000, seed=1, history=6, rates={"A": 1, "B": 0.3, "C": 0.01}).to_pylist():
        history = row["history"]
        assert len(history) == 6
        assert history[-1] == row["price"]
        assert row["change"] == pytest.approx(history[-1] - history[-2], abs=1e-9)
        if row["type"] in last:
            assert history[:-1] == last[row["type"]][1:]
        last[row["type"]] = history


@pytest.mark.parametrize(
    "rates", [{"A": 1, "B": 1, "C": 0.01}, [1, 1, 0.01], [(1, [1, 1, 0.01])], np.array([1, 1, 0.01])]
)
def test_symbols_come_at_their_rates(rates) -> None:
    types = stock_quotes(20_000, symbols=["A", "B", "C"], rates=rates)["type"].to_pylist()
    assert types.count("A") / types.count("B") == pytest.approx(1, rel=0.1)
    assert types.count("C") / 20_000 == pytest.approx(0.01 / 2.01, rel=0.3)


def test_rates_change_exactly_where_a_piece_ends() -> None:
    table = stock_quotes(1000, rates=[(1, {"A": 1, "B": 0}), (3, {"A": 0, "B": 1}), (1, {"A": 1, "B": 0})])
    assert "".join(table["type"].to_pylist()) == "A" * 200 + "B" * 600 + "A" * 200


def test_drift_changes_the_rates_over_the_stream() -> None:
    def change(drift: float) -> float:
        types = np.array(
            stock_quotes(40_000, seed=3, symbols=[*"ABCDEF"], rates=[1] * 6, drift=drift)["type"].to_pylist()
        )
        first, last = ([np.mean(part == s) for s in "ABCDEF"] for part in (types[:4000], types[-4000:]))
        return float(np.abs(np.log(np.divide(first, last))).max())

    assert change(0.0) < 0.2
    assert change(1.0) > 0.7


def test_stocks_of_a_sector_move_together() -> None:
    sectors = {"one": ["A", "B"], "two": ["C", "D"]}
    table = stock_quotes(40_000, seed=2, symbols=sectors, rates=[1, 1, 1, 1], correlation=0.8)
    assert set(zip(table["type"].to_pylist(), table["sector"].to_pylist(), strict=True)) == {
        ("A", "one"), ("B", "one"), ("C", "two"), ("D", "two"),
    }  # fmt: skip
    minutes = table["ts"].to_numpy().astype("datetime64[m]").astype(int)
    types, prices = np.array(table["type"].to_pylist()), table["price"].to_numpy()
    clock = np.arange(minutes[0] + 1, minutes[-1])
    moves = {}
    for symbol in "ABCD":
        mine = types == symbol
        moves[symbol] = np.diff(np.log(prices[mine][np.searchsorted(minutes[mine], clock) - 1]))
    assert np.corrcoef(moves["A"], moves["B"])[0, 1] == pytest.approx(0.8, abs=0.1)
    assert np.corrcoef(moves["A"], moves["C"])[0, 1] == pytest.approx(0.4, abs=0.15)
    assert moves["D"].std() == pytest.approx(0.001, rel=0.1)


def test_unknown_symbols_have_the_sector_other() -> None:
    table = stock_quotes(100, symbols=["AAPL", "MINE"])
    assert set(table["sector"].to_pylist()) == {"hitech", "other"}
