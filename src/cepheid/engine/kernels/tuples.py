"""Tuples of events: putting pairs of them together, and adding them to those that are kept."""

from __future__ import annotations

import numpy as np

from cepheid.engine.compile import kernel
from cepheid.engine.kernels.join import bucket_of, join


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
def join_tuples(
    outer, outer_lo, outer_hi, inner, inner_lo, inner_hi,
    low, high, window, after, before, conditions, values, floats, base, ties,
    key_slot, key_column, keys, heads, links, in_order, limit, gate, outer_to, inner_to,
):  # fmt: skip
    """The tuples of all pairs that go together, and counts: ``join`` and ``put_together`` at once.

    To hand an array to Python takes longer than to find a few pairs.
    """
    o, i, counts = join(
        outer, outer_lo, outer_hi, inner, inner_lo, inner_hi,
        low, high, window, after, before, conditions, values, floats, base, ties,
        key_slot, key_column, keys, heads, links, in_order, False, limit, gate,
    )  # fmt: skip
    rows, lo, hi = put_together(outer, outer_lo, outer_hi, inner, inner_lo, inner_hi, o, i, outer_to, inner_to)
    return rows, lo, hi, counts


IN_ORDER, OUT_OF_ORDER, FAR_FROM_SORTED = range(3)


@kernel
def insert(rows, lo, hi, keys, begin, end, new_rows, new_lo, new_hi, new_keys, order, newest):
    """Put tuples behind those from ``begin`` to ``end`` if they have keys; else among them, so that all are sorted.

    They are taken in an ``order``; if there is none, in that of their first events, equal ones as they stand. That is
    found by moving them one by one, and given up, with nothing done, where they are far from it: there are faster ways
    to sort them then. Whether all are sorted by their first event, if those before were; and the latest time of all.
    """
    count = new_lo.shape[0]
    if order.shape[0] < count:
        order = np.arange(count)
        moves = 64 + 4 * count
        for n in range(1, count):
            place = n
            while place > 0 and new_lo[order[place - 1]] > new_lo[n]:
                order[place] = order[place - 1]
                place -= 1
                moves -= 1
            order[place] = n
            if moves < 0:
                return FAR_FROM_SORTED, newest
    for n in range(count):
        newest = max(newest, new_hi[n])
    if keys.shape[0] == 0:  # from the last to the first, and what is later makes room
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
        return IN_ORDER, newest
    found = IN_ORDER
    for n in range(count):
        this, target = order[n], end + n
        lo[target], hi[target] = new_lo[this], new_hi[this]
        for column in range(rows.shape[1]):
            rows[target, column] = new_rows[this, column]
        keys[target] = new_keys[this]
        if target > begin and lo[target] < lo[target - 1]:
            found = OUT_OF_ORDER
    return found, newest


@kernel
def link(keys, heads, links, start, stop):
    """Put tuples ``start`` to ``stop`` at the front of the chains of their keys."""
    for i in range(start, stop):
        bucket = bucket_of(keys[i], heads.shape[0])
        links[i] = heads[bucket]
        heads[bucket] = i
