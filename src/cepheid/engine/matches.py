"""Matches of a branch, as the engine hands them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.engine.relation import Tuples, concatenate

Rows: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Matches:
    """For each match its rows, in the order of ``variables``, and with SLIDE the start of its window."""

    variables: tuple[str, ...]
    tuples: Tuples
    window_start: Rows | None = None

    def __len__(self) -> int:
        return len(self.tuples)

    def take(self, chosen: npt.NDArray[np.bool_] | Rows | slice) -> Matches:
        start = None if self.window_start is None else self.window_start[chosen]
        return Matches(self.variables, self.tuples.take(chosen), start)

    @property
    def columns(self) -> dict[str, Rows]:
        return columns_of(self.variables, self.tuples)


def columns_of(names: tuple[str, ...], tuples: Tuples) -> dict[str, Rows]:
    return {name: tuples.rows[:, place] for place, name in enumerate(names)}


def joined(parts: list[Matches]) -> Matches:
    start = None if parts[0].window_start is None else np.concatenate([p.window_start for p in parts])
    return Matches(parts[0].variables, concatenate([p.tuples for p in parts]), start)
