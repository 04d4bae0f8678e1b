"""How often to look at the statistics: after so many events, after a length of time, or as often as costs little."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from cepheid.language import syntax as s
from cepheid.language.problems import PatternError
from cepheid.language.reader import read_length
from cepheid.language.values import Interval

CheckEvery: TypeAlias = "int | str | dt.timedelta | None"
"""What a user may write."""

EVENT = 200
"""The work of taking in one event, in candidates and evaluations of conditions: both take about as long."""
LOOK = 20_000
"""The work of a look, for each variable of a pattern, or for four of the subsets that a planner searches …"""
LOOKS = 80
"""… and so many times as much is done before the next."""
BETWEEN = 4_096
"""Looks are taken between pushes, so pushes have no more events than these where nobody says how often to look."""
FIRST_LOOKS = 16
"""A plan that was made without knowledge may be a bad one: before so many looks were taken, they come sooner."""


@dataclass(frozen=True, slots=True)
class Every:
    """After so many events, or so much time of the stream; with neither, after enough work."""

    events: int | None = None
    nanoseconds: int | None = None

    @classmethod
    def of(cls, given: CheckEvery) -> Every:
        """
        >>> Every.of(500), Every.of("500 events"), Every.of("10 minutes").nanoseconds
        (Every(events=500, nanoseconds=None), Every(events=500, nanoseconds=None), 600000000000)
        """
        if given is None:
            return cls()
        window = None
        if isinstance(given, str):
            with suppress(PatternError):
                window = read_length(given)
        elif isinstance(given, dt.timedelta):
            window = s.Window(s.WindowKind.TIME, Interval.from_timedelta(given).nanoseconds)
        elif isinstance(given, int) and not isinstance(given, bool):
            window = s.Window(s.WindowKind.EVENTS, given)
        if window is None or window.kind is s.WindowKind.NUMBER or window.size < 1:
            raise ValueError(
                f"check_every is 1 event or more, text such as '500 events' or '10 minutes', or a timedelta; "
                f"got {given!r}"
            )
        return cls(events=window.size) if window.kind is s.WindowKind.EVENTS else cls(nanoseconds=window.size)

    def push_size(self, most: int) -> int:
        """How many events to push at once, so that looks can be taken when it is time to.

        >>> Every.of(500).push_size(65_536), Every.of("1 hour").push_size(65_536), Every.of(None).push_size(1_000)
        (500, 4096, 1000)
        """
        return min(most, self.events or BETWEEN)


def enough(work: int, events: int, variables: int, looks: int) -> bool:
    """Whether so much has been done since the last look that another one costs about an eightieth of it."""
    wanted = LOOKS * LOOK * max(variables, 1) * min(1.0, (looks + 1) / FIRST_LOOKS)
    return work + EVENT * events >= wanted
