"""``cepheid.explain``: what it prints, and that what it prints is so."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import cepheid
from cepheid.local.explain.build import Scale
from cepheid.local.explain.plan_nodes import PlanNode, Step, number
from cepheid.stats.estimates import Estimates
from cepheid.workloads import stock_quotes
from tests.contracts.test_engine_is_exact import Case, cases, schema

EVENTS = [
    {"ts": 1, "type": "L", "u": "p", "x": 1},
    {"ts": 2, "type": "T", "u": "p", "x": 5},
    {"ts": 3, "type": "C", "u": "q", "x": 0},
    {"ts": 4, "type": "T", "u": "q", "x": 6},
    {"ts": 5, "type": "T", "u": "p", "x": 7},
    {"ts": 6, "type": "L", "u": "q", "x": 9},
    {"ts": 7, "type": "C", "u": "q", "x": 0},
    {"ts": 9, "type": "T", "u": "q", "x": 10},
    {"ts": 30, "type": "T", "u": "q", "x": 11},
]
JOIN = "NAME rising PATTERN SEQ(L l, T t) WHERE l.u = t.u AND l.x < t.x AND t.x > 5 WITHIN 10"
KLEENE = "PATTERN SEQ(L l, NOT(C c), T{1,2} t) WHERE t[i].x > t[i-1].x AND SUM(t.x) > 5 PARTITION BY u WITHIN 10"
NEGATION = "PATTERN SEQ(L l, NOT(C c), T t, T s) WHERE c.u = l.u WITHIN 10"
EITHER = "PATTERN SEQ(L l, OR(T t, C c)) WHERE t.x > 5 AND c.x < 0 AND c.x > 1 WITHIN 10"
DYNAMIC = "PATTERN AND(L l, T t, C c) WHERE l.u = t.u WITHIN 4"
STEPWISE = "PATTERN SEQ(L l, T+ t, C c) USING skip_till_next CONSUME WHERE t.x > l.x AND COUNT(t) < 3 WITHIN 10"


def shown(explanation: cepheid.Explanation) -> str:
    """The plans. Estimates, candidates and the order of a search may change with the engine: they are left out."""
    plans = str(explanation).removesuffix("\n\n".join(explanation.notes)).rstrip()
    plans = re.sub(r"[\d,]+(?=  [│ ]*(candidates|in order))", lambda found: f"{'*':>{len(found[0])}}", plans)
    plans = re.sub(r", cost \S+", "", plans)
    return re.sub(r"^[ \d.,e]{10}(?=  [ \d,*]{10}  \S)", " " * 10, plans, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("pattern", "options", "expected"),
    [
        (
            JOIN,
            {},
            """
rising: 2 matches in 9 events
  USING skip_till_any, WITHIN 10

  planner auto: (l ⋈ t)
  expected       found
                     2  l with t
                     *  │  candidates by l.u = t.u
                     2  │  in the window, l before t
                     2  │  l.x < t.x
                     2  ├─ L l
                     4  └─ T t
                     5        T events
                     4        t.x > 5
""",
        ),
        (
            KLEENE,
            {},
            """
pattern_1: 2 matches in 9 events
  USING skip_till_any, PARTITION BY u, WITHIN 10

  planner auto: l, then KL(t)
  expected       found
                        no C c after l, before t
                        │  checked for each match
                     *  │  candidates by PARTITION BY u
                     1  │  where none may be
                     1  │  rejected by it
                     3  ├─ KL(t)
                     *  │  │  candidates by PARTITION BY u
                     3  │  │  in the window, l before t
                     4  │  │  sets of 1 to 2 events with t[i].x > t[i-1].x
                     3  │  │  SUM(t.x) > 5
                     2  │  ├─ L l
                     5  │  └─ T t
                     2  └─ C c
""",
        ),
        (
            NEGATION,
            {"planner": "pattern_order", "negation": "first_chance"},
            """
pattern_1: 6 matches in 9 events
  USING skip_till_any, WITHIN 10

  planner pattern_order: ((l ⋈ t) ⋈ s)
  expected       found
                        no C c after l, before t
                        │  checked at l with t, and for each match
                     *  │  candidates by l.u = c.u
                     1  │  where none may be
                     1  │  rejected by it
                     6  ├─ l, t with s
                     *  │  │  candidates by time
                     6  │  │  in the window, t before s
                     5  │  ├─ l with t
                     *  │  │  │  candidates by time
                     5  │  │  │  in the window, l before t
                        │  │  │  no C c after l, before t: first chance
                     2  │  │  ├─ L l
                     5  │  │  └─ T t
                     5  │  └─ T s
                     2  └─ C c
""",
        ),
        (
            EITHER,
            {},
            """
