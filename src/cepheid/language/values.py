"""Points in time and lengths of time, in whole nanoseconds."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

_NANOSECONDS = {
    "day": 86_400_000_000_000,
    "hour": 3_600_000_000_000,
    "minute": 60_000_000_000,
    "second": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
UNITS: dict[str, int] = {
    **{
        alias: _NANOSECONDS[unit]
        for unit, aliases in {
            "day": "d day days",
            "hour": "h hr hrs hour hours",
            "minute": "min mins minute minutes",
            "second": "s sec secs second seconds",
            "ms": "ms millis millisecond milliseconds",
            "us": "us µs μs microsecond microseconds",
            "ns": "ns nanosecond nanoseconds",
        }.items()
        for alias in aliases.split()
    },
    **dict.fromkeys(("w", "week", "weeks"), 7 * _NANOSECONDS["day"]),
}
"""Nanoseconds in each unit of time that a pattern may name."""

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?"
    r"\s*(Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_EPOCH = dt.datetime(1970, 1, 1)
_FIRST, _LAST = ((moment - _EPOCH) // dt.timedelta(seconds=1) for moment in (dt.datetime.min, dt.datetime.max))


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """A length of time.

    >>> str(Interval(129_600_000_000_000))
    '1 day 12 hours'
    """

    nanoseconds: int

    @classmethod
    def of(cls, quantity: str, unit: str) -> Interval:
        """``of("1.5", "hours")``; ValueError where this is no whole number of nanoseconds."""
        try:
            number = Decimal(quantity)
        except InvalidOperation:  # an exponent beyond all measure
            number = Decimal("Infinity")
        if number.is_infinite() or (number and not -20 < number.adjusted() < 20):
            raise ValueError(f"{quantity} {unit} is not a length of time that can be measured")
        amount = number * UNITS[unit.lower()]
        if amount != amount.to_integral_value():
            raise ValueError(f"{quantity} {unit} is not a whole number of nanoseconds")
        return cls(int(amount))

    @classmethod
    def from_timedelta(cls, delta: dt.timedelta) -> Interval:
        return cls((delta // dt.timedelta(microseconds=1)) * 1000)

    def __str__(self) -> str:
        rest = abs(self.nanoseconds)
        words = []
        for unit, size in _NANOSECONDS.items():
            count, rest = divmod(rest, size)
            if count:
                plural = "s" if count != 1 and len(unit) > 2 else ""
                words.append(f"{count} {unit}{plural}")
        return ("-" if self.nanoseconds < 0 else "") + (" ".join(words) or "0 seconds")


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time: nanoseconds since 1970-01-01 00:00:00 UTC."""

    nanoseconds: int

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """ISO 8601 with a blank or a T, to the nanosecond; UTC unless an offset is given."""
        found = _TIMESTAMP.fullmatch(text.strip())
        if not found:
            raise ValueError(f"{text!r} is not a timestamp")
        year, month, day, hour, minute, second, fraction, zone = found.groups()
        moment = dt.datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
        seconds = (moment - _EPOCH) // dt.timedelta(seconds=1)
        if zone and zone != "Z":
            hours, minutes = int(zone[1:3]), int(zone[-2:])
            if hours > 23 or minutes > 59:
                raise ValueError(f"{zone} is not an offset from UTC")
            seconds -= (1 if zone[0] == "+" else -1) * (hours * 3600 + minutes * 60)
        if not _FIRST <= seconds <= _LAST:
            raise ValueError(f"{text} is not within the years 1 to 9999 in UTC")
        return cls(seconds * 1_000_000_000 + int((fraction or "0").ljust(9, "0")))

    @classmethod
    def from_datetime(cls, moment: dt.datetime) -> Timestamp:
        """A datetime without a zone is taken as UTC."""
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.timezone.utc).replace(tzinfo=None)
        return cls(((moment - _EPOCH) // dt.timedelta(microseconds=1)) * 1000)

    def __str__(self) -> str:
        seconds, fraction = divmod(self.nanoseconds, 1_000_000_000)
        moment = _EPOCH + dt.timedelta(seconds=seconds)
        digits = f".{fraction:09d}".rstrip("0") if fraction else ""
        return f"{moment.isoformat(sep=' ')}{digits}Z"
