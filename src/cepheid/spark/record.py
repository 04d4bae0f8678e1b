"""What the state of a shard says about itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from cepheid.language.problems import CepheidError

FORMAT = 1


class StateError(CepheidError, ValueError):
    """The state of a query does not fit what it is now asked to do."""


@dataclass(frozen=True)
class PartRecord:
    """Patterns, by their digests, that have seen the events of the log from entry ``since`` on."""

    patterns: tuple[str, ...]
    since: int
    snapshot: bool = False


@dataclass(frozen=True)
class Record:
    """The small value that says what else is in the state. The log has the entries from ``first`` up to ``next``.

    ``wake``: the watermark at which the shard is to be asked again, events or not. ``models``: what was learned for
    shedding, by the names under which it lies with the snapshots.
    """

    version: str
    shards: int
    columns: list[str | None]
    watermark: int | None
    first: int
    next: int
    wake: int | None
    parts: tuple[PartRecord, ...]
    models: Sequence[str] = ()

    def to_json(self) -> str:
        parts = [[list(p.patterns), p.since, p.snapshot] for p in self.parts]
        return json.dumps({"format": FORMAT, **vars(self), "parts": parts})

    @classmethod
    def from_json(cls, text: str) -> Record:
        found = json.loads(text)
        if found.pop("format") != FORMAT:
            raise StateError(
                "the state of this query was written by another version of Cepheid, in a format that this one does not "
                "read. Go on with that version, or start with a new checkpoint."
            )
        parts = tuple(PartRecord(tuple(patterns), since, snapshot) for patterns, since, snapshot in found.pop("parts"))
        return cls(parts=parts, **found)

    @property
    def snapshots(self) -> list[str]:
        """The names of all that lies apart."""
        return [*(part.patterns[0] for part in self.parts if part.snapshot), *self.models]


def check_shards(before: int, now: int) -> None:
    if before != now:
        raise StateError(
            f"the state of this query is in {before} shards, and it is now asked to run with {now}. The number of "
            f"shards stays the same for the life of a checkpoint: pass shards={before}, or start with a new checkpoint."
        )
