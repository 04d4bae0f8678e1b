"""docs/semantics.md, executed by the engine."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
from cepheid.local.match import match
from tests import oracle
from tests.contracts.test_engine_is_exact import canonical
from tests.semantics_tables import Example, examples


@pytest.mark.parametrize("example", examples(), ids=lambda e: f"line {e.line}")
def test_the_engine_finds_what_the_page_shows(example: Example) -> None:
    pattern = cepheid.parse(example.pattern)
    table = pa.Table.from_pylist(example.events)
    found = match(pattern, table, **example.options)
    assert canonical(found.to_pylist()) == canonical(oracle.rows(pattern, example.events, **example.options))
