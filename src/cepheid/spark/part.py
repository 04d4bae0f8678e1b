"""The sessions of a shard: what all of them have in common, and one of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.engine.engine import Engine
from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern
from cepheid.pattern.normal import Branch
from cepheid.pattern.normalise import normalise
from cepheid.spark.columns import needed_columns
from cepheid.spark.record import StateError
from cepheid.spark.slices import MICROSECOND, can_be_sliced
from cepheid.spark.task import UserFunction


@dataclass(frozen=True)
class Job:
    """What all shards of a group of patterns have in common.

    ``events``: the columns that the patterns need; ``matches``: those of the result, which may be more than these
    patterns have.
    """

    engine: Engine
    events: pa.Schema
    matches: pa.Schema
    shards: int
    functions: tuple[UserFunction, ...] = ()

    @property
    def columns(self) -> list[str | None]:
        return [self.engine.columns.time, self.engine.columns.type, self.engine.columns.tie_breaker]


class Part:
    """A session of some patterns of a shard. ``since``: the first entry of the log that it is not yet made of."""

    def __init__(self, job: Job, patterns: Sequence[Pattern], since: int, snapshot: bytes | None = None) -> None:
        self.patterns = tuple(patterns)
        self.since = since
        self.snapshot_size = 0 if snapshot is None else len(snapshot)
        self.model_size = 0
        self.unlearned: list[int] = []  # the sizes of the entries of the log since the model was written down
        self._model: bytes | None = None
        engine = job.engine.limited_to(self.patterns)
        normals = [normalise(pattern) for pattern in patterns]
        needed = needed_columns(engine, normals, job.events)
        self._schema = pa.schema([job.events.field(name) for name in needed])
        self.session = engine.open() if snapshot is None else engine.restore(snapshot)
        self.session.prepare(self._schema)
        self._sheds = engine.shed is not None
        bounded = all(map(self.is_bounded, patterns))
        self.reach = max(_reach(b) for n in normals for b in n.branches) if bounded else None

    @staticmethod
    def is_bounded(pattern: Pattern) -> bool:
        """Whether events that are old enough are of no use."""
        return can_be_sliced(normalise(pattern))

    def push(self, events: pa.Table, watermark: Any) -> pa.Table:
        return self.session.push(events, watermark)

    # --- shedding

    def overload(self, ratio: float) -> None:
        if self._sheds:
            self.session.overload(ratio)

    @property
    def learns(self) -> bool:
        """Whether what it has learned is written down by itself."""
        return self._sheds and self.reach is not None

    @property
    def model_name(self) -> str:
        return f"model {digest(self.patterns[0])}"

    def new_model(self) -> bytes | None:
        """What has been learned by now, to be written down; None if that is nothing."""
        self.unlearned = []
        model = self.session.shedding_model()
        if model is not None:
            self.model_size = len(model)
        return model

    def keep_model(self, model: bytes) -> None:
        """One that was written down."""
        self._model, self.model_size = model, len(model)
        self.resume_model()

    def resume_model(self) -> None:
        if self._model is not None:
            self.session.resume_shedding(self._model)

    def fitted(self, events: pa.Table) -> pa.Table:
        """Events with the columns that the session knows."""
        for column in self._schema:
            found = events.schema.field(column.name).type if column.name in events.column_names else None
            if found != column.type:
                has = "they have no such column" if found is None else f"there it is {found}"
                names = ", ".join(str(pattern.name) for pattern in self.patterns)
                raise StateError(
                    f"the column {column.name!r} is {column.type}, and {has} in the events that the state of this "
                    f"query has kept for {names}. Give these patterns other names, so that they start anew, or start "
                    "with a new checkpoint."
                )
        return pa.Table.from_arrays([events[name] for name in self._schema.names], schema=self._schema)


def digest(pattern: Pattern) -> str:
    """Says whether a pattern is the same as before: the same name and the same text."""
    return hashlib.sha256(str(pattern).encode()).hexdigest()[:16]


def _reach(branch: Branch) -> int:
    """How far behind the watermark, in ticks, an event can matter to what is still undecided."""
    size = branch.window.size
    length = -(-size // MICROSECOND) if branch.window.kind is s.WindowKind.TIME else size
    return length * (2 if branch.negations else 1)
