"""Card payments and the other events of a bank."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

import cepheid
from cepheid.workloads import card_payments

PATTERN = Path(__file__).parents[2] / "examples" / "account_taken.cep"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("count", "accounts", "robbed"), [(600, 100, 1), (30_000, 5_000, 5), (30_000, 100, 1)])
def test_the_example_finds_the_robbed_accounts_and_no_others(seed: int, count: int, accounts: int, robbed: int) -> None:
    found = cepheid.match(PATTERN.read_text(encoding="utf-8"), card_payments(count, seed=seed, accounts=accounts))
    assert len(found["account"].unique()) == robbed
    assert found.num_rows == 5 * robbed  # three of the four transfers, or all four


def test_without_fraud_nobody_is_robbed() -> None:
    assert cepheid.match(PATTERN.read_text(encoding="utf-8"), card_payments(30_000, fraud=0)).num_rows == 0


def test_amounts_and_merchants_are_there_where_they_make_sense() -> None:
    table = card_payments(5000)
    money = pc.is_in(table["type"], pc.cast(["Transfer", "Payment"], "string"))
    assert pc.is_valid(table["amount"]).equals(money)
    assert pc.is_valid(table["merchant"]).equals(pc.equal(table["type"], "Payment"))
    assert pc.min(table["amount"]).as_py() > 0


def test_an_account_has_one_home() -> None:
    table = card_payments(5000, accounts=50)
    homes = set(zip(table["account"].to_pylist(), table["home"].to_pylist(), strict=True))
    assert len(homes) == 50
    away = pc.mean(pc.cast(pc.not_equal(table["home"], table["country"]), "float64")).as_py()
    assert 0 < away < 0.1


def test_the_number_of_events_in_a_day_decides_how_long_the_stream_is() -> None:
    times = card_payments(20_000, accounts=100, daily=50)["ts"]
    assert (times[-1].as_py() - times[0].as_py()).days == pytest.approx(4, abs=1)
