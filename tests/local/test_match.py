"""``cepheid.match``, as a user calls it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import cepheid
from cepheid.engine.joiner import LimitError

EVENTS = [
    {"ts": 1, "type": "A", "x": 1},
    {"ts": 2, "type": "B", "x": 5},
    {"ts": 3, "type": "B", "x": 0},
    {"ts": 9, "type": "B", "x": 7},
]
PATTERN = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 RETURN b.x - a.x AS gain"
FOUND = [{"pattern": "pattern_1", "start": 1, "end": 2, "gain": 4}]


def files(folder: Path) -> list[Path]:
    table = pa.Table.from_pylist(EVENTS)
    pa.parquet.write_table(table, folder / "e.parquet")
    pa.csv.write_csv(table, folder / "e.csv")
    pa.feather.write_feather(table, folder / "e.arrow")
    (folder / "e.jsonl").write_text("\n".join(str(e).replace("'", '"') for e in EVENTS), encoding="utf-8")
    return sorted(folder.iterdir())


def test_events_in_every_form(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(EVENTS)
    forms: list[Any] = [
        EVENTS,
        tuple(EVENTS),
        iter(EVENTS),
        table,
        table.to_batches()[0],
        table.to_reader(),
        pd.DataFrame(EVENTS),
    ]
    for events in [*forms, *files(tmp_path), *map(str, files(tmp_path))]:
        assert cepheid.match(PATTERN, events).to_pylist() == FOUND, type(events)


def test_one_event_is_no_list_of_events() -> None:
    with pytest.raises(TypeError, match=r"got one dictionary.*\[event\]"):
        cepheid.match(PATTERN, EVENTS[0])
    with pytest.raises(cepheid.StreamError, match=r"the source failed.*\[event\]"):
        cepheid.run(PATTERN, iter(EVENTS))


def test_patterns_in_every_form() -> None:
    pattern = cepheid.parse(PATTERN)
    assert cepheid.match(pattern, EVENTS).to_pylist() == FOUND
    assert cepheid.match([pattern], EVENTS).to_pylist() == FOUND
    several = cepheid.match([PATTERN, "NAME two PATTERN B b WHERE b.x > 6 WITHIN 1 RETURN b.x AS gain"], EVENTS)
    assert [(row["pattern"], row["gain"]) for row in several.to_pylist()] == [("pattern_1", 4), ("two", 7)]
    file = f"{PATTERN}; NAME two PATTERN B b WHERE b.x > 6 WITHIN 1 RETURN b.x AS gain"
    assert cepheid.match(file, EVENTS).num_rows == 2


def test_the_schema_is_the_same_without_matches() -> None:
    schema = cepheid.match(PATTERN, EVENTS).schema
    assert cepheid.match(PATTERN, EVENTS[:1]).schema == schema
    assert cepheid.match(PATTERN, pa.Table.from_pylist(EVENTS).slice(0, 0)).schema == schema
    assert schema == pa.schema({"pattern": pa.string(), "start": pa.int64(), "end": pa.int64(), "gain": pa.int64()})


def test_events_come_back_as_they_came_in() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    table = pa.table(
        {
            "when": pa.array([dt.datetime(2024, 5, 17, 9, tzinfo=zone)], pa.timestamp("ms", "Europe/Berlin")),
            "kind": pa.array(["A"]).dictionary_encode(),
            "x": pa.array([1.5], pa.float32()),
            "tags": pa.array([["a", "b"]]),
            "raw": pa.array([b"\x00"]),
        }
    )
    found = cepheid.match("PATTERN A a WHERE a.x > 1 WITHIN 1 second", table, time="when", type="kind")
    assert found.schema.field("start").type == table.schema.field("when").type
    assert found["a"].to_pylist() == table.to_pylist()
    assert found["start"].to_pylist() == table["when"].to_pylist()


def test_unsorted_events_and_ties() -> None:
    assert cepheid.match(PATTERN, EVENTS[::-1]).to_pylist() == FOUND
    tied = [{"ts": 1, "type": "A", "n": 1}, {"ts": 1, "type": "B", "n": 2}]
    assert cepheid.match("PATTERN SEQ(A a, B b) WITHIN 5", tied).num_rows == 0
    assert cepheid.match("PATTERN SEQ(A a, B b) WITHIN 5", tied, tie_breaker="n").num_rows == 1


def test_progress_is_reported() -> None:
    seen: list[int] = []
    cepheid.match(PATTERN, EVENTS, batch_size=3, progress=seen.append)
    assert seen == [3, 1]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: cepheid.match(PATTERN, EVENTS, time="when"), cepheid.SchemaError, "time='when'"),
        (
            lambda: cepheid.match(PATTERN, EVENTS, planner="best"),
            ValueError,
            "planner is 'auto' or one of pattern_order",
        ),
        (lambda: cepheid.match(PATTERN, EVENTS, order=["a"]), ValueError, "each variable once"),
        (lambda: cepheid.match(PATTERN, EVENTS, order=["a", "z"]), ValueError, "order names z, which no pattern has"),
        (
            lambda: cepheid.match(PATTERN, pa.table([[1], ["A"], [1], [2]], names=["ts", "type", "x", "x"])),
            cepheid.SchemaError,
            "several columns are called 'x'",
        ),
        (lambda: cepheid.match(PATTERN, EVENTS, batch_size=0), ValueError, "batch_size is 1 or more"),
        (
            lambda: cepheid.match("PATTERN A a WHERE a.y > 1 WITHIN 5", EVENTS),
            cepheid.PatternError,
            "unknown attribute 'y'",
        ),
        (
            lambda: cepheid.match(PATTERN, [{"ts": None, "type": "A", "x": 1}, *EVENTS]),
            ValueError,
            "1 of 5 events have no time",
        ),
        (lambda: cepheid.match(PATTERN, 5), TypeError, "got int"),
        (
            lambda: cepheid.match(PATTERN, EVENTS, tie_breaker="type"),
            cepheid.SchemaError,
            "must hold timestamps or integers",
        ),
        (
            lambda: cepheid.match([PATTERN, "NAME two PATTERN A a WITHIN 5 RETURN a.type AS gain"], EVENTS),
            ValueError,
            "column 'gain' is int64 in pattern_1 and string in two",
        ),
        (lambda: cepheid.match(PATTERN, "nowhere.parquet"), FileNotFoundError, "no such file"),
        (
            lambda: cepheid.match(["NAME p PATTERN A a WITHIN 5", "NAME p PATTERN B b WITHIN 5"], EVENTS),
            ValueError,
            "two patterns are called 'p': give one of them another NAME",
        ),
        (
            lambda: cepheid.match(
                "PATTERN A a WHERE a.v > 1 WITHIN 5",
                pa.table({"ts": [1], "type": ["A"], "v": pa.array([Decimal(10**25 + 1)], pa.decimal128(38, 0))}),
            ),
            ValueError,
            "column 'v'.*has more digits than numbers are compared with",
        ),
        (
            lambda: cepheid.match("PATTERN A a WITHIN 5 events", [{"ts": 1, "type": "A"}, {"ts": 1, "type": "B"}]),
            ValueError,
            r"two have the same time: 1\. Name a column that orders them: tie_breaker=",
        ),
    ],
)
def test_bad_input_says_what_is_wrong(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_too_many_partial_matches_name_the_variables() -> None:
    events = [{"ts": i, "type": "A", "x": i} for i in range(200)]
    with pytest.raises(LimitError, match=r"partial matches over a, b.*Make the window smaller"):
        cepheid.match("PATTERN AND(A a, A b) WITHIN 500", events, max_partial_matches=500)
    with pytest.raises(LimitError, match=r"sets for the variable a.*Give it a maximum"):
        cepheid.match("PATTERN KL(A a) WITHIN 500", events, max_partial_matches=50_000)


def test_texts_with_several_patterns_number_them_together() -> None:
    two = ["PATTERN A a WITHIN 1 RETURN a.x; PATTERN C c WITHIN 1 RETURN c.x", "PATTERN B b WITHIN 1 RETURN b.x"]
    found = cepheid.match(two, [{"ts": 1, "type": "A", "x": 5}, {"ts": 2, "type": "B", "x": 6}])
    assert [(row["pattern"], row["x"]) for row in found.to_pylist()] == [("pattern_1", 5), ("pattern_3", 6)]


def test_an_event_without_a_type_has_none() -> None:
    events = pa.table({"ts": range(20), "type": pa.array([None] * 20, pa.string())})
    for count in (3, 20):
        assert cepheid.match("PATTERN None a WITHIN 10", events.slice(0, count)).num_rows == 0


def test_names_of_variables_are_free() -> None:
    events = [{"ts": 1, "type": "A"}, {"ts": 2, "type": "Z"}, {"ts": 3, "type": "B"}]
    for a, b in (("a", "b"), ("`*`", "`first *`"), ("`last b`", "b")):
        assert cepheid.match(f"PATTERN SEQ(KL(A {a}), B {b}) WITHIN 10", events).num_rows == 1
        assert cepheid.match(f"PATTERN SEQ(A {a}, B {b}) USING strict WITHIN 10", events).num_rows == 0


def test_values_are_returned_as_they_came() -> None:
    moment = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc)
    table = pa.table(
        {
            "ts": [1],
            "type": ["A"],
            "d": pa.array([dt.date(2024, 1, 1)], pa.date64()),
            "m": pa.array([Decimal("1.10")], pa.decimal128(9, 2)),
            "z": pa.array([moment], pa.timestamp("ms", "UTC")),
            "k": pa.array(["x"]).dictionary_encode(),
        }
    )
    found = cepheid.match("PATTERN A a WITHIN 1 RETURN a.d, a.m, a.z, a.k", table)
    assert found.select(["d", "m", "z", "k"]).to_pylist() == table.select(["d", "m", "z", "k"]).to_pylist()


def test_many_events_at_one_moment() -> None:
    table = pa.table({"ts": pa.array([dt.datetime(2024, 1, 1)] * 40, pa.timestamp("ns")), "type": ["A", "B"] * 20})
    assert cepheid.match("PATTERN AND(A a, B b) WITHIN 5 s", table).num_rows == 400


@pytest.mark.parametrize("strings", [pa.string_view(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_strings_of_any_kind(strings: pa.DataType) -> None:
    names = pa.array(["x", "y", "x"])
    names = names.dictionary_encode() if pa.types.is_dictionary(strings) else names.cast(strings)
    table = pa.table({"ts": [1, 1, 2], "type": ["A", "A", "B"], "c": names})
    assert cepheid.match("PATTERN SEQ(KL(A a), B b) WITHIN 5", table).num_rows == 3
    assert cepheid.match("PATTERN SEQ(A a, B b) USING skip_till_any CONSUME WITHIN 5", table).num_rows == 1
    assert cepheid.match("PATTERN SEQ(A a, B b) WHERE a.c = b.c WITHIN 5", table).num_rows == 1


def test_polars_frames() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame({"ts": [1, 2], "type": ["A", "B"], "k": ["x", "x"]})
    assert cepheid.match("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 5", frame).num_rows == 1


def test_days_as_times() -> None:
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    table = pa.table({"ts": pa.array(days), "type": ["A", "B"]})
    [row] = cepheid.match("PATTERN SEQ(A a, KL(B b)) WITHIN 2 days RETURN a.ts AS x, b.ts AS y", table).to_pylist()
    assert (row["start"], row["end"], row["x"], row["y"]) == (days[0], days[1], days[0], [days[1]])


def test_windows_start_between_the_ticks_of_a_coarse_column() -> None:
    table = pa.table({"ts": pa.array([1, 2], pa.timestamp("s")), "type": ["A", "B"]})
    found = cepheid.match("PATTERN SEQ(A a, B b) WITHIN 2 seconds SLIDE 500 ms", table)["window_start"]
    assert found.to_pylist() == [dt.datetime(1970, 1, 1, 0, 0, 0, 500_000), dt.datetime(1970, 1, 1, 0, 0, 1)]
    small = pa.table({"ts": pa.array([1, 2], pa.uint32()), "type": ["A", "B"]})
    assert cepheid.match("PATTERN SEQ(A a, B b) WITHIN 10 SLIDE 5", small)["window_start"].to_pylist() == [-5, 0]


def test_times_that_cannot_be_reckoned_with_are_refused() -> None:
    table = pa.table({"ts": pa.array([-(2**63) + 5, -(2**63) + 25]), "type": ["A", "B"]})
    with pytest.raises(ValueError, match=r"beyond ±2\^62 ticks"):
        cepheid.match("PATTERN SEQ(A a, B b) WITHIN 100", table)


def test_no_patterns() -> None:
    with pytest.raises(ValueError, match="there are no patterns"):
        cepheid.match([], EVENTS)
