"""How many events are in reach of a tuple."""

from __future__ import annotations

import numpy as np

from cepheid.engine.compile import kernel
from cepheid.engine.kernels.join import bucket_of


@kernel
def count_by_key(wanted, low, high, keys, times, heads, links, in_order):
    """For each of the ``wanted`` keys, how many tuples of that key have a time from ``low`` to ``high``."""
    found = np.zeros(wanted.shape[0], dtype=np.int64)
    for o in range(wanted.shape[0]):
        i = heads[bucket_of(wanted[o], heads.shape[0])]
        while i >= 0 and not (in_order and times[i] < low[o]):
            if keys[i] == wanted[o] and low[o] <= times[i] <= high[o]:
                found[o] += 1
            i = links[i]
    return found
