"""Timestamps and intervals read and write to the nanosecond."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.language.reader import read_expression, read_length
from cepheid.language.text import expression_text
from cepheid.language.values import Interval, Timestamp

NANOSECONDS = st.integers(-(2**63), 2**63 - 1)


@given(NANOSECONDS)
def test_any_timestamp_is_read_back(nanoseconds: int) -> None:
    moment = Timestamp(nanoseconds)
    assert Timestamp.parse(str(moment)) == moment


@given(NANOSECONDS.filter(lambda n: n > -(2**63)))
def test_any_interval_is_read_back(nanoseconds: int) -> None:
    text = str(Interval(nanoseconds))
    assert expression_text(read_expression(text)) == text


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1 day 12 hours", 129_600_000_000_000),
        ("1.5 hours", 5_400_000_000_000),
        ("250ms", 250_000_000),
        ("2 weeks", 1_209_600_000_000_000),
        ("3 us 7 ns", 3_007),
        ("1 MIN 1 Sec", 61_000_000_000),
        ("0 seconds", 0),
    ],
)
def test_lengths_of_time(text: str, nanoseconds: int) -> None:
    assert read_length(text).size == nanoseconds


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-17", dt.datetime(2024, 5, 17)),
        ("2024-05-17 09:30", dt.datetime(2024, 5, 17, 9, 30)),
        ("2024-05-17T09:30:15.25Z", dt.datetime(2024, 5, 17, 9, 30, 15, 250_000)),
        ("2024-05-17 09:30:00+02:00", dt.datetime(2024, 5, 17, 7, 30)),
        ("2024-05-17 09:30:00 -0130", dt.datetime(2024, 5, 17, 11, 0)),
        ("1969-12-31 23:59:59", dt.datetime(1969, 12, 31, 23, 59, 59)),
    ],
)
def test_timestamps(text: str, moment: dt.datetime) -> None:
    assert Timestamp.parse(text) == Timestamp.from_datetime(moment)


@pytest.mark.parametrize(
    "text", ["", "today", "2024-02-30", "2024-05-17 25:00", "2024-05-17 09:30:00+99:00", "17.5.2024"]
)
def test_what_is_no_timestamp(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Timestamp.parse(text)


def test_a_datetime_with_a_zone_is_the_same_moment() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    assert Timestamp.from_datetime(dt.datetime(2024, 5, 17, 9, tzinfo=zone)) == Timestamp.parse("2024-05-17 07:00")
