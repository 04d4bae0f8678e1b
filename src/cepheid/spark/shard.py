"""One shard of a stream: its sessions, and what is written down so that they can be made again.

A shard writes a log: for each micro-batch the events that it brought, and the watermark after it. Sessions that are
lost are made again by pushing the log. For that to be exact, the log need not go back for ever:

- Where windows are of time, an undecided match starts at most a window W before the watermark. What can make or unmake
  it lies not before its start or, if it is a negated event, not more than W before its end. So events that are older
  than 2·W, or W without negation, are of no use, and the log is cut off there.
- With CONSUME or windows of a number of events there is no such bound. Such a pattern has a session of its own, of
  which a snapshot is written whenever the log since the last one has grown as long as it; the log goes back to it.

With shedding, the log also says which share of the work was dropped from each micro-batch, so that sessions which are
made again drop about as much. What has been learned for it is in snapshots; where there are none, it is written down by
itself, as often as a snapshot would be.

Patterns may come and go between two runs of a query. One that is new sees the events from then on; until the log goes
back no further than that, it has a session apart from those that were there before.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language.functions import register_function
from cepheid.language.pattern import Pattern
from cepheid.shed.pace import Pace
from cepheid.spark.keeper import Outcome
from cepheid.spark.pack import from_bytes, pieces, to_bytes
from cepheid.spark.part import Job, Part, digest
from cepheid.spark.record import PartRecord, Record, StateError, check_shards
from cepheid.spark.shedding import Losses
from cepheid.spark.task import fitted

LEAST_LOG = 2**18
"""Bytes of log for which no snapshot is worth writing."""
MOST_ENTRIES = 64
"""Micro-batches after which one is written all the same."""


class Shard:
    """The live sessions of a shard. Made anew, or from what an earlier one wrote down."""

    def __init__(self, job: Job, record: Record | None = None, snapshots: Mapping[str, bytes] | None = None) -> None:
        for function in job.functions:
            register_function(function.name, function.body, returns=function.returns)
        self._job = job
        self._watermark = None if record is None else record.watermark
        self._first = 0 if record is None else record.first
        self._next = self._first  # counts up again as the log is read
        self._latest: deque[int] = deque()  # for each entry of the log, the time of its last event …
        self._sizes: deque[int] = deque()  # … and its length
        self._gone: list[str] = []
        self._losses: Losses | None = None  # as soon as anything is dropped
        if record is None:
            self._parts = self._new_parts(job.engine.patterns, 0)
        else:
            _check(job, record)
            self._parts = self._kept_parts(record, snapshots or {})
            self._keep_models(record, snapshots or {})

    # --- from what was written down

    @classmethod
    def restored(cls, job: Job, record: Record, log: Iterable[bytes], snapshots: Mapping[str, bytes]) -> Shard:
        """As it was after the push that wrote the record."""
        shard = cls(job, record, snapshots)
        for packed in log:
            shard._replay(packed)
        if shard._next != record.next:
            raise StateError(f"the log ends with entry {shard._next}, and should end with {record.next}")
        shard._push(job.events.empty_table())
        for part in shard._parts:
            part.resume_model()  # as it was before: the log is not to be learned twice
        return shard

    def _replay(self, packed: bytes) -> None:
        events, about = from_bytes(packed)
        watermark = json.loads(about["watermark"])
        for part in self._parts:
            if part.since <= self._next:
                part.overload(float(about.get("dropping", 0)))
                part.push(part.fitted(events), self._time(watermark))
        self._grow(int(about["latest"]), len(packed))

    def _kept_parts(self, record: Record, snapshots: Mapping[str, bytes]) -> list[Part]:
        wanted = {digest(pattern): pattern for pattern in self._job.engine.patterns}
        parts = []
        old: dict[int, list[Pattern]] = {}
        for kept in record.parts:
            patterns = [wanted.pop(name) for name in kept.patterns if name in wanted]
            if kept.snapshot and patterns:
                parts.append(Part(self._job, patterns, kept.since, snapshots[kept.patterns[0]]))
            elif kept.snapshot:
                self._gone.append(kept.patterns[0])
            elif patterns and not Part.is_bounded(patterns[0]):
                parts.append(Part(self._job, patterns, kept.since))
            elif patterns:  # those who have seen all that is left of the log can go on together
                old.setdefault(max(kept.since, record.first), []).extend(patterns)
        parts += [Part(self._job, patterns, since) for since, patterns in old.items()]
        return [*parts, *self._new_parts(wanted.values(), record.next)]

    def _keep_models(self, record: Record, snapshots: Mapping[str, bytes]) -> None:
        """Models of parts that there are no more, or that do not shed, are gone."""
        named = {} if self._job.engine.shed is None else {part.model_name: part for part in self._parts}
        for name in record.models:
            if name in named:
                named[name].keep_model(snapshots[name])
            else:
                self._gone.append(name)

    def _new_parts(self, patterns: Iterable[Pattern], since: int) -> list[Part]:
        bounded = [pattern for pattern in patterns if Part.is_bounded(pattern)]
        others = [[pattern] for pattern in patterns if not Part.is_bounded(pattern)]
        return [Part(self._job, some, since) for some in ([bounded] if bounded else []) + others]

    # --- one micro-batch

    def push(
        self, packed: Sequence[bytes], watermark: int | None, version: str, pace: Pace | None = None, cut: float = 0.0
    ) -> Outcome:
        """Add events. ``version`` names the state after that.

        ``watermark``: in milliseconds, or ticks where time is a number. It is that of the micro-batches before this
        one, and what is behind it is late. ``pace``: with shedding, that of the query in this process; ``cut``: when
        the micro-batch began, on its clock.
        """
        if watermark is not None and (self._watermark is None or watermark > self._watermark):
            self._watermark = watermark
        events, late = self._accepted(packed)
        found, dropping = (self._push(events), 0.0) if pace is None else self._push_paced(events, pace, cut)
        outcome = Outcome("", wake=(self._watermark or 0) + 1)
        if events.num_rows:
            latest = int(pc.max(self._ticks(events)).as_py())
            about = {"watermark": json.dumps(self._watermark), "latest": str(latest)}
            entry = to_bytes(events, about | ({"dropping": f"{dropping:.3f}"} if dropping else {}))
            outcome.entry = (self._next, entry)
            self._grow(latest, len(entry))
        outcome.snapshots = dict(self._snapshots())
        outcome.dropped = self._cut()
        outcome.matches = list(pieces(found))
        if late is not None:
            outcome.late = to_bytes(late)
        outcome.counts = {
            "events": events.num_rows,
            "late events": 0 if late is None else late.num_rows,
            "matches": found.num_rows,
            "kept bytes": self._kept_bytes(),
            **({} if self._losses is None else self._losses.news()),
        }
        if pace is not None:
            outcome.counts["dropping per mille"] = round(1000 * dropping)
            outcome.counts["overhead milliseconds"] = round(1000 * pace.overhead)
        if not self._latest and all(part.reach is not None for part in self._parts):
            outcome.wake = None  # nothing is waiting for anything
        outcome.record = self._record(version, outcome.wake).to_json()
        return outcome

    def _accepted(self, packed: Sequence[bytes]) -> tuple[pa.Table, pa.Table | None]:
        """The events, and apart from them those that come behind the watermark."""
        schema = self._job.events
        tables = [from_bytes(some)[0] for some in packed]
        events = pa.concat_tables([schema.empty_table(), *tables])
        if self._watermark is None or not events.num_rows:
            return events, None
        late = pc.fill_null(pc.less(self._ticks(events), self._on_clock(self._watermark)), False)
        if not pc.any(late).as_py():
            return events, None
        return events.filter(pc.invert(late)), events.filter(late)

    def _push(self, events: pa.Table) -> pa.Table:
        found = [part.push(part.fitted(events), self._time(self._watermark)) for part in self._parts]
        return pa.concat_tables([fitted(table, self._job.matches) for table in found])

    def _push_paced(self, events: pa.Table, pace: Pace, cut: float) -> tuple[pa.Table, float]:
        """In pieces; with the share of the work that was to be dropped, on average over the events."""
        found, dropping = [], 0.0
        for start, size in pace.pieces(cut, events.num_rows):
            if pace.ratio and self._losses is None:
                self._losses = Losses([part.session for part in self._parts])
            for part in self._parts:
                part.overload(pace.ratio)
            dropping += pace.ratio * size
            found.append(self._push(events.slice(start, size)))
        return pa.concat_tables(found), dropping / max(events.num_rows, 1)

    def _grow(self, latest: int, size: int) -> None:
        self._latest.append(latest)
        self._sizes.append(size)
        self._next += 1
        for part in self._parts:
            if part.learns:
                part.unlearned.append(size)

    def _snapshots(self) -> Iterator[tuple[str, bytes | None]]:
        for gone in self._gone:
            yield gone, None
        self._gone = []
        for part in self._parts:
            if part.learns and _is_due(part.unlearned, part.model_size):
                model = part.new_model()
                if model is not None:
                    yield part.model_name, model
            if part.reach is not None:
                continue
            if _is_due(list(self._sizes)[max(part.since - self._first, 0) :], part.snapshot_size):
                snapshot = part.session.snapshot()
                part.since, part.snapshot_size = self._next, len(snapshot)
                yield digest(part.patterns[0]), snapshot

    def _kept_bytes(self) -> int:
        """What is in the state after this: the log, the snapshots, and what was learned."""
        return sum(self._sizes) + sum(part.snapshot_size + part.model_size for part in self._parts)

    def _cut(self) -> range:
        """Forget the entries at the beginning of the log that no session would need to be made again."""
        first = self._first
        while self._latest and not any(self._needs(part, self._first, self._latest[0]) for part in self._parts):
            self._latest.popleft()
            self._sizes.popleft()
            self._first += 1
        return range(first, self._first)

    def _needs(self, part: Part, entry: int, latest: int) -> bool:
        if entry < part.since:
            return False
        if part.reach is None or self._watermark is None:
            return True
        return latest >= self._on_clock(self._watermark) - part.reach

    def _record(self, version: str, wake: int | None) -> Record:
        parts = tuple(
            PartRecord(tuple(map(digest, part.patterns)), part.since, part.snapshot_size > 0) for part in self._parts
        )
        models = [part.model_name for part in self._parts if part.model_size]
        return Record(
            version, self._job.shards, self._job.columns, self._watermark, self._first, self._next, wake, parts, models
        )  # fmt: skip

    # --- time

    def _ticks(self, events: pa.Table) -> pa.ChunkedArray:
        return events[self._job.engine.columns.time].cast(pa.int64())

    def _on_clock(self, watermark: int) -> int:
        """A watermark on the clock of the events."""
        return watermark * 1000 if pa.types.is_timestamp(self._clock) else watermark

    def _time(self, watermark: int | None) -> Any:
        """A watermark as a session takes it."""
        if watermark is None or not pa.types.is_timestamp(self._clock):
            return watermark
        return pa.scalar(watermark, pa.timestamp("ms"))

    @property
    def _clock(self) -> pa.DataType:
        return self._job.events.field(self._job.engine.columns.time).type


def _is_due(log: Sequence[int], size: int) -> bool:
    """Whether what has this size is to be written down again, after so many entries of the log, of these sizes."""
    return sum(log) > max(LEAST_LOG, size) or len(log) > MOST_ENTRIES


def _check(job: Job, record: Record) -> None:
    check_shards(record.shards, job.shards)
    if record.columns != job.columns:
        was, now = (", ".join(map(str, columns)) for columns in (record.columns, job.columns))
        raise StateError(
            f"the columns with the time, the type and the tie-breaker of the events were {was}, and now are {now}. "
            "They stay the same for the life of a checkpoint; start with a new one."
        )
