"""What a strategy decides: which pairs of tuples, and which events, are dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

ALL = 1024
"""A level is how many of so many pairs are dropped."""
CONTROL = 64
"""One of so many left tuples, by its anchor, is in the control group: of its pairs none is dropped."""

EACH_PAIR, SAME_LEFT, SAME_RIGHT = range(3)
"""Where only some pairs are dropped, which of them share their fate: none, those of one partial match, or those of one
event in one window."""


@dataclass(frozen=True)
class Drops:
    """``levels``: for each line of the model and each place. ``thin``: for each leaf, the part of its events.

    ``kind`` says it in words.
    """

    kind: str
    levels: npt.NDArray[np.int64]
    alike: int = EACH_PAIR
    thin: Mapping[int, float] = field(default_factory=dict)
    pairs: bool = field(init=False)  # whether any are dropped

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", bool(self.levels.any()))

    @property
    def any(self) -> bool:
        """Whether there is anything that may be dropped."""
        return self.pairs or any(self.thin.values())
