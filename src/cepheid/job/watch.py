"""Who looks on while a job runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cepheid.job.outcome import MicroBatch


class Watcher(Protocol):
    def phase(self, text: str) -> None:
        """What is being done now."""

    def tasks(self, done: int, total: int) -> None:
        """How far a batch has come."""

    def micro_batch(self, batch: MicroBatch) -> None:
        """A stream has finished one."""

    def matches(self, rows: Sequence[Mapping[str, Any]], more: int) -> None:
        """Matches that are to be printed, and how many more there are."""


class Nobody:
    """Looks away."""

    def phase(self, text: str) -> None: ...

    def tasks(self, done: int, total: int) -> None: ...

    def micro_batch(self, batch: MicroBatch) -> None: ...

    def matches(self, rows: Sequence[Mapping[str, Any]], more: int) -> None: ...
