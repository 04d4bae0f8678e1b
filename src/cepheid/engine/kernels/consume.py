"""Choosing between matches that want the same events."""

from __future__ import annotations

import numpy as np

from cepheid.engine.compile import kernel


@kernel
def choose(order, starts, events, used):
    """Which matches win: in this order, those none of whose events is used; their events are from then on."""
    won = np.zeros(order.shape[0], dtype=np.bool_)
    for place in range(order.shape[0]):
        match = order[place]
        free = True
        for e in range(starts[match], starts[match + 1]):
            if used[events[e]]:
                free = False
                break
        if free:
            won[match] = True
            for e in range(starts[match], starts[match + 1]):
                used[events[e]] = True
    return won
