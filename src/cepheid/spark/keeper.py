"""Keeps the live shards of streaming queries between micro-batches, each under the version of the state that it has."""

from __future__ import annotations

import pickle
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from cepheid.engine.warming import warm_up
from cepheid.shed.pace import Pace

if TYPE_CHECKING:
    from cepheid.spark.part import Job
    from cepheid.spark.shard import Shard

ShardName: TypeAlias = "tuple[str, str, int]"
"""The query, which of its results, and the key of the shard in that."""
IDLE = 900.0
"""Seconds after which a shard that nobody asks for is given up: it is elsewhere now."""


@dataclass
class Outcome:
    """What a push decided, and what is to be written to the state for it.

    ``entry``: what the log gets, with its number; ``dropped``: the entries that it loses; ``snapshots``: those that are
    written or, if None, gone. ``wake``: the watermark at which the shard wants to be asked again, events or not.
    """

    record: str
    entry: tuple[int, bytes] | None = None
    dropped: range = range(0)
    snapshots: dict[str, bytes | None] = field(default_factory=dict)
    matches: list[bytes] = field(default_factory=list)
    late: bytes | None = None
    wake: int | None = None
    counts: dict[str, int] = field(default_factory=dict)


class Keeping(Protocol):
    """What a worker asks of a keeper, in its own process or in another."""

    def push(
        self,
        job: str,
        shard: ShardName,
        version: str | None,
        packed: Sequence[bytes],
        watermark: int | None,
        new: str,
        cut: float,
    ) -> Outcome | None:
        """The outcome of a push to a shard with this version of the state; None if there is no such shard.

        Without a version, the shard is new. ``new``: the version that it has after this. ``cut``: when the micro-batch
        began, in seconds since 1970.
        """

    def knows(self, job: str) -> bool:
        """Whether a job, by its digest, was learned."""

    def learn(self, job: str, packed: bytes) -> None: ...

    def restore(
        self, job: str, shard: ShardName, record: str, log: Iterable[bytes], snapshots: Mapping[str, bytes]
    ) -> None:
        """Make a shard from what was written down."""


@dataclass
class _Live:
    version: str | None
    shard: Shard
    used: float


class Keeper:
    """Live shards in this process."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._paces: dict[tuple[str, float, float], Pace] = {}
        self._live: dict[tuple[str, ShardName], _Live] = {}

    def knows(self, job: str) -> bool:
        return job in self._jobs

    def learn(self, job: str, packed: bytes) -> None:
        found: Job = pickle.loads(zlib.decompress(packed))
        self._jobs[job] = found
        if found.engine.shed is not None and not found.functions:
            warm_up(found.engine, found.engine.patterns, found.events.empty_table(), found.engine.columns)

    def restore(
        self, job: str, shard: ShardName, record: str, log: Iterable[bytes], snapshots: Mapping[str, bytes]
    ) -> None:
        from cepheid.spark.record import Record
        from cepheid.spark.shard import Shard

        found = Record.from_json(record)
        restored = Shard.restored(self._jobs[job], found, log, snapshots)
        self._live[job, shard] = _Live(found.version, restored, time.monotonic())

    def push(
        self,
        job: str,
        shard: ShardName,
        version: str | None,
        packed: Sequence[bytes],
        watermark: int | None,
        new: str,
        cut: float,
    ) -> Outcome | None:
        now = time.monotonic()
        live = self._live.pop((job, shard), None)  # if the push fails, it is gone
        if version is None and job in self._jobs:
            from cepheid.spark.shard import Shard

            live = _Live(None, Shard(self._jobs[job]), now)
        if live is None or live.version != version:
            return None
        outcome = live.shard.push(packed, watermark, new, self._pace(job, shard), cut)
        self._live = {key: other for key, other in self._live.items() if now - other.used < IDLE}
        self._live[job, shard] = _Live(new, live.shard, now)
        return outcome

    def _pace(self, job: str, shard: ShardName) -> Pace | None:
        """One for all shards of a query in this process: they wait for each other."""
        shed = self._jobs[job].engine.shed
        if shed is None:
            return None
        key = shard[0], shed.seconds, shed.safety
        if key not in self._paces:
            self._paces[key] = Pace(shed.seconds, shed.safety)
        return self._paces[key]


HERE = Keeper()
"""The keeper of this process."""
