"""Soccer positions."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest

from cepheid.workloads import soccer_positions


def test_everybody_is_on_the_pitch_and_moves_like_a_person() -> None:
    table = soccer_positions(100_000, seed=1)
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    assert x.min() >= 0
    assert x.max() <= 105
    assert y.min() >= 0
    assert y.max() <= 68
    players = table.filter(pc.and_(pc.is_valid(table["player"]), pc.not_equal(table["type"], "Possession")))
    speed = players["speed"].to_numpy()
    assert 0.5 < np.median(speed) < 3
    assert speed.max() < 10
    assert np.quantile(np.abs(players["acceleration"].to_numpy()), 0.99) < 10
    ball = table.filter(pc.equal(table["type"], "Ball"))["speed"].to_numpy()
    assert 10 < ball.max() < 60


def test_speed_and_acceleration_follow_from_the_positions() -> None:
    table = soccer_positions(5000, seed=2, hertz=10)
    rows = table.filter(pc.equal(table["type"], "H7"))
    x, y, speed = (rows[name].to_numpy() for name in ("x", "y", "speed"))
    assert speed[1:] == pytest.approx(np.hypot(np.diff(x), np.diff(y)) * 10, abs=0.15)
    assert rows["acceleration"].to_numpy()[1:] == pytest.approx(np.diff(speed) * 10, abs=0.15)


def test_each_object_is_reported_so_many_times_a_second() -> None:
    table = soccer_positions(23 * 25 * 4, seed=3)
    counts = {row["values"]: row["counts"] for row in table["type"].value_counts().to_pylist()}
    people = {f"{team}{number}" for team in "HA" for number in range(1, 12)}
    assert set(counts) == {"Ball", "Possession"} | people
    assert all(99 <= counts[name] <= 100 for name in people)


def test_who_wins_the_ball_is_where_it_is() -> None:
    rows = soccer_positions(60_000, seed=4).to_pylist()
    won = [(row, rows[number + 1]) for number, row in enumerate(rows[:-1]) if row["type"] == "Possession"]
    assert len(won) > 10
    assert len({row["player"] for row, _ in won}) > 5
    for row, ball in won:
        assert ball["type"] == "Ball"
        assert row["team"] == {"H": "home", "A": "away"}[row["player"][0]]
        assert np.hypot(row["x"] - ball["x"], row["y"] - ball["y"]) < 0.1


@pytest.mark.parametrize("players", [4, 5, 7, 11, 15])
def test_teams_of_any_size(players: int) -> None:
    table = soccer_positions(5000, players=players)
    assert len(set(table["player"].to_pylist()) - {None}) == 2 * players
