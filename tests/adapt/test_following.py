"""Plans that follow the data lose and double nothing, and do less work."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.adapt import record
from cepheid.adapt.policies import Invariant, Policy, Threshold, Unconditional
from cepheid.engine.joint import Joint
from cepheid.local.match import match, prepare
from cepheid.local.match import run as run_through
from tests.contracts.test_engine_is_exact import Case, canonical, cases, expected, schema

POLICIES: list[Policy] = [Unconditional(), Threshold(0.3), Invariant(), Invariant(k=2, distance=0.1),
                          Invariant(distance="average"), Invariant(distance="meta")]  # fmt: skip
PLANNERS = ["rate", "greedy", "dp_left", "zstream", "dp_bushy", "auto"]


@given(cases, st.sampled_from(POLICIES), st.sampled_from(PLANNERS), st.sampled_from(["rebuild", "parallel"]))
def test_every_policy_planner_and_migration_is_exact(case: Case, policy: Policy, planner: str, migrate: Any) -> None:
    pattern, events, options = case
    table = pa.Table.from_pylist(events, schema(pattern))
    found = match(
        pattern, table, planner=planner, adapt=policy, check_every=1, migrate=migrate, batch_size=1, **options
    )
    assert canonical(found.to_pylist()) == expected(case)


def drifting(pieces: list[tuple[float, float, float]], size: int = 6000) -> pa.Table:
    rng = np.random.default_rng(0)
    kinds = [np.array(["A", "B", "C"])[rng.choice(3, size, p=np.array(p) / sum(p))] for p in pieces]
    count = size * len(pieces)
    return pa.table({"ts": np.arange(count), "type": np.concatenate(kinds), "x": rng.random(count)})


PATTERN = cepheid.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x + c.x > 1.9 WITHIN 200")


def run(
    table: pa.Table, adapt: Any, migrate: Any = "rebuild", planner: str = "greedy", check_every: Any = 500
) -> tuple[int, dict[str, Any]]:
    engine = cepheid.Engine([PATTERN], planner=planner, adapt=adapt, check_every=check_every, migrate=migrate)
    session = engine.open()
    matches = 0
    for start in range(0, table.num_rows, 100):
        matches += session.push(table.slice(start, 100), watermark=start).num_rows
    return matches + session.close().num_rows, session.report()


def test_who_knows_that_something_changed_asks_for_a_look() -> None:
    table = drifting([(1, 1, 0.02)])
    session = cepheid.Engine([PATTERN], planner="greedy", adapt=Invariant(), check_every=10**9).open()
    assert session.look() == 0  # nothing has come
    matches, changed = 0, []
    for start in range(0, table.num_rows, 500):
        matches += session.push(table.slice(start, 500), watermark=start).num_rows
        if start in (3000, 3500):
            changed.append(session.look())
    assert changed == [1, 0]
    assert session.report()["adaptation"]["checks"] == 2
    assert matches + session.close().num_rows == run(table, None)[0]
    with pytest.raises(ValueError, match="closed"):
        session.look()
    assert cepheid.Engine([PATTERN]).open().look() == 0


@pytest.mark.parametrize("migrate", ["rebuild", "parallel"])
@pytest.mark.parametrize("planner", ["greedy", "zstream", "auto"])
def test_a_stream_whose_rare_type_changes(planner: str, migrate: str) -> None:
    table = drifting([(1, 1, 0.02), (0.02, 1, 1), (1, 1, 0.02)])
    matches, static = run(table, None, planner=planner)
    found, report = run(table, Invariant(), migrate, planner)
    assert found == matches > 0
    changes = report["adaptation"]["changes"]
    assert (1 if planner == "zstream" else 2) <= len(changes) <= 10
    if planner != "zstream":  # of three variables it has two trees only
        assert report["condition evaluations"] < 0.7 * static["condition evaluations"]
    assert all(change["old"] != change["new"] for change in changes)
    if planner != "zstream":
        assert any(isinstance(change["observed_gain"], float) for change in changes)


@pytest.mark.parametrize("check_every", [50, 100, 200, 1000])
def test_however_often_one_looks_a_change_is_seen(check_every: int) -> None:
    """In the middle of a change another plan may be the planner's choice and no better yet: it is tried again."""
    size = max(3_000, 6 * check_every)  # what saves little is seen after half as many looks
    table = drifting([(1, 1, 0.02), (0.02, 1, 1), (1, 1, 0.02), (0.02, 1, 1)], size=size)
    pattern = cepheid.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x + 0.4 < b.x AND b.x + 0.4 < c.x WITHIN 400")
    session = cepheid.Engine([pattern], planner="greedy", adapt=True, check_every=check_every).open()
    plans: list[str] = []
    for start in range(0, table.num_rows, 50):
        session.push(table.slice(start, 50), watermark=start)
        plans += map(str, session.plans.values())
    first, second, third, fourth = (plans[(part + 1) * size // 50 - 2] for part in range(4))
    assert first == third != second == fourth


def test_an_invariant_changes_less_often_than_the_others() -> None:
    table = drifting([(1.0, 1.0, 1.0)])  # by chance alone, now one type is the rarest, now another

    def changes(policy: Policy) -> int:
        pattern = cepheid.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x > 0.6 AND b.x > 0.6 AND c.x > 0.6 WITHIN 60")
        session = cepheid.Engine([pattern], planner="rate", adapt=policy, check_every=100).open()
        for start in range(0, table.num_rows, 100):
            session.push(table.slice(start, 100), watermark=start)
        return int(session.report()["adaptation"]["changed"])

    always, threshold, invariant = changes(Unconditional()), changes(Threshold(0.1)), changes(Invariant(distance=0.5))
    assert invariant <= threshold <= always
    assert invariant < always


@pytest.mark.parametrize("check_every", [None, 500, "500 events", "500 seconds", dt.timedelta(seconds=500)])
def test_how_often_to_look(check_every: Any) -> None:
    table = drifting([(1, 1, 0.02), (0.02, 1, 1)], size=3000)
    times = pa.array(np.arange(6000) * 1_000_000, pa.timestamp("us"))
    pattern = cepheid.parse(str(PATTERN).replace("WITHIN 200", "WITHIN 200 seconds"))
    session = cepheid.Engine([pattern], planner="greedy", adapt=Invariant(), check_every=check_every).open()
    for start in range(0, 6000, 50):
        session.push(table.set_column(0, "ts", times).slice(start, 50), watermark=times[start])
    found = session.report()["adaptation"]
    if check_every is not None:
        assert found["checks"] == (12 if check_every in (500, "500 events") else 11)
    assert found["changed"] == len(found["changes"])
    assert set(found["seconds"]) == {"estimating", "deciding", "planning", "changing", "all"}
    assert 0 <= found["overhead"] < 1
    for change in found["changes"]:
        assert change["time"].startswith("1970-01-01 0")
        assert change["pattern"] == "pattern_1"


@pytest.mark.parametrize("migrate", ["rebuild", "parallel"])
def test_batches_are_no_larger_than_the_time_between_two_looks(migrate: Any) -> None:
    """Looks are taken between batches, and nobody is asked how large these are to be."""
    table = drifting([(1, 1, 0.02), (0.02, 1, 1)])
    engine, table = prepare(PATTERN, table, planner="greedy", adapt=Invariant(), check_every=500, migrate=migrate)
    session = engine.open()
    found = run_through(session, table, "ts")
    report = session.report()["adaptation"]
    assert report["checks"] >= 22
    assert report["changed"] > 0
    assert found.num_rows == match(PATTERN, table).num_rows


def test_where_nobody_says_how_often_to_look_batches_are_small_all_the_same() -> None:
    table, sizes = drifting([(1, 1, 0.02), (0.02, 1, 1)]), dict[bool, list[int]]()
    for adapt in (False, True):
        match(PATTERN, table, adapt=adapt, progress=sizes.setdefault(adapt, []).append)
    assert sizes == {False: [12_000], True: [4_096, 4_096, 3_808]}


def test_it_is_counted_how_often_planning_again_gave_the_same_plan() -> None:
    _, report = run(drifting([(1, 1, 0.02), (0.02, 1, 1)]), Unconditional())
    found = report["adaptation"]
    assert found["replanned"] == found["checks"]
    assert 0 < found["changed"] <= found["replanned"] - found["confirmed"] < found["replanned"]
    _, report = run(drifting([(1, 1, 0.02), (0.02, 1, 1)]), Invariant())
    assert report["adaptation"]["replanned"] < found["replanned"]


def test_combinations_that_are_counted_while_planning_are_estimating(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count()  # a second each time that somebody looks at the clock
    monkeypatch.setattr("cepheid.adapt.record.time.perf_counter", lambda: float(next(now)))
    seconds = record.Seconds()
    joint = record.Timed(lambda names: 0.5, seconds)
    with seconds.spent("planning"):
        assert joint(frozenset("ab")) == joint(frozenset("bc")) == 0.5
    assert (seconds.estimating, seconds.planning) == (2.0, 3.0)


@pytest.mark.parametrize(("options", "said"), [
    ({"order": ["c", "b", "a"]}, "with order=, the plan is the chain that it names, .*: leave order= out"),
    ({"planner": "pattern_order"}, "with planner='pattern_order', the plan is the same whatever comes"),
    ({"planner": "dynamic"}, "with planner='dynamic', the plan is the same whatever comes, .* name another one"),
])  # fmt: skip
def test_plans_that_are_never_changed_are_said_to_be(options: Any, said: str) -> None:
    with pytest.warns(UserWarning, match=said):
        engine = cepheid.Engine([PATTERN], adapt=Unconditional(cautious=False), check_every=100, **options)
    session = engine.open()
    session.push(drifting([(1, 1, 0.02)], size=500))
    assert "adaptation" not in session.report()
    cepheid.Engine([PATTERN], **options)


def test_a_plan_that_is_written_as_the_first_of_several_is_changed_with_them() -> None:
    """``planner="pattern_order"`` is what a search for common work begins with: there it does change."""
    other = cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 100")
    sharing = cepheid.Sharing(steps=5)
    cepheid.Engine([PATTERN, other], planner="pattern_order", share=sharing, adapt=True)


def test_where_partitions_are_counted_a_change_is_made_at_once() -> None:
    """The last events of one that falls silent are never too old, so that an old plan beside would stay for ever."""
    rng = np.random.default_rng(1)
    pattern = cepheid.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x PARTITION BY k WITHIN 30 EVENTS")
    table = drifting([(1, 1, 0.02), (0.02, 1, 1), (1, 1, 0.02)], size=1500)
    table = table.append_column("k", pa.array(rng.integers(0, 3, len(table)) + (np.arange(len(table)) > 1000)))
    policy = Unconditional(cautious=False)
    engine = cepheid.Engine([pattern], planner="greedy", adapt=policy, check_every=250, migrate="parallel")
    session, matches = engine.open(), 0
    for start in range(0, len(table), 50):
        matches += session.push(table.slice(start, 50), watermark=start).num_rows
        assert not session.changing
    assert session.report()["adaptation"]["changed"] >= 2
    assert matches + session.close().num_rows == match(pattern, table).num_rows


def test_what_is_known_is_of_the_last_window_however_much_is_kept() -> None:
    """Without a watermark nothing is too old to be kept."""
    table = drifting([(1, 1, 1)], size=2000)
    x = np.where(np.arange(2000) < 1000, 0.0, table["x"].to_numpy())  # the first half holds no condition
    table = table.set_column(2, "x", pa.array(x))
    pattern = cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x + b.x > 1 WITHIN 200")
    known = []
    for sends_watermark in (True, False):
        session = cepheid.Engine([pattern]).open()
        for start in range(0, 2000, 100):
            session.push(table.slice(start, 100), watermark=start + 99 if sends_watermark else None)
        known += [of.selectivity for of in session.estimates().values()]
    kept, all_kept = (next(iter(of.values())) for of in known)
    assert 0.4 < kept < 0.6
    assert all_kept == pytest.approx(kept, abs=0.05)


def test_a_branch_that_several_patterns_have_is_changed_once_and_named_after_all() -> None:
    text = str(PATTERN)
    patterns = [cepheid.parse(f"NAME {name} {text}") for name in ("one", "two")]
    table = drifting([(1, 1, 0.02), (0.02, 1, 1)])
    session = cepheid.Engine(patterns, planner="greedy", adapt=Unconditional(), check_every=500).open()
    for start in range(0, len(table), 100):
        session.push(table.slice(start, 100), watermark=start)
    report = session.report()["adaptation"]
    assert 0 < report["changed"] == len(report["changes"])
    assert {change["pattern"] for change in report["changes"]} == {"one, two"}
    assert len({change["events"] for change in report["changes"]}) == report["changed"]


def test_a_time_needs_a_clock() -> None:
    engine = cepheid.Engine([PATTERN], adapt=True, check_every="10 minutes")
    events = drifting([(1, 1, 1)], size=10)
    for refused in (lambda: engine.open().push(events), lambda: engine.output_schema(events.schema)):
        with pytest.raises(ValueError, match="check_every is a length of time, and the time column 'ts' holds numbers"):
            refused()


def test_a_look_that_fails_leaves_a_session_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The matches of its push are lost, and a plan may be half changed."""
    table = drifting([(1, 1, 1)], size=1000)

    def fails(*_: object) -> None:
        raise MemoryError

    for ask in (lambda session: session.push(table.slice(500)), lambda session: session.look()):
        session = cepheid.Engine([PATTERN], adapt=Unconditional(), check_every=600).open()
        session.push(table.slice(0, 500))
        with monkeypatch.context() as patch:
            patch.setattr(session, "estimates", fails)
            with pytest.raises(MemoryError):
                ask(session)
        with pytest.raises(ValueError, match="failed half-way"):
            session.push(table.slice(0, 500))


def test_a_restored_session_knows_what_it_did_and_learned() -> None:
    table = drifting([(1, 1, 0.02), (0.02, 1, 1), (1, 1, 0.02)], size=2000)
    engine = cepheid.Engine([PATTERN], planner="greedy", adapt=Invariant(distance="meta"), check_every=100)
    session = engine.open()
    for start in range(0, table.num_rows, 50):
        session.push(table.slice(start, 50), watermark=start)
    restored = engine.restore(session.snapshot())
    assert session.report()["adaptation"]["changes"]
    assert restored.report()["adaptation"] == session.report()["adaptation"]
    assert restored._follower is not None
    assert session._follower is not None
    assert restored._follower._memories == session._follower._memories


def test_a_snapshot_in_the_middle_of_a_change() -> None:
    table = drifting([(1, 1, 0.02), (0.02, 1, 1)], size=2000)
    engine = cepheid.Engine([PATTERN], planner="greedy", adapt=Unconditional(), check_every=100, migrate="parallel")
    session, matches = engine.open(), 0
    changing = 0
    for start in range(0, table.num_rows, 50):
        matches += session.push(table.slice(start, 50), watermark=start).num_rows
        changing += any(run.is_changing for run in session._states[0].runs.values())
        session = engine.restore(session.snapshot())
    assert changing > 0
    assert matches + session.close().num_rows == match(PATTERN, table).num_rows


@pytest.mark.parametrize("restores", [False, True])
def test_a_pattern_is_removed_while_a_change_of_its_plan_is_judged(restores: bool) -> None:
    table = drifting([(1, 1, 0.02), (0.02, 1, 1)], size=2000)
    patterns = [cepheid.parse(f"NAME one {PATTERN}"), cepheid.parse("NAME two PATTERN SEQ(B b, C c) WITHIN 9")]
    engine = cepheid.Engine(patterns, share="none", adapt=Unconditional(), check_every=100)
    session, matches, changed, removed = engine.open(), 0, 0, False
    for start in range(0, table.num_rows, 50):
        found = session.push(table.slice(start, 50), watermark=start)["pattern"].to_pylist()
        matches += found.count("two")
        now = session.report()["adaptation"]["changed"]
        if now > changed and not removed and start > 2000:
            session.remove("one")
            removed = True
            blob = session.snapshot()
            if restores:
                session = cepheid.Engine(patterns[1:], share="none", adapt=Unconditional(), check_every=100).restore(
                    blob
                )
        changed = now
    assert removed
    assert matches + session.close().num_rows == match(patterns[1], table).num_rows


@pytest.mark.parametrize("planner", ["auto", "dp_left", "dp_bushy"])
def test_a_look_at_a_long_pattern_asks_for_few_estimates(planner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All subsets of eleven variables are two thousand. A search over them may take seconds, for which the stream waits."""
    asked: list[frozenset[str]] = []
    share = Joint.share

    def counted(joint: Joint, names: frozenset[str]) -> float | None:
        asked.append(names)
        return share(joint, names)

    monkeypatch.setattr(Joint, "share", counted)
    names, rng = "ABCDEFGHIJK", np.random.default_rng(0)
    variables = [f"v{place}" for place in range(len(names))]
    pattern = cepheid.parse(
        f"PATTERN SEQ({', '.join(f'{name} {v}' for name, v in zip(names, variables, strict=True))}) WHERE "
        + " AND ".join(f"{x}.x < {y}.x" for x, y in itertools.pairwise(variables)) + " WITHIN 60"
    )  # fmt: skip
    table = pa.table({"ts": range(900), "type": rng.choice(list(names), 900), "x": rng.random(900)})
    session = cepheid.Engine([pattern], planner=planner, adapt=True, check_every=300).open()
    for start in range(0, 900, 300):
        asked.clear()
        session.push(table.slice(start, 300), watermark=start)
        assert 0 < len(asked) < len(names) ** 3
    assert session.report()["adaptation"]["checks"] == 3