pattern_1: 4 matches in 9 events
  USING skip_till_any, WITHIN 10

  branch 1 of 2: planner auto: (l ⋈ t)
  expected       found
                     4  l with t
                     *  │  candidates by time
                     4  │  in the window, l before t
                     2  ├─ L l
                     4  └─ T t
                     5        T events
                     4        t.x > 5

  branch 2 of 2: can never match: c.x < 0 and c.x > 1 can never hold together
""",
        ),
        (
            DYNAMIC,
            {"planner": "dynamic"},
            """
pattern_1: 5 matches in 9 events
  USING skip_till_any, WITHIN 4

  planner dynamic: search(l, t, c)
  expected       found
                        search l, t, c
                     *  │  candidates, the variable with the fewest first
                     *  │  in order, in the window
                        │  l.u = t.u
                     2  ├─ L l
                     5  ├─ T t
                     2  └─ C c
""",
        ),
        (
            STEPWISE,
            {},
            """
pattern_1: 1 match in 9 events
  USING skip_till_next CONSUME, WITHIN 10

  variables in the order of the pattern: l, t, c
  expected       found
                     1  l → t → c
                     2  │  runs that bound l
                     1  │  runs that bound 1 or more events for t with l.x < t.x
                     1  │  runs that bound c with COUNT(t) < 3
                     2  ├─ L l
                     5  ├─ T t
                     2  └─ C c
""",
        ),
    ],
    ids=["join", "kleene", "negation", "or", "dynamic", "skip_till_next"],
)
def test_the_plan_and_what_came_of_it(pattern: str, options: dict[str, Any], expected: str) -> None:
    assert shown(cepheid.explain(pattern, EVENTS, **options)) == expected.strip("\n")


def test_without_events_the_pattern_alone_is_planned() -> None:
    explanation = cepheid.explain(KLEENE)
    assert explanation.events is None
    assert (
        str(explanation)
        == """
pattern_1
  USING skip_till_any, PARTITION BY u, WITHIN 10

  planner auto: l, then KL(t), cost 1
per window
            no C c after l, before t
            │  checked for each match
            │  candidates by PARTITION BY u
            │  where none may be
            │  rejected by it
      0.62  ├─ KL(t)
            │  │  candidates by PARTITION BY u
            │  │  in the window, l before t
            │  │  sets of 1 to 2 events with t[i].x > t[i-1].x
            │  │  SUM(t.x) > 5
         1  │  ├─ L l
         1  │  └─ T t
            └─ C c

