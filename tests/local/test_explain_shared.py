"""What explain says of patterns that share work."""

from __future__ import annotations

import cepheid

PATTERNS = [
    "NAME one PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 40",
    "NAME two PATTERN SEQ(A p, B q, D d) WHERE q.x > p.x WITHIN 30",
]


def test_it_says_what_is_shared_by_whom_and_what_that_saves() -> None:
    text = str(cepheid.explain(PATTERNS, share=cepheid.Sharing(steps=20)))
    assert "1 part of a plan is evaluated once for several patterns" in text
    assert "a, b of one = p, q of two" in text
    assert "% less" in text


def test_nothing_is_said_where_nothing_is_shared() -> None:
    assert "Shared" not in str(cepheid.explain(PATTERNS, share="none"))
    assert "Shared" not in str(cepheid.explain(PATTERNS[0]))
