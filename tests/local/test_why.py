"""``cepheid.why``: one test for each way in which a stream can dry up."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import cepheid
from cepheid.local.why import trial
from cepheid.local.why.why import BranchDiagnosis
from tests.contracts.test_engine_is_exact import Case, cases, schema


def events(text: str) -> pa.Table:
    """``A:x=1 B@9:x=2``: types, times if they are not 1, 2, 3, …, and attributes; - is NULL."""
    rows = []
    for place, word in enumerate(text.split(), start=1):
        head, *attributes = word.split(":")
        type_, _, time = head.partition("@")
        row: dict[str, Any] = {"ts": int(time or place), "type": type_}
        for attribute in attributes:
            name, _, value = attribute.partition("=")
            row[name] = None if value == "-" else float(value) if value.lstrip("-").isdigit() else value
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def diagnose(pattern: str, stream: str | pa.Table, **options: Any) -> BranchDiagnosis:
    diagnosis = cepheid.why(pattern, events(stream) if isinstance(stream, str) else stream, **options)
    [branch] = diagnosis.patterns[0].branches
    return branch


@pytest.mark.parametrize(
    ("pattern", "stream", "reason", "remedy"),
    [
        pytest.param(
            "PATTERN SEQ(Logn l, Transfer t) WITHIN 5",
            "Login Transfer Login",
            "l: there is no event of type Logn. Did you mean 'Login'? There are Login (2), Transfer (1).",
            None,
            id="no event of the type",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE t.x > 10000 WITHIN 5",
            "L T:x=5 T:x=4990",
            "t: of 2 T events none satisfies t.x > 10000: the largest t.x is 4,990.",
            None,
            id="a filter: too small",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE t.x <= 3 WITHIN 5",
            "L T:x=5 T:x=4990",
            "t: of 2 T events none satisfies t.x <= 3: the smallest t.x is 5.",
            None,
            id="a filter: too large",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE t.x = 3 WITHIN 5",
            "L T:x=5 T:x=1",
            "t: of 2 T events none satisfies t.x = 3: t.x is between 1 and 5.",
            None,
            id="a filter: another number",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE t.c = 'fr' WITHIN 5",
            "L:c=a T:c=FR T:c=DE T:c=DE",
            "t: of 3 T events none satisfies t.c = 'fr': t.c is 'DE' (2), 'FR' (1); did you mean 'FR'?",
            None,
            id="a filter: another string",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE t.c IN ('a', 'b') WITHIN 5",
            "L:c=a T:c=d T:c=e T:c=f T:c=g",
            "t: of 4 T events none satisfies t.c IN ('a', 'b'): t.c is mostly 'd' (1), 'e' (1), 'f' (1).",
            None,
            id="a filter: not in a list",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE t.x IS NULL WITHIN 5",
            "L T:x=1",
            "t: of 1 T event none satisfies t.x IS NULL: t.x is never NULL.",
            None,
            id="a filter: never NULL",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE t.x > 3 AND t.y < 2 WITHIN 5",
            "L:x=1:y=1 T:x=5:y=3 T:x=1:y=1",
            "t: of 1 T event with t.x > 3 none satisfies t.y < 2: the smallest t.y is 3. By itself it is satisfied by 1 event.",
            None,
            id="two filters that exclude each other in the data",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE t.x > 3 WITHIN 5",
            "L:x=1 T:x=- T:x=-",
            "t: of 2 T events none satisfies t.x > 3: t.x is NULL in all of them.",
            None,
            id="a filter on NULL",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE l.x < t.x WITHIN 5",
            "L:x=1 T:x=- T:x=-",
            "t: of 2 T events none has every value that is compared: t.x is always NULL.",
            None,
            id="a compared value is NULL",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE l.x < t.x WITHIN 5",
            "L:x=5 T:x=3 T:x=4",
            "Of 2 combinations of l and t that are right otherwise none satisfies l.x < t.x: the nearest are l.x = 5 and t.x = 4.",
            "without l.x < t.x: 2 matches",
            id="a condition that no pair satisfies",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WITHIN 5",
            "L X T@9 T@12",
            "The nearest l and t need a window of 8, and it is 5.",
            "WITHIN 8: 1 match",
            id="too far apart",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WITHIN 3 events",
            "L X X X X T",
            "The nearest l and t need a window of 6 events, and it is 3 events.",
            "WITHIN 6 events: 1 match",
            id="too many events between them",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WITHIN 5",
            "T T L",
            "Of 2 combinations of l and t that are right otherwise none comes in the order of the pattern.",
            "with AND instead of SEQ: 2 matches",
            id="in another order",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE l.u = t.u WITHIN 5",
            "L:u=ann T:u=ANN T:u=BOB",
            "Of 2 combinations of l and t that are right otherwise none satisfies l.u = t.u: "
            "they have no value in common (l.u is 'ann', …; t.u is 'ANN', 'BOB', …).",
            "without l.u = t.u: 2 matches",
            id="keys that never meet",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) PARTITION BY u WITHIN 5",
            "L:u=ann T:u=bob",
            "The only combination of l and t that is right otherwise does not have the same u in all events: "
            "they have no value in common (l.u is 'ann', …; t.u is 'bob', …).",
            "without PARTITION BY u: 1 match",
            id="partitions that never meet",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T{3,} t) WITHIN 9",
            "L T T",
            "The largest set for t has 2 events, and the pattern asks for 3 or more.",
            "with 2 or more events for t: 1 match",
            id="too few events in a set",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T{2} t) WHERE t.x > l.x WITHIN 9",
            "L:x=5 T:x=1 T:x=2",
            "Of 2 combinations of l and t that are right otherwise none satisfies l.x < t.x: the nearest are l.x = 5 and t.x = 2.",
            "without l.x < t.x: 1 match",
            id="no event for a set",
        ),
        pytest.param(
            "PATTERN T{2} t WHERE t[i].x > t[i-1].x AND t.x > 1 WITHIN 9",
            "T:x=3 T:x=2",
            "The only set for t that is right otherwise does not satisfy t[i].x > t[i-1].x.",
            "without t[i].x > t[i-1].x: 1 match",
            id="neighbours",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T+ t) WHERE SUM(t.x) > 100 WITHIN 9",
            "L T:x=3 T:x=2",
            "Of 3 combinations of l and t that are right otherwise none satisfies SUM(t.x) > 100: the largest SUM(t.x) is 5.",
            "without SUM(t.x) > 100: 3 matches",
            id="an aggregate",
        ),
        pytest.param(
            "PATTERN SEQ(L l, NOT(C c), T t) WITHIN 9",
            "L C T C T",
            "NOT(C c) rejects all of 2 matches: such an event lies after l and before t each time.",
            "without NOT(C c): 2 matches",
            id="a negation rejects all",
        ),
        pytest.param(
            "PATTERN SEQ(L l, NOT(C c), NOT(D d), T t) WITHIN 9",
            "L C D T",
            "NOT(C c) and NOT(D d) together reject all of 1 match.",
            "without NOT(C c) and NOT(D d): 1 match",
            id="each of two negations rejects all",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t, E e) USING skip_till_next WHERE t.x < e.x WITHIN 9",
            "L:x=1 T:x=9 T:x=2 E:x=5",
            "There are matches, but skip_till_next does not select them: skip_till_next takes the first events that fit, "
            "and from these no match can be completed.",
            "USING skip_till_any: 1 match",
            id="skip_till_next takes another event",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) USING strict WITHIN 9",
            "L X T",
            "There are matches, but strict does not select them: strict lets no other event lie between those of a match.",
            "USING skip_till_next: 1 match",
            id="strict",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) USING skip_till_next WHERE l.x < t.x WITHIN 9",
            "L:x=5 T:x=1",
            "The only combination of l and t that is right otherwise does not satisfy l.x < t.x: the nearest are l.x = 5 and t.x = 1.",
            "without l.x < t.x: 1 match",
            id="skip_till_next is not to blame",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WITHIN 4 SLIDE 4",
            "X X L T",
            "No window that starts every 4 holds a match as a whole.",
            "without SLIDE: 1 match",
            id="windows that slide",
        ),
        pytest.param(
            "PATTERN SEQ(KL(L l), L m) USING skip_till_next WHERE l.x = m.x AND l.x = 1 AND NOT (COUNT(l) > 2 OR m.x < 2) WITHIN 9",
            "L:x=1 L:x=2",
            "It can never match: l.x = m.x and l.x = 1 and COUNT(l) <= 2 and m.x >= 2 can never hold together.",
            None,
            id="a contradiction that a strategy hides",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE l.x < 3 AND l.x > 5 WITHIN 3",
            "L:x=1 T",
            "It can never match: l.x < 3 and l.x > 5 can never hold together.",
            None,
            id="a contradiction",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t) WHERE l.x < t.x AND l.y < t.y WITHIN 3",
            "L:x=2:y=2 T:x=1:y=1",
            "No l and t go together, and no single change would help.",
            None,
            id="several things at once",
        ),
        pytest.param(
            "PATTERN SEQ(L l, T t, E e) WHERE l.x < t.x AND t.x < e.x WITHIN 9",
            "L:x=2 T:x=1 E:x=0",
            "That alone is not all: a pattern that does not ask for it has no match either.",
            None,
            id="more is wrong further on",
        ),
    ],
)  # fmt: skip
def test_the_reason_is_named(pattern: str, stream: str, reason: str, remedy: str | None) -> None:
    branch = diagnose(pattern, stream)
    assert branch.matches == 0
    assert reason in branch.reasons
    assert remedy in (branch.remedies or (None,))


def test_a_window_of_time() -> None:
    start = dt.datetime(2024, 5, 17, 9)
    table = pa.table({"ts": [start, start + dt.timedelta(minutes=14, seconds=3)], "type": ["L", "T"]})
    branch = diagnose("PATTERN SEQ(L l, T t) WITHIN 10 minutes", table)
    assert branch.reasons == ("The nearest l and t need a window of 14 minutes 3 seconds, and it is 10 minutes.",)
    assert branch.remedies == ("WITHIN 14 minutes 3 seconds: 1 match",)


def test_a_set_that_needs_a_wider_window_than_its_first_event() -> None:
    branch = diagnose("PATTERN SEQ(L l, T{2} t) WITHIN 5", "L T@8 T@20")
    assert branch.reasons == ("The nearest l and t need a window of 7, and it is 5.",)
    assert branch.remedies == ("WITHIN 19: 1 match",)


def test_no_events() -> None:
    nothing = pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string())})
    assert diagnose("PATTERN A a WITHIN 5", nothing).reasons == ("There are no events.",)


def test_each_variable_that_has_no_events_is_named() -> None:
    branch = diagnose("PATTERN SEQ(A a, B b) WHERE a.x > 3 WITHIN 5", "A:x=1 C:x=2")
    assert [reason[:2] for reason in branch.reasons] == ["a:", "b:"]


def test_branches_are_told_apart() -> None:
    text = str(
        cepheid.why("NAME up PATTERN SEQ(L l, OR(T t, Z z)) WHERE t.x < l.x WITHIN 9", events("L:x=1 T:x=9 Z:x=2"))
    )
    assert text == "\n".join(
        [
            "up, branch 1 of 2, SEQ(L l, T t): no match in 3 events.",
            "  The only combination of l and t that is right otherwise does not satisfy l.x > t.x: the nearest are l.x = 1 and t.x = 9.",
            "  What would help:",
            "    without l.x > t.x: 1 match",
            "  What came how far:",
            "              1  L l",
            "              1  T t",
            "                 l with t",
            "              1    candidates by time",
            "              1    in the window, l before t",
            "              0    l.x > t.x",
            "",
            "up, branch 2 of 2, SEQ(L l, Z z): 1 match in 3 events.",
            "  What came how far:",
            "              1  L l",
            "              1  Z z",
            "                 l with z",
            "              1    candidates by time",
            "              1    in the window, l before z",
        ]
    )


def test_with_matches_the_narrowest_step_is_named() -> None:
    branch = diagnose("PATTERN SEQ(L l, T t) WHERE t.x > l.x WITHIN 9", "L:x=5 T:x=1 T:x=2 T:x=3 T:x=9")
    assert branch.matches == 1
    assert branch.reasons == ("The narrowest step is l.x < t.x (l with t): 1 of 4 pass it (25 %).",)


def test_other_columns_and_no_types() -> None:
    table = events("A B").rename_columns(["when", "kind"])
    assert diagnose("PATTERN SEQ(B a, A b) WITHIN 5", table, time="when", type="kind").remedies
    assert diagnose("PATTERN SEQ(B a, A b) WITHIN 5", table, time="when", type=None).matches == 1


def test_what_was_seen_of_few_events_only_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "VARIANT_EVENTS", 3)
    branch = diagnose("PATTERN SEQ(L l, T t) WHERE l.x < t.x WITHIN 5", "L:x=5 T:x=3 T:x=4 T:x=2")
    assert branch.events == 4
    assert branch.reasons == (
        "Of 2 combinations of l and t that are right otherwise in the first 3 events none satisfies l.x < t.x: the nearest are l.x = 5 and t.x = 4.",
    )
    assert branch.remedies == ("without l.x < t.x: 2 matches in the first 3 events",)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases)
def test_every_pattern_is_diagnosed_and_none_is_said_to_match_that_does_not(case: Case) -> None:
    pattern, rows, options = case
    table = pa.Table.from_pylist(rows, schema(pattern))
    matches = cepheid.match(pattern, table, **options).num_rows
    branches = cepheid.why(pattern, table, **options).patterns[0].branches
    assert bool(matches) == any(branch.matches for branch in branches)
    assert all(branch.reasons for branch in branches if not branch.matches)