Without events, one event of each variable in a window is assumed, and of conditions what is usual of their kind.
""".strip("\n")
    )


def parts(explanation: cepheid.Explanation, pattern: int = 0, branch: int = 0) -> list[PlanNode]:
    root = explanation.patterns[pattern].branches[branch].root
    assert root is not None
    return list(root)


def test_estimates_stand_beside_what_was_found_and_come_near_it() -> None:
    quotes = stock_quotes(20_000, rates={"A": 1, "B": 1, "C": 0.1}, seed=1)
    pattern = "PATTERN SEQ(A a, B b, C c) WHERE a.change < b.change WITHIN 2 seconds"
    for planner in ("auto", "pattern_order", "zstream"):
        for part in parts(cepheid.explain(pattern, quotes, planner=planner)):
            assert part.head.expected is not None
            assert part.head.found is not None
            assert part.head.expected == pytest.approx(part.head.found, rel=0.25), part.head.text
            assert part.head.surprise is None


def test_an_estimate_that_is_far_off_is_pointed_out() -> None:
    assert Step("", 10.0, 1000).surprise == "100 times as many as expected"
    assert Step("", 1000.0, 10).surprise == "expected 100 times as many"
    assert Step("", 1000.0, 0).surprise == "expected 2,000 times as many"
    assert Step("", 1e12, 5).surprise == "expected over a million times as many"
    assert Step("", 10.0, 50).surprise is None
    assert Step("", 0.1, 5).surprise is None
    assert Step("", None, 5).surprise is None
    events = [{"ts": 1000 * i + j, "type": t} for i, t in enumerate("AB") for j in range(200)]
    assert "times as many" in str(cepheid.explain("PATTERN SEQ(A a, B b) WITHIN 100", events))


@pytest.mark.parametrize(("size", "share"), [(1, 0.01), (2, 0.1), (3, 0.3), (2, 1.0), (3, 2.0)])
def test_the_scale_counts_tuples_within_any_window(size: int, share: float) -> None:
    """Against counting: of n points each, spread evenly, how many tuples have a range of at most a share of it?"""
    points = 40
    found = 0
    for first in range(points):
        for second in range(points) if size > 1 else [first]:
            for third in range(points) if size > 2 else [first]:
                found += max(first, second, third) - min(first, second, third) <= share * points
    assert Scale(share).of((points * share) ** size, size) == pytest.approx(found, rel=0.12)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0, "0"), (1234567, "1,234,567"), (1234.5, "1,234"), (3.14159, "3.1"), (0.012, "0.012"), (1.5e10, "1.5e10"), (1e-7, "1e-7")],
)  # fmt: skip
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert number(value) == text


def test_given_orders_and_statistics() -> None:
    explanation = cepheid.explain(NEGATION, order=["s", "t", "l"])
    assert explanation.patterns[0].branches[0].plan == "the order that was given: ((s ⋈ t) ⋈ l)"
    branch = cepheid.normalise(cepheid.parse(JOIN)).branches[0]
    [join, left, right] = parts(cepheid.explain(JOIN, statistics={branch: Estimates({"l": 3.0, "t": 50.0})}))
    assert (left.head.expected, right.head.expected) == (50.0, 3.0) or (left.head.expected, right.head.expected) == (
        3.0,
        50.0,
    )
    assert join.head.expected == pytest.approx(3 * 50 / 2 * 0.01 * 0.5)
    with pytest.raises(ValueError, match="planner is 'auto' or one of"):
        cepheid.explain(JOIN, planner="best")


def test_expected_and_found_stand_side_by_side() -> None:
    branch = cepheid.normalise(cepheid.parse(JOIN)).branches[0]
    explanation = cepheid.explain(
        JOIN, EVENTS, statistics={branch: Estimates({"l": 1.0, "t": 200.0})}, order=["l", "t"]
    )
    lines = str(explanation).splitlines()
    assert lines[3] == "  the order that was given: (l ⋈ t), cost 202"
    assert lines[4] == "  expected       found"
    assert lines[5] == "       2.4           2  l with t"
    assert lines[10] == "       580           4  └─ T t   ← expected 145 times as many"


def test_several_patterns() -> None:
    explanation = cepheid.explain([JOIN, STEPWISE], EVENTS)
    assert [(p.name, p.matches) for p in explanation.patterns] == [("rising", 2), ("pattern_2", 1)]


def test_the_drawing(tmp_path: Path) -> None:
    explanation = cepheid.explain([JOIN, KLEENE, EITHER, DYNAMIC, STEPWISE], EVENTS)
    explanation.save(tmp_path / "plan.svg")
    text = (tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert text == explanation.to_svg() == explanation._repr_svg_()
    assert text in explanation._repr_html_()
    drawing = ET.fromstring(text)
    texts = ["".join(e.itertext()) for e in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "rising: 2 matches in 9 events" in texts
    assert "l.x < t.x" in texts
    fits_its_box(drawing)


def test_a_long_condition_is_cut_in_the_drawing_and_shown_as_a_hint() -> None:
    names = " OR ".join(f"l.x = {n} * t.x" for n in range(20))
    svg = cepheid.explain(f"PATTERN SEQ(L l, T t) WHERE {names} WITHIN 10").to_svg()
    drawing = ET.fromstring(svg)
    fits_its_box(drawing)
    hints = [e.text for e in drawing.iter("{http://www.w3.org/2000/svg}title")]
    assert any(hint is not None and "19 * t.x" in hint for hint in hints)


def fits_its_box(drawing: ET.Element) -> None:
    """Texts lie within the drawing, and no two boxes overlap."""
    width, height = float(drawing.attrib["width"]), float(drawing.attrib["height"])
    for text in drawing.iter("{http://www.w3.org/2000/svg}text"):
        length = 7.26 * len(text.text or "")
        x = float(text.attrib["x"]) - (length if text.attrib.get("text-anchor") == "end" else 0)
        assert x >= 0
        assert x + length <= width
        assert float(text.attrib["y"]) <= height
    boxes = [
        tuple(float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        for box in drawing.iter("{http://www.w3.org/2000/svg}rect")
        if box.attrib.get("rx") == "5"
    ]
    for place, (x, y, w, h) in enumerate(boxes):
        for ox, oy, ow, oh in boxes[:place]:
            assert x + w <= ox or ox + ow <= x or y + h <= oy or oy + oh <= y


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases)
def test_every_pattern_can_be_explained(case: Case) -> None:
    pattern, rows, options = case
    table = pa.Table.from_pylist(rows, schema(pattern))
    explanation = cepheid.explain(pattern, table, **options)
    assert explanation.patterns[0].matches == cepheid.match(pattern, table, **options).num_rows
    fits_its_box(ET.fromstring(explanation.to_svg()))
    assert str(cepheid.explain(pattern, **options))
