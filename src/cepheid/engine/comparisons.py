"""Conditions of events that may be gone: what comparisons need of them is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cepheid.engine.joiner import Rows
from cepheid.engine.joint import Judge, Places
from cepheid.engine.kernels.join import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, UNEQUAL
from cepheid.engine.program import Compared, Side
from cepheid.engine.vector import Mask, Numbers
from cepheid.pattern.normal import Condition

COMPARE = {
    EQUAL: np.equal,
    UNEQUAL: np.not_equal,
    LESS: np.less,
    LESS_EQUAL: np.less_equal,
    GREATER: np.greater,
    GREATER_EQUAL: np.greater_equal,
}


def _unknown(condition: Condition, places: Mapping[str, Places]) -> Mask | None:
    return None


@dataclass
class Comparisons:
    """Judges conditions on some events of each variable.

    ``values``: what is compared, of these events. ``others``: judges the conditions that are no comparisons, for as
    long as it can.
    """

    compared: Mapping[Condition, Compared]
    values: Mapping[Side, Rows | Numbers]
    others: Judge = _unknown

    def __call__(self, condition: Condition, places: Mapping[str, Places]) -> Mask | None:
        found = self.compared.get(condition)
        if found is None:
            return self.others(condition, places)
        left, right = (self.values[side][places[side.variable]] for side in (found.left, found.right))
        good: Mask = COMPARE[found.operator](left, right)
        return good
