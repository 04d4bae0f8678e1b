"""What came of a job."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cepheid.job.description import Job
from cepheid.language.pattern import Pattern
from cepheid.local.explain.explain import Explanation


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What a stream reported about one of its micro-batches.

    ``at``: when it began. ``seconds``: how long it took. ``behind``: what the source has that was not read yet, in
    units of ``behind_unit``. ``state_bytes``: how much the stream has to remember. ``dropping``: the share of the work
    that was dropped, in the shard that dropped most; ``lost``: the matches that this is expected to have cost.
    ``overhead``: with shedding, the seconds that it takes whatever is dropped.
    """

    number: int
    at: dt.datetime
    seconds: float
    events: int
    matches: int
    matches_of: Mapping[str, int] = field(default_factory=dict)
    late: int = 0
    watermark: dt.datetime | None = None
    newest: dt.datetime | None = None
    behind: int | None = None
    behind_unit: str = ""
    state_bytes: int = 0
    example: str | None = None
    dropping: float = 0.0
    lost: int = 0
    overhead: float = 0.0

    @property
    def rate(self) -> float:
        """Events in a second of work."""
        return self.events / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events and matches over the time that events carry, in stretches of equal length.

    ``first`` and ``width`` are microseconds, or whatever unit the times have; ``moments``:
    whether they are times of day.
    """

    first: int
    width: int
    moments: bool
    events: tuple[int, ...]
    matches: tuple[int, ...] = ()

    def start(self, place: int) -> int:
        return self.first + place * self.width


@dataclass(frozen=True)
class Outcome:
    """``seconds``: from the first look at the events to the last match written. ``first``: the earliest matches, as
    values by column; ``first_note`` says if they are others. ``failed``: why it ended early, None if it did not; the
    rest is what is known until then. ``notes``: what could not be found out, or not exactly.
    """

    job: Job
    patterns: Sequence[Pattern]
    started: dt.datetime
    seconds: float
    events: int
    matches: int
    matches_of: Mapping[str, int]
    first: Sequence[Mapping[str, Any]] = ()
    first_note: str = ""
    late: int = 0
    batches: Sequence[MicroBatch] = ()
    timeline: Timeline | None = None
    explanation: Explanation | None = None
    explanation_note: str = ""
    stopped: bool = False
    where: str | None = None
    lost: int = 0
    failed: str | None = None
    notes: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Events in a second."""
        return self.events / self.seconds if self.seconds else 0.0
