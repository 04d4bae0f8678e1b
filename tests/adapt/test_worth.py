"""A plan is changed where that saves a part of the work that is worth it, and left alone elsewhere."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.adapt import follower, judged, looking, worth
from cepheid.adapt.adapting import Adapting


def changes(window: int, **options: Any) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    shares = [(1, 1, 0.02), (0.02, 1, 1)]
    kinds = np.concatenate([rng.choice(list("ABC"), 6_000, p=np.array(p) / sum(p)) for p in shares])
    table = pa.table({"ts": np.arange(len(kinds)), "type": kinds, "x": rng.random(len(kinds))})
    pattern = cepheid.parse(f"PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN {window}")
    engine = cepheid.Engine([pattern], adapt=cepheid.Invariant(), check_every=500, **options)
    session = engine.open()
    for start in range(0, len(table), 100):
        session.push(table.slice(start, 100), watermark=start)
    found: list[dict[str, Any]] = session.report()["adaptation"]["changes"]
    return found


def test_much_work_is_saved() -> None:
    found = changes(1_000, planner="greedy")
    assert any(change["new"] == "((a ⋈ b) ⋈ c)" for change in found)
    assert all(change["estimated_gain"] > 0.05 for change in found)


def test_what_is_nothing_beside_taking_in_the_events_is_not() -> None:
    """In such windows an event makes a few candidates: whatever the plan, it is all the same."""
    assert not changes(30, planner="greedy")


def test_each_branch_follows_by_the_planner_that_was_named() -> None:
    """Patterns that are not planned together do not lose their planner when they are planned again."""
    rng = np.random.default_rng(0)
    kinds = np.concatenate(
        [rng.choice(list("ABCD"), 4_000, p=p) for p in ([0.4, 0.4, 0.02, 0.18], [0.02, 0.4, 0.4, 0.18])]
    )
    table = pa.table({"ts": np.arange(len(kinds)), "type": kinds, "x": rng.random(len(kinds))})
    text = "PATTERN OR(SEQ(A a, B b, C c), SEQ(B d, C e, D f)) WHERE a.x < b.x AND b.x < c.x AND d.x > e.x WITHIN 600"
    session = cepheid.Engine(
        [cepheid.parse(text)], planner="rate", adapt=cepheid.Unconditional(), check_every=500
    ).open()
    assert not session.plans_together
    for start in range(0, len(table), 100):
        session.push(table.slice(start, 100), watermark=start)
    assert "((a ⋈ b) ⋈ c)" in map(str, session.plans.values()), "by rate alone, a comes first by now"


def silent_for_a_while(windows: float, *, cautious: bool = True) -> bool:
    """Whether a plan began with c, which is the most frequent but silent for so many windows."""
    rng = np.random.default_rng(0)
    usual, silence = [0.2, 0.2, 0.6, 0.0], [0.2, 0.2, 0.0, 0.6]
    kinds = np.concatenate(
        [rng.choice(list("ABC-"), round(2_000 * n), p=p) for n, p in ((8, usual), (windows, silence), (4, usual))]
    )
    table = pa.table({"ts": np.arange(len(kinds)), "type": kinds, "x": rng.random(len(kinds))})
    pattern = cepheid.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x + 0.8 < b.x AND b.x + 0.8 < c.x WITHIN 2000")
    adapt = cepheid.Unconditional(cautious=cautious)
    session = cepheid.Engine([pattern], planner="greedy", adapt=adapt, check_every=2_000).open()
    for start in range(0, len(table), 200):
        session.push(table.slice(start, 200), watermark=start)
    return any(change["new"].startswith("((c") for change in session.report()["adaptation"]["changes"])


def test_what_is_silent_for_a_moment_may_be_back_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth, "EVENT", 1)
    assert not silent_for_a_while(1.8)
    monkeypatch.setattr(worth, "NOW", 1.0)
    assert silent_for_a_while(1.8), "without the looks before"


def test_what_stays_silent_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth, "EVENT", 1)
    assert silent_for_a_while(4.0)


def wavering(gains: list[float], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The looks at which a plan is changed that makes so many times as much work as the other one, at each look."""
    plans = {"old": [1_000.0 * gain for gain in gains], "new": [1_000.0] * len(gains)}
    monkeypatch.setattr(worth, "EVENT", 0)
    monkeypatch.setattr(judged, "cost", lambda plan, look: plans[plan][look])
    this = follower.Follower(Adapting(cepheid.Unconditional(), "greedy"))
    changes = []
    for look in range(len(gains)):
        if this._compared("branch", "old", "new", look, 1.0)[2]:  # type: ignore[arg-type]
            changes.append(look)
        this._past.setdefault("branch", deque(maxlen=looking.PAST)).append(look)  # type: ignore[arg-type]
    return changes


