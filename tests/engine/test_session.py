"""Sessions: what is reported when, what is late, and how much is kept."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.joiner import LimitError
from cepheid.plan.tree import Join, Leaf, chain, search

MONOTONE = "PATTERN SEQ(A a, B b) WITHIN 10 RETURN a.ts AS x, b.ts AS y"
WAITING = "PATTERN SEQ(A a, B b, NOT(C c)) WITHIN 10 RETURN a.ts AS x, b.ts AS y"


def events(*rows: tuple[int, str]) -> pa.Table:
    return pa.table(
        {"ts": pa.array([ts for ts, _ in rows], pa.int64()), "type": pa.array([k for _, k in rows], pa.string())}
    )


def open_session(pattern: str) -> Any:
    return cepheid.Engine([cepheid.parse(pattern)]).open()


def pairs(table: pa.Table) -> list[tuple[int, int]]:
    return [(row["x"], row["y"]) for row in table.to_pylist()]


def test_a_monotone_match_is_reported_with_its_last_event_whatever_the_order() -> None:
    session = open_session(MONOTONE)
    assert pairs(session.push(events((5, "B")))) == []
    assert pairs(session.push(events((1, "A")))) == [(1, 5)]
    assert sorted(pairs(session.push(events((3, "B"), (0, "A"))))) == [(0, 3), (0, 5), (1, 3)]
    assert pairs(session.close()) == []


def test_a_negation_waits_for_the_watermark() -> None:
    session = open_session(WAITING)
    assert pairs(session.push(events((1, "A"), (2, "B")))) == []
    assert pairs(session.push(events(), watermark=11)) == []
    assert pairs(session.push(events((20, "A")), watermark=12)) == [(1, 2)]


def test_a_negated_event_strikes_even_if_it_comes_late_within_the_watermark() -> None:
    session = open_session(WAITING)
    session.push(events((1, "A"), (2, "B"), (15, "A")))
    session.push(events((11, "C")))
    assert pairs(session.push(events(), watermark=30)) == []


@pytest.mark.parametrize("strategy", ["skip_till_next", "strict"])
def test_a_selected_match_is_reported_when_the_watermark_has_passed_it(strategy: str) -> None:
    session = open_session(f"PATTERN SEQ(A a, B b) USING {strategy} WITHIN 1000 RETURN a.ts AS x, b.ts AS y")
    assert pairs(session.push(events((1, "A"), (2, "B"), (5, "A")), watermark=2)) == []  # another B may come at 2
    assert pairs(session.push(events(), watermark=3)) == [(1, 2)]
    assert pairs(session.push(events((6, "B"), (7, "B")), watermark=7)) == [(5, 6)]
    assert pairs(session.close()) == []


def test_a_selected_set_at_the_end_is_reported_when_its_window_has_passed() -> None:
    session = open_session("PATTERN SEQ(A a, KL(B b)) USING skip_till_next WITHIN 10 RETURN a.ts AS x, COUNT(b) AS y")
    assert pairs(session.push(events((1, "A"), (2, "B"), (5, "B")), watermark=11)) == []
    assert pairs(session.push(events((11, "B")), watermark=12)) == [(1, 3)]


def test_closing_decides_what_was_waiting() -> None:
    session = open_session(WAITING)
    session.push(events((1, "A"), (2, "B")))
    assert pairs(session.close()) == [(1, 2)]
    with pytest.raises(ValueError, match="closed"):
        session.push(events((3, "A")))


def test_late_events_are_counted_and_handed_out_and_change_nothing() -> None:
    session = open_session(MONOTONE)
    session.push(events((10, "A")), watermark=10)
    assert pairs(session.push(events((9, "A"), (12, "B"), (10, "A")))) == [(10, 12), (10, 12)]
    assert session.report()["late events"] == 1
    late = session.late_events()
    assert late is not None
    assert late.to_pylist() == [{"ts": 9, "type": "A"}]
    assert session.late_events() is None


def test_the_watermark_does_not_go_back() -> None:
    session = open_session(MONOTONE)
    session.push(events((10, "A")), watermark=10)
    with pytest.raises(ValueError, match="went back, from 10 to 9"):
        session.push(events(), watermark=9)


def test_a_batch_with_other_columns_is_refused() -> None:
    session = open_session(MONOTONE)
    session.push(events((10, "A")))
    with pytest.raises(ValueError, match="columns of this batch differ"):
        session.push(pa.table({"ts": [1], "type": ["A"], "z": [1]}))


@pytest.mark.parametrize("window", ["40", "40 events"])
@pytest.mark.parametrize("planner", ["auto", "dynamic"])
def test_memory_is_bounded_by_the_window(window: str, planner: str) -> None:
    pattern = f"PATTERN SEQ(A a, B b, NOT(C c), KL(D d, 1, 2)) WHERE a.ts + 3 < b.ts WITHIN {window}"
    session = cepheid.Engine([cepheid.parse(pattern)], planner=planner).open()
    sizes = []
    for start in range(0, 40 * 300, 40):
        kinds = "ABD" if start % 120 else "ABDC"
        session.push(events(*((start + i, kinds[i % len(kinds)]) for i in range(40))), watermark=start + 40)
        state = session._states[0]
        run = next(iter(state.runs.values()))
        kept = sum(len(relation) for relation, _ in run.relations())
        sizes.append((state._store.size, kept, len(run.sets), len(run._waiting)))
    early, late = sizes[50:150], sizes[-100:]
    for measure in range(4):
        assert max(s[measure] for s in late) <= 2 * max(s[measure] for s in early)


def test_an_event_of_the_far_future_does_not_keep_all_others() -> None:
    session = open_session(MONOTONE)
    session.push(events((10**9, "A")))
    for start in range(0, 30_000, 100):
        session.push(events(*((start + i, "AB"[i % 2]) for i in range(100))), watermark=start + 100)
    assert session.report()["buffered events"] < 10_000


def test_the_report_has_the_papers_metrics_and_the_funnel_of_each_part() -> None:
    session = open_session("PATTERN SEQ(A a, B b, NOT(C c)) WHERE a.ts + 1 < b.ts AND b.ts <> 7 WITHIN 10")
    session.push(events((1, "A"), (2, "B"), (3, "B"), (7, "B"), (30, "B"), (8, "C"), (31, "A"), (33, "B")))
    session.close()
    report = session.report()
    [leaf, *_] = report["patterns"][0]["branches"][0]
    assert leaf == {
        "kind": "events", "node": "a", "steps": [("A events", 2), ("with every value that is compared", 2)],
        "evaluations": 0, "kept": 0, "peak": 0,
    }  # fmt: skip
    parts = {part["node"]: dict(part["steps"]) for part in report["patterns"][0]["branches"][0]}
    assert parts["b"] == {"B events": 5, "b.ts <> 7": 4, "with every value that is compared": 4}
    join = parts["(a ⋈ b)"]
    assert (join["candidates"], join["in order, in the window, not used twice"], join["a.ts + 1 < b.ts"]) == (3, 3, 2)
    assert parts["NOT(c)"]["rejected"] == 1
    del report["patterns"]
    assert report == {
        "events": 8, "late events": 0, "matches": 1, "candidates": 4, "condition evaluations": 3,
        "rejected by negation": 1, "partial matches": 0, "peak partial matches": 2, "buffered events": 7,
        "peak buffered events": 7,
    }  # fmt: skip


def test_null_is_one_partition_in_every_batch() -> None:
    """What stands in for NULL in the columns of a batch must not tell two batches apart."""
    session = open_session("PATTERN AND(A a, A b) PARTITION BY k WITHIN 10 RETURN a.ts AS x, b.ts AS y")
    first = pa.table({"ts": [1, 2], "type": ["A", "A"], "k": pa.array(["q", None])})
    second = pa.table({"ts": [3, 4], "type": ["A", "A"], "k": pa.array(["p", None])})
    session.push(first)
    assert sorted(pairs(session.push(second))) == [(2, 4), (4, 2)]


def test_skip_till_next_takes_an_event_whose_value_is_missing() -> None:
    """The condition on it is judged with c, when it is too late to take another b."""
    rows = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "B", "C"], "k": pa.array(["p", None, "p", "p"])})
    pattern = "PATTERN SEQ(A a, B b, C c) USING skip_till_next WHERE b.k = c.k WITHIN 10"
    assert cepheid.match(pattern, rows).num_rows == 0


def test_a_push_that_is_refused_changes_nothing() -> None:
    session = open_session(MONOTONE)
    with pytest.raises(ValueError, match="1 of 2 events have no time"):
        session.push(pa.table({"ts": pa.array([1, None]), "type": ["A", "B"]}), watermark=5)
    assert pairs(session.push(events((1, "A"), (2, "B")), watermark=5)) == [(1, 2)]
    assert (session.report()["events"], session.report()["late events"]) == (2, 0)


def test_tied_events_in_a_window_of_events_are_refused_before_any_pattern_sees_them() -> None:
    engine = cepheid.Engine([cepheid.parse(MONOTONE), cepheid.parse("PATTERN SEQ(A c, B d) WITHIN 3 events")])
    session = engine.open()
    with pytest.raises(ValueError, match="two have the same time: 4"):
        session.push(events((4, "A"), (4, "A"), (5, "B")), watermark=6)


def test_what_is_kept_is_limited_too() -> None:
    engine = cepheid.Engine([cepheid.parse("PATTERN SEQ(A a, B b, Z z) WITHIN 100000")], max_partial_matches=1000)
    session = engine.open()
    with pytest.raises(LimitError, match=r"more than 1,000 partial matches over (a, b|b, a)\."):  # noqa: PT012
        for time in range(300):
            session.push(events((time, "AB"[time % 2])))
    with pytest.raises(ValueError, match="a push failed half-way"):
        session.push(events((301, "A")))


def test_wide_events_and_a_long_window_do_not_make_small_pushes_slow() -> None:
    """Events are copied a few times in all, not once for every push that has a match."""
    session = open_session(MONOTONE.replace("WITHIN 10", "WITHIN 100000"))
    copied = 0
    for time in range(3000):
        session.push(events((time, "A" if time < 2999 else "B")), watermark=time)
        session.report()  # nothing is left aside
        store = session._states[0]._store
        copied = max(copied, len(store._pieces))
        if time % 7 == 0:
            store.events(np.array([store.base]))
    assert copied < 50


def test_events_that_complete_nothing_are_put_aside_and_lost_nowhere() -> None:
    three = "PATTERN SEQ(A a, B b, C c) WITHIN 10 RETURN a.ts AS x, c.ts AS y"
    session = open_session(three)
    for time, kind in enumerate("ABAB"):
        assert session.push(events((time, kind)), watermark=time).num_rows == 0
    assert session._states[0]._store.size == 0, "they wait for a C"
    twin = cepheid.Engine([cepheid.parse(three)]).restore(session.snapshot())
    assert session.report()["buffered events"] == twin.report()["buffered events"] == 4
    for one in (session, twin):
        assert sorted(pairs(one.push(events((4, "C")), watermark=4))) == [(0, 4), (0, 4), (2, 4)]
        assert one.report()["events"] == 5


def test_an_event_that_comes_late_completes_a_match_at_once() -> None:
    session = open_session("PATTERN SEQ(A a, B b, C c) WITHIN 10 RETURN a.ts AS x, c.ts AS y")
    session.push(events((5, "C"), (1, "A")))
    assert pairs(session.push(events((6, "B")))) == []
    assert pairs(session.push(events((3, "B")))) == [(1, 5)]
    assert pairs(session.push(events((8, "C")))) == [(1, 8), (1, 8)]


def test_what_is_old_is_forgotten_though_only_the_watermark_comes() -> None:
    session = open_session(MONOTONE)
    session.push(events(*((time, "AB"[time % 2]) for time in range(2000))), watermark=1999)
    for time in range(2000, 2200):
        session.push(events(), watermark=time)
    assert session.report()["buffered events"] == 0


def test_a_late_event_completes_a_match_at_once_though_patterns_came_in_between() -> None:
    session = open_session("NAME one PATTERN SEQ(A a, B b, C c) WITHIN 10 RETURN a.ts AS x, c.ts AS y")
    session.push(events((5, "C"), (1, "A")))
    session.add("NAME two PATTERN SEQ(A a, B b, D c) WITHIN 10 RETURN a.ts AS x, c.ts AS y")
    assert pairs(session.push(events((3, "B")))) == [(1, 5)]
    session.remove("two")
    assert pairs(session.push(events((4, "B")))) == [(1, 5)]


def test_a_search_may_name_the_variables_in_any_order() -> None:
    """Where they stand in its tuples is for the pattern to say; the events of a set are looked up by it."""
    text = "PATTERN SEQ(A a, B b, KL(C c)) WITHIN 10 RETURN a.ts AS x, b.ts AS y"
    table = events((1, "A"), (2, "C"), (3, "B"), (4, "C"))
    found = []
    for names in (("a", "b"), ("b", "a")):
        session = open_session(text)
        session.prepare(table.schema)
        [branch] = session.plans
        session.change_plans({branch: search(names)})
        found.append(pairs(session.push(table)))
    assert found[0] == found[1] == [(1, 3)]


@pytest.mark.parametrize("first", [("a", "b"), ("b", "a")])
def test_a_plan_after_a_search_knows_the_events_of_the_search(first: tuple[str, str]) -> None:
    session = open_session("PATTERN AND(A a, B b) WITHIN 10 RETURN a.ts AS x, b.ts AS y")
    session.push(events((1, "B"), (2, "A")))
    [branch] = session.plans
    left, right = map(Leaf, first)
    for plan in (search(("a", "b")), Join(left, right), Join(right, left), search(("b", "a")), Join(left, right)):
        assert session.change_plans({branch: plan}) == [branch]
    assert pairs(session.push(events((3, "A")))) == [(3, 1)]
    assert pairs(session.push(events((4, "B")))) == [(2, 4), (3, 4)]


def test_a_plan_that_would_go_beyond_the_limits_is_not_taken() -> None:
    """Nothing is left of the nodes that were made for it."""
    engine = cepheid.Engine(
        [cepheid.parse("PATTERN SEQ(A a, B b, C c) WITHIN 1000")], planner="dynamic", max_partial_matches=1000
    )
    session = engine.open()
    session.push(events(*((time, "AB"[time % 2]) for time in range(100))))
    [branch] = session.plans
    for _ in range(2):
        assert session.change_plans({branch: chain(["a", "b", "c"])}) == []
    assert session.push(events((200, "C"))).num_rows == 1275
    assert session.change_plans({branch: chain(["c", "b", "a"])}) == [branch]


@pytest.mark.parametrize("watermark", [1.5, "noon", dt.datetime(2024, 1, 1)])
def test_a_watermark_is_of_the_kind_of_the_time_column(watermark: Any) -> None:
    session = open_session("PATTERN SEQ(A a, B b) WITHIN 10")
    with pytest.raises(ValueError, match=r"the watermark is a whole number, as the column 'ts' holds"):
        session.push(events((1, "A")), watermark=watermark)
    assert session.push(events((1, "A"), (2, "B")), watermark=2).num_rows == 1  # nothing of it was taken


def test_a_change_makes_no_tuples_that_nothing_looks_up() -> None:
    """The matches of the events that are kept have been found: what the root of a new plan would find is of no use."""
    rows = [{"ts": n, "type": "ABC"[n % 3]} for n in range(60)]
    table = pa.Table.from_pylist(rows)
    pattern = cepheid.parse("PATTERN SEQ(A a, B b, C c) WITHIN 30")
    session = cepheid.Engine([pattern], order=["a", "b", "c"]).open()
    found = session.push(table.slice(0, 45), watermark=44).num_rows
    (branch,) = session.plans
    before = session.report()["candidates"]
    assert session.change_plans({branch: Join(Join(Leaf("b"), Leaf("c")), Leaf("a"))})
    pairs = session.report()["candidates"] - before
    b, c = ([row["ts"] for row in rows[14:45] if row["type"] == kind] for kind in "BC")
    assert 0 < pairs <= len(b) * len(c)  # b with c, and not those with a
    found += session.push(table.slice(45), watermark=60).num_rows + session.close().num_rows
    assert found == cepheid.match(pattern, table).num_rows


def test_types_as_categories() -> None:
    """With more categories than are asked for, none in some rows, and in several pieces with categories of their own."""
    names = ["A", "X", "B", None] * 40
    pattern = cepheid.parse("PATTERN SEQ(A a, B b) WITHIN 2 RETURN a.ts AS first")
    plain = pa.table({"ts": range(len(names)), "type": names})
    parts = [plain["type"].chunk(0).slice(0, 50), plain["type"].chunk(0).slice(50)]
    coded = pa.chunked_array([part.dictionary_encode() for part in parts])
    for types in (coded, plain["type"].dictionary_encode()):
        found = cepheid.match(pattern, plain.set_column(1, "type", types))
        assert found.to_pylist() == cepheid.match(pattern, plain).to_pylist()
        assert found.num_rows == 40
    many = pa.DictionaryArray.from_arrays(
        pa.array([0, 2, None, 127], pa.int8()), pa.array([*"AXB", *map(str, range(125))])
    )
    few = pa.table({"ts": range(40), "type": pa.concat_arrays([many] * 10)})
    assert cepheid.match(pattern, few).num_rows == 10


@pytest.mark.parametrize(
    "patterns", ["PATTERN A a WITHIN 1", cepheid.parse("PATTERN A a WITHIN 1"), ["PATTERN A a WITHIN 1"]]
)
def test_an_engine_that_is_given_text_says_how_to_read_it(patterns: Any) -> None:
    with pytest.raises(TypeError, match=r"takes a list of patterns; got .* cepheid.parse_all"):
        cepheid.Engine(patterns)


def test_a_session_keeps_the_functions_that_it_began_with() -> None:
    sessions = []
    for least in (1, 3):
        cepheid.register_function("far_apart", lambda x, y, least=least: y - x >= least, returns="boolean")
        sessions.append(
            open_session("PATTERN SEQ(A a, B b) WHERE far_apart(a.ts, b.ts) WITHIN 10 RETURN a.ts AS x, b.ts AS y")
        )
        sessions[-1].push(events((1, "A")))
    cepheid.register_function(
        "far_apart", lambda x: [str(one) for one in x], returns="string"
    )  # fits the pattern no more
    assert [pairs(session.push(events((2, "B"), (4, "B")))) for session in sessions] == [[(1, 2), (1, 4)], [(1, 4)]]


def test_a_plan_that_is_changed_keeps_the_functions_too() -> None:
    cepheid.register_function("sum_of", lambda x, y: x + y, returns="integer")
    pattern = (
        "PATTERN SEQ(A a, B b, C c) WHERE sum_of(a.ts, b.ts) = c.ts WITHIN 10 RETURN sum_of(a.ts, c.ts) AS x, b.ts AS y"
    )
    session = cepheid.Engine([cepheid.parse(pattern)], planner="pattern_order").open()
    session.push(events((1, "A"), (2, "B")))
    cepheid.register_function("sum_of", lambda x: [str(one) for one in x], returns="string")
    (branch,) = session.plans
    assert session.change_plans({branch: Join(Leaf("c"), Join(Leaf("b"), Leaf("a")))}) == [branch]
    assert branch in session.estimates()
    assert pairs(session.push(events((3, "C"), (4, "C")))) == [(4, 2)]
