"""What is done before the first event of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.engine.warming import warm_up
from cepheid.language.functions import register_function

SEQUENCE = cepheid.parse("PATTERN SEQ(A a, NOT(N n), KL(B b), C c) WHERE a.x < c.x AND a.k = c.k WITHIN 10 seconds")
SCHEMA = pa.schema({"ts": pa.timestamp("ms"), "type": pa.string(), "x": pa.int32(), "k": pa.string(), "b": pa.bool_()})


class Watched:
    """An engine; what is pushed into its sessions."""

    def __init__(self, patterns: list[cepheid.Pattern]) -> None:
        self._engine = Engine(patterns)
        self.shed = None
        self.pushed: list[pa.Table] = []
        self.watermarks: list[Any] = []

    def open(self) -> Any:
        session = self._engine.open()
        push = session.push

        def watched(events: pa.Table, watermark: Any = None) -> pa.Table:
            found = push(events, watermark)
            self.pushed.append(events)
            self.watermarks.append(watermark)
            return found

        session.push = watched  # type: ignore[method-assign]
        return session

    @property
    def types(self) -> set[str]:
        return {name for part in self.pushed for name in part["type"].to_pylist()}


def warmed(pattern: cepheid.Pattern, preview: pa.Table | None) -> Watched:
    engine = Watched([pattern])
    warm_up(engine, [pattern], preview, EventColumns())  # type: ignore[arg-type]
    return engine


@pytest.mark.parametrize("preview", [None, SCHEMA.empty_table()], ids=["nothing known", "schema"])
def test_all_types_are_pushed_without_a_preview(preview: pa.Table | None) -> None:
    engine = warmed(SEQUENCE, preview)
    assert engine.types == {"A", "B", "C", "N"}
    assert sum(part.num_rows for part in engine.pushed) == 8
    if preview is not None:
        assert engine.pushed[0].schema == SCHEMA


def test_a_preview_is_taken_where_there_is_one() -> None:
    preview = pa.table({"ts": range(5000), "type": ["A"] * 5000, "x": range(5000)})
    engine = warmed(cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 10"), preview)
    assert sum(part.num_rows for part in engine.pushed) == 2048


@pytest.mark.parametrize("step", [1, -1])
def test_what_is_old_is_forgotten_where_a_preview_is_in_order(step: int) -> None:
    preview = pa.table({"ts": list(range(1000))[::step], "type": ["A"] * 1000})
    engine = warmed(cepheid.parse("PATTERN SEQ(A a, B b) WITHIN 10"), preview)
    assert [mark and mark.as_py() for mark in engine.watermarks] == ([0, 250, 500, 750] if step > 0 else [None] * 4)


def test_a_limit_on_partial_matches_is_for_real_events() -> None:
    """The first of a replay are pushed at once here, and later as they come."""
    events = pa.table({"ts": range(3000), "type": ["A", "B"] * 1500})
    engine = cepheid.Engine([cepheid.parse("PATTERN SEQ(A a, B b, C c) WITHIN 300")], max_partial_matches=1000)
    for preview in (events, events.take(np.random.default_rng(1).permutation(events.num_rows))):
        warm_up(engine, engine.patterns, preview, EventColumns())


def test_attributes_that_are_text_are_guessed_too() -> None:
    engine = warmed(cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.name LIKE 'x%' AND b.name = 'y' WITHIN 10"), None)
    assert engine.pushed[0]["name"].type == pa.string()


def test_what_cannot_be_guessed_is_left() -> None:
    """A number and a text: neither guess fits both."""
    assert not warmed(cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x > 2 AND b.y = 'y' WITHIN 10"), None).pushed


def test_functions_of_the_caller_see_no_made_up_events() -> None:
    seen: list[int] = []

    def watch(x: Any) -> Any:
        seen.append(len(x))
        return np.asarray(x, dtype=np.float64)

    register_function("watch_warming", watch)
    assert not warmed(cepheid.parse("PATTERN SEQ(A a, B b) WHERE watch_warming(a.x) > b.x WITHIN 10"), None).pushed
    assert not seen


def test_made_up_events_are_in_no_result() -> None:
    events = [{"ts": 1, "type": "A", "x": 5}, {"ts": 2, "type": "B", "x": 7}]
    found: list[Any] = []
    result = cepheid.run("PATTERN SEQ(A a, B b) WITHIN 5 RETURN b.x AS x", iter([pa.Table.from_pylist(events)]), found,
                         shed=cepheid.HSpice())  # fmt: skip
    assert [row["x"] for row in found] == [7]
    assert result.events == 2
