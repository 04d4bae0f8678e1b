"""The stateful operator of a stream: reads and writes the state of shards, and hands events to their keepers."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from cepheid.spark.host import LostError, hosts_here, keeper_of
from cepheid.spark.keeper import HERE, Keeping, Outcome
from cepheid.spark.late import write_late
from cepheid.spark.pack import NOTHING, settle
from cepheid.spark.plain_errors import plain_errors
from cepheid.spark.record import check_shards
from cepheid.spark.shard_keys import group_of
from cepheid.spark.shedding import DROPPED

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

COUNTS = ("events", "late events", "matches", "kept bytes", "restored", "milliseconds", *DROPPED)
HIGHEST = ("dropping per mille", "overhead milliseconds")
"""Of these, all shards together have the highest. The overhead is there with shedding only."""
KILLED = (
    "the process that keeps a shard was killed while it worked on a micro-batch, and so was the one that took its "
    "place. Most likely the machine had too little memory for it, of which the system's log tells. Give Spark itself "
    "less (spark.driver.memory, spark.executor.memory), take fewer events in a micro-batch, or set max_partial_matches."
)
OUTPUT = "packed binary, " + ", ".join(f"`{name}` long" for name in (*COUNTS, *HIGHEST))


@dataclass(frozen=True)
class PackedJob:
    """A job on its way to a keeper: pickled and compressed, and a digest to know it by. ``keys``: the keys of its
    shards, in order.
    """

    packed: bytes
    keys: tuple[int, ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.packed).hexdigest()[:16]


def _one(name: str, type_: StringType | BinaryType | LongType) -> StructType:
    return StructType([StructField(name, type_)])


class ShardProcessor(StatefulProcessor):
    """For each shard: the record, the log and the snapshots that :mod:`cepheid.spark.shard` speaks of.

    ``jobs``: by the number of their groups; ``hosts``: how many processes keep live shards on a machine, 0 for the
    worker itself, None for as many as that machine has cores; ``late``: where late events are written, and ``name``
    tells those of several results of a query apart.
    """

    def __init__(self, jobs: Mapping[int, PackedJob], hosts: int | None, late: str | None, name: str) -> None:
        self._jobs = dict(jobs)
        self._wanted_hosts = hosts
        self._late = late
        self._name = name

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle()
        self._hosts = hosts_here(self._wanted_hosts)
        self._handle = handle
        self._record = handle.getValueState("record", _one("json", StringType()))
        self._log = handle.getMapState("log", _one("number", LongType()), _one("events", BinaryType()))
        self._snapshots = handle.getMapState("snapshots", _one("pattern", StringType()), _one("session", BinaryType()))

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        packed = [bytes(value) for frame in rows for value in frame["events"] if value != NOTHING]
        with plain_errors():
            yield from self._push(int(key[0]), packed, timerValues)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        if group_of(int(key[0])) in self._jobs:
            with plain_errors():
                yield from self._push(int(key[0]), [], timerValues)
        else:  # of patterns that are no more
            self._record.clear()
            self._log.clear()
            self._snapshots.clear()

    def close(self) -> None:
        pass

    def _push(self, key: int, packed: Sequence[bytes], times: TimerValues) -> Iterator[pd.DataFrame]:
        started = time.perf_counter()
        watermark, cut = times.getCurrentWatermarkInMs(), times.getCurrentProcessingTimeInMs() / 1000
        state = self._record.get()
        record = None if state is None else state[0]
        known: dict[str, Any] | None = None if record is None else json.loads(record)
        job = self._jobs[group_of(key)]
        if known is not None:
            check_shards(known["shards"], len(job.keys))
            if not packed and known["watermark"] == watermark:
                return  # nothing new, or it has been asked in this micro-batch when its events came
        version = None if known is None else known["version"]
        # Spark's watermark is 0 as long as there is none.
        shard = (_property("sql.streaming.queryId"), self._name, key)
        call = (job.digest, shard, version, packed, watermark if watermark > 0 else None, uuid.uuid4().hex, cut)
        outcome, restored = self._outcome(job, call, record)
        self._write(outcome)
        if self._late is not None and outcome.late is not None:
            write_late(self._late, outcome.late, _batch(), key, self._name)
        if outcome.wake is not None and (known is None or known["wake"] != outcome.wake):
            self._handle.registerTimer(outcome.wake)
        yield _frame(outcome, restored=restored, seconds=time.perf_counter() - started)

    def _outcome(self, job: PackedJob, call: tuple[Any, ...], record: str | None) -> tuple[Outcome, bool]:
        """The outcome of a push, and whether its session had to be made again.

        A process that is lost on the way takes with it all that it has done and counted. Nothing of that is written
        yet, so that another one can do the same from the state.
        """
        try:
            return self._asked(job, call, record)
        except LostError:
            pass
        try:
            return self._asked(job, call, record)
        except LostError:
            raise LostError(KILLED) from None

    def _asked(self, job: PackedJob, call: tuple[Any, ...], record: str | None) -> tuple[Outcome, bool]:
        _, shard, *_ = call
        with self._keeper(job.keys.index(shard[-1])) as keeper:
            outcome = keeper.push(*call)
            restored = outcome is None and record is not None
            if outcome is None:
                if not keeper.knows(job.digest):
                    keeper.learn(job.digest, job.packed)
                if record is not None:
                    known = json.loads(record)
                    keeper.restore(job.digest, shard, record, self._entries(known), self._kept_snapshots(known))
                outcome = keeper.push(*call)
        assert outcome is not None
        return outcome, restored

    def _keeper(self, shard: int) -> Any:
        return keeper_of(shard, self._hosts) if self._hosts else nullcontext[Keeping](HERE)

    # --- state

    def _entries(self, record: Mapping[str, Any]) -> list[bytes]:
        found = {int(number[0]): bytes(value[0]) for number, value in self._log.iterator()}
        return [found[number] for number in range(record["first"], record["next"])]

    def _kept_snapshots(self, record: Mapping[str, Any]) -> dict[str, bytes]:
        if not record.get("models") and not any(snapshot for _, _, snapshot in record["parts"]):
            return {}
        return {str(name[0]): bytes(value[0]) for name, value in self._snapshots.iterator()}

    def _write(self, outcome: Outcome) -> None:
        if outcome.entry is not None:
            number, entry = outcome.entry
            self._log.updateValue((number,), (entry,))
        for number in outcome.dropped:
            self._log.removeKey((number,))
        for name, snapshot in outcome.snapshots.items():
            if snapshot is None:
                self._snapshots.removeKey((name,))
            else:
                self._snapshots.updateValue((name,), (snapshot,))
        self._record.update((outcome.record,))


def _frame(outcome: Outcome, *, restored: bool, seconds: float) -> pd.DataFrame:
    """A row for each packed table of matches; at least one, with the counts."""
    import pandas as pd

    counts = {**outcome.counts, "restored": int(restored), "milliseconds": round(1000 * seconds)}
    rows = max(1, len(outcome.matches))
    matches: Sequence[bytes | None] = outcome.matches or [None]
    return pd.DataFrame(
        {"packed": matches} | {name: [counts.get(name, 0)] + [0] * (rows - 1) for name in (*COUNTS, *HIGHEST)}
    )


def _batch() -> str:
    """Names the micro-batch: the same when it is done again after a failure."""
    return f"{_property('sql.streaming.queryId')}-{_property('streaming.sql.batchId')}"


def _property(name: str) -> str:
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(name)
    assert found is not None, f"a task of a stream has the property {name}"
    return found