def test_a_stream_that_wavers_without_end_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not wavering([0.6, 0.5, 1.8, 0.6, 2.0, 0.4, 1.6, 0.5, 0.6, 2.2, 0.5], monkeypatch)


def test_little_that_lasts_is_gained_a_little_later_and_much_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wavering([0.8] * 6 + [1.4] * 5, monkeypatch)[0] == 8
    assert wavering([0.8] * 6 + [4.0] * 5, monkeypatch)[0] == 6
    assert wavering([1.2], monkeypatch) == [0], "what was never known before"
    assert wavering([1.05, 1.4, 1.4], monkeypatch)[0] == 1, "by all looks, where there were few"
    assert not wavering([0.6, 1.4], monkeypatch)


def test_gains_are_weighed_by_the_work_that_is_really_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where next to nothing is expected, a plan that is ten times better is not worth it, unless much is done."""
    plans = {"old": 20.0, "new": 2.0}
    monkeypatch.setattr(judged, "cost", lambda plan, look: plans[plan])
    this = follower.Follower(Adapting(cepheid.Unconditional(), "greedy"))
    this._past["branch"] = deque([0, 1], maxlen=looking.PAST)  # type: ignore[index, list-item]
    assert not this._compared("branch", "old", "new", 2, 1.0)[2]  # type: ignore[arg-type]
    old, new, changes = this._compared("branch", "old", "new", 2, 100.0)  # type: ignore[arg-type]
    assert [old, new] == pytest.approx([2_000, 200])
    assert changes


def test_without_caution_what_is_better_now_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the papers have it, whatever it saves."""
    monkeypatch.setattr(worth, "WORTH", 1e9)
    assert not silent_for_a_while(4.0)
    assert silent_for_a_while(4.0, cautious=False)


@pytest.mark.parametrize(
    ("events", "work", "due"),
    [(10_000, 200, False), (100, 2_000, True), (10, 2_000, False)],
    ids=["as before", "much more", "much more, of a few events"],
)
def test_where_much_more_work_is_made_it_is_looked_at_sooner(events: int, work: int, due: bool) -> None:
    """Though looks have taken all the time that they may: a plan that is the worst of all by now costs more."""
    following = follower.Follower(Adapting(cepheid.Invariant(), "greedy"))
    following.checks, following.seconds.planning, following.seconds.all = 1, 0.05, 1.0
    following._mark, following._rate = (1_000, 0, 50_000), 400.0
    session: Any = SimpleNamespace(
        events=1_000 + events, work_of=lambda plans: 50_000 + work * events, plans={}, plans_together=False
    )
    assert following._is_time(session) == due


def test_what_is_gone_is_forgotten() -> None:
    """Patterns come and go; a session that runs for months does not remember them all."""
    rng = np.random.default_rng(0)
    table = pa.table({"ts": range(4_000), "type": rng.choice(list("ABC"), 4_000), "x": rng.random(4_000)})
    first, second = (
        cepheid.parse(f"NAME {name} PATTERN SEQ(A a, B b, C c) WHERE a.x < {part} * c.x WITHIN 300")
        for name, part in (("one", 0.5), ("two", 0.4))
    )
    engine = cepheid.Engine([first], planner="greedy", adapt=cepheid.Invariant(), check_every=200)
    session = engine.open()
    session.add(second)
    for start in range(0, 4_000, 100):
        if start == 2_000:
            session.remove("one")
        session.push(table.slice(start, 100), watermark=start)
    assert session._follower is not None
    for known in (session._follower._watched, session._follower._past, session._follower._memories):
        assert set(known) == set(session.plans), "what is there is known, and nothing else"
