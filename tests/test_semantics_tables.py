"""docs/semantics.md, executed by the reference matcher."""

from __future__ import annotations

import pytest

import cepheid
from tests import oracle
from tests.semantics_tables import Example, examples


@pytest.mark.parametrize("example", examples(), ids=lambda e: f"line {e.line}")
def test_the_page_shows_what_the_reference_matcher_finds(example: Example) -> None:
    pattern = cepheid.parse(example.pattern)
    if pattern.output is not None:
        found = oracle.rows(pattern, example.events, **example.options)
        shown = [{column: row[column] for column in example.columns} for row in found]
        assert sorted(map(repr, shown)) == sorted(map(repr, example.expected_values()))
        return
    rows = []
    for match in oracle.find(pattern, example.events, **example.options):
        cells = []
        for column in example.columns:
            bound = sorted(match.rows(column) or ())
            cells.append(
                str(match.window_start) if column == "window_start" else " ".join(example.labels[r] for r in bound)
            )
        rows.append(cells)
    assert sorted(rows) == sorted(example.rows)


def test_every_row_of_the_language_has_an_example() -> None:
    patterns = "\n".join(example.pattern for example in examples())
    forms = [
        "SEQ(",
        "AND(",
        "OR(",
        "NOT(",
        "KL(",
        "+ b",
        "{1,1}",
        "{3,}",
        "ANY(",
        "skip_till_any",
        "skip_till_next",
        "strict",
    ]
    forms += [
        "CONSUME",
        "SLIDE",
        "PARTITION BY",
        "events",
        "RETURN",
        "LIKE",
        "IN (",
        "BETWEEN",
        "CASE",
        "IS NULL",
        "CORR(",
    ]
    forms += ["FIRST(", "LAST(", "COUNT(", "SUM(", "[i-1]", "TIMESTAMP", "minutes", "`card-payment`", "--", "NAME"]
    assert [form for form in forms if form not in patterns] == []
    assert len(examples()) > 60
