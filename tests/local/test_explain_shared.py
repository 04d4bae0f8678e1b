"""What explain says and draws of patterns that share work."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest

import cepheid
from cepheid.local.explain.drawing import CHARACTER
from cepheid.local.explain.explain import Explanation
from cepheid.workloads.patterns import pattern_workload

PATTERNS = [
    "NAME one PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 40",
    "NAME two PATTERN SEQ(A p, B q, D d) WHERE q.x > p.x WITHIN 30",
]
OTHERS = [
    "NAME three PATTERN SEQ(E e, F f, G g) WITHIN 10",
    "NAME four PATTERN SEQ(E e, F f, H h, NOT(X x), I i) WITHIN 10",
    "NAME five PATTERN SEQ(Y y, Z z) WITHIN 10",
]
SEARCH = cepheid.Sharing(steps=500)
SVG = "{http://www.w3.org/2000/svg}"


def test_it_says_what_is_shared_by_whom_and_what_that_saves() -> None:
    text = str(cepheid.explain(PATTERNS, share=cepheid.Sharing(steps=20)))
    assert "1 part of a plan is evaluated once for several patterns" in text
    assert "#1: 2 times" in text
    assert "a, b of one = p, q of two" in text
    assert "% less" in text


@pytest.mark.parametrize(("patterns", "share"), [(PATTERNS, "none"), (PATTERNS[:1], None)])
def test_nothing_is_said_where_nothing_is_shared(patterns: list[str], share: str | None) -> None:
    explanation = cepheid.explain(patterns, share=share)
    assert "Shared" not in str(explanation)
    assert explanation.shared is None
    assert "What is shared" not in explanation.to_svg()


def test_a_shared_part_says_what_it_finds_and_what_goes_on_from_it() -> None:
    shared = cepheid.explain(PATTERNS, share=SEARCH).shared
    assert shared is not None
    (part,) = shared.parts
    assert part.events == ("A a", "B b")
    assert part.conditions == ("a before b", "a.x < b.x")
    assert part.patterns == part.largest_of == ("one", "two")
    assert part.saved == part.cost
    assert [(sharer.names, sharer.plan) for sharer in shared.sharers] == [
        (("one",), "#1 + C c"),
        (("two",), "#1 + D d"),
    ]


def test_patterns_that_have_nothing_in_common_are_groups_of_their_own() -> None:
    shared = cepheid.explain([*PATTERNS, *OTHERS], share=SEARCH).shared
    assert shared is not None
    assert sorted(sorted({n for part in group for n in part.patterns}) for group in shared.groups) == [
        ["four", "three"],
        ["one", "two"],
    ]
    assert shared.alone == ("five",)
    assert any(sharer.plan.endswith(", NOT X x") for sharer in shared.sharers)


def test_parts_are_made_of_those_with_smaller_numbers_unless_they_have_several() -> None:
    texts = [f"NAME p{n} PATTERN SEQ(A a, B b, C c, {last} d) WITHIN 10" for n, last in enumerate("CDEF")]
    shared = cepheid.explain(texts, share=SEARCH).shared
    assert shared is not None
    largest = max(shared.parts, key=lambda part: len(part.events))
    assert len(largest.events) == 3
    (below,) = largest.parts
    assert below < largest.number
    assert set(shared.parts[below - 1].events) < set(largest.events)


def test_two_names_of_one_pattern_share_a_row() -> None:
    twin = PATTERNS[0].replace("one", "twin")
    shared = cepheid.explain([*PATTERNS, twin], share=SEARCH).shared
    assert shared is not None
    assert ("one", "twin") in [sharer.names for sharer in shared.sharers]


@pytest.fixture(scope="module")
def hundred() -> Explanation:
    patterns = pattern_workload(100, [f"S{n}" for n in range(12)], seed=3)
    return cepheid.explain(patterns, share=cepheid.Sharing(steps=2_000, descend=False))


def test_a_hundred_patterns_are_drawn_on_one_page(hundred: Explanation) -> None:
    """Every pattern is on it, text has one size, and no two boxes lie on each other."""
    root = ElementTree.fromstring(hundred.to_svg())
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    for number in range(1, 101):
        assert any(text.startswith(f"p{number}: ") or f" p{number}" in text for text in texts), number
    assert not any("font-size" in node.attrib for node in root.iter() if node is not root)
    boxes = [
        tuple(float(node.attrib[name]) for name in ("x", "y", "width", "height"))
        for node in root.iter(f"{SVG}rect")
        if "stroke" in node.attrib
    ]
    assert hundred.shared is not None
    assert len(boxes) == len(hundred.shared.parts) > 20
    for (x, y, wide, high), (u, v, w, h) in combinations(boxes, 2):
        assert x + wide <= u or u + w <= x or y + high <= v or v + h <= y
    for x, y, wide, high in boxes:
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + high <= height


def test_no_text_of_a_hundred_patterns_leaves_the_page(hundred: Explanation) -> None:
    root = ElementTree.fromstring(hundred.to_svg())
    for node in root.iter(f"{SVG}text"):
        if "text-anchor" not in node.attrib:
            assert float(node.attrib["x"]) + CHARACTER * len(node.text or "") <= float(root.attrib["width"])


def test_names_that_would_break_a_drawing_are_escaped_and_cut() -> None:
    types = ["`a<b & c>`", "`" + "long " * 30 + "`"]
    texts = [f"NAME n{n} PATTERN SEQ({types[0]} x, {types[1]} y, T{n} z) WITHIN 5" for n in range(3)]
    svg = cepheid.explain(texts, share=SEARCH).to_svg()
    root = ElementTree.fromstring(svg)
    assert float(root.attrib["width"]) < 1_500
    assert "a&lt;b &amp; c&gt;" in svg


def test_many_patterns_by_themselves_are_drawn_one_by_one() -> None:
    svg = cepheid.explain([*PATTERNS, *OTHERS], share="none").to_svg()
    assert all(f">{name}<" in svg for name in ("one", "two", "three", "four", "five"))
