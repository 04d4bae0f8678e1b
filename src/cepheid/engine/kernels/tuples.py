"""Tuples of events: putting pairs of them together, and adding them to those that are kept."""

from __future__ import annotations

import numpy as np

from cepheid.engine.compile import kernel
from cepheid.engine.kernels.join import bucket_of


@kernel
def put_together(outer, outer_lo, outer_hi, inner, inner_lo, inner_hi, o, i, outer_to, inner_to):
    """The tuples of pairs (o, i): their rows, first and last times. ``_to``: which columns those of a side become."""
    count = o.shape[0]
    rows = np.empty((count, outer_to.shape[0] + inner_to.shape[0]), dtype=np.int64)
    lo = np.empty(count, dtype=np.int64)
    hi = np.empty(count, dtype=np.int64)
    for n in range(count):
        one, other = o[n], i[n]
        for column in range(outer_to.shape[0]):
            rows[n, outer_to[column]] = outer[one, column]
        for column in range(inner_to.shape[0]):
            rows[n, inner_to[column]] = inner[other, column]
        lo[n] = min(outer_lo[one], inner_lo[other])
        hi[n] = max(outer_hi[one], inner_hi[other])
    return rows, lo, hi


@kernel
def insert(rows, lo, hi, begin, end, new_rows, new_lo, new_hi, order, newest, keep_order):
    """Put tuples, taken in an ``order``, behind those from ``begin`` to ``end``; or, to ``keep_order``, among them.

    Equal times stay in the order of arrival. The latest time of all, and whether all are sorted by their first event
    if those before were.
    """
    in_order = True
    count = new_lo.shape[0]
    for n in range(count):
        newest = max(newest, new_hi[n])
    if keep_order:  # from the last to the first, and what is later makes room
        source, target = end - 1, end + count - 1
        for n in range(count - 1, -1, -1):
            this = order[n]
            while source >= begin and lo[source] > new_lo[this]:
                lo[target], hi[target] = lo[source], hi[source]
                for column in range(rows.shape[1]):
                    rows[target, column] = rows[source, column]
                source -= 1
                target -= 1
            lo[target], hi[target] = new_lo[this], new_hi[this]
            for column in range(rows.shape[1]):
                rows[target, column] = new_rows[this, column]
            target -= 1
        return newest, True
    for n in range(count):
        this, target = order[n], end + n
        lo[target], hi[target] = new_lo[this], new_hi[this]
        for column in range(rows.shape[1]):
            rows[target, column] = new_rows[this, column]
        if target > begin and lo[target] < lo[target - 1]:
            in_order = False
    return newest, in_order


@kernel
def nearly_sorted(times):
    """The places of some times in their order, equal ones as they stand, and whether they are in it.

    It is given up where they are far from it, for then there are faster ways to sort them.
    """
    order = np.arange(times.shape[0])
    moves = 64 + 4 * times.shape[0]
    for n in range(1, times.shape[0]):
        place = n
        while place > 0 and times[order[place - 1]] > times[n]:
            order[place] = order[place - 1]
            place -= 1
            moves -= 1
        order[place] = n
        if moves < 0:
            return order, False
    return order, True


@kernel
def link(keys, heads, links, start, stop):
    """Put tuples ``start`` to ``stop`` at the front of the chains of their keys."""
    for i in range(start, stop):
        bucket = bucket_of(keys[i], heads.shape[0])
        links[i] = heads[bucket]
        heads[bucket] = i
