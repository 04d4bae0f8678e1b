"""Kleene closure: the sets that can be made of candidate events."""

from __future__ import annotations

import numpy as np

from cepheid.engine.compile import kernel
from cepheid.engine.kernels.join import TIE, TIME, _holds, _sign

# A condition on neighbours compares a value of the later event with one of the earlier: its operator, then for each
# of the two the column of the row store and whether it holds doubles.
OPERATOR, LATER_COLUMN, LATER_FLOAT, EARLIER_COLUMN, EARLIER_FLOAT = range(5)


@kernel
def enumerate_sets(
    starts, candidates, is_new, outer_lo, outer_hi, needs_new, anchored, minimum, maximum, window, neighbours, values,
    floats, base, ties, limit,
):  # fmt: skip
    """All sets of ``minimum`` to ``maximum`` candidates that fit the window and satisfy the conditions on neighbours.

    ``starts``: where the candidates of each outer tuple begin; they are in the order of time. ``needs_new``: outer
    tuples whose sets must hold an event that ``is_new``. ``anchored``: every set holds the first candidate of its
    outer tuple. Returns for each set its outer tuple and where its members begin, the members, and whether the limit
    was reached.

    The search goes depth first, adding later candidates; a set that breaks a condition is not added to.
    """
    size, capacity = 0, 64
    owner = np.empty(capacity, dtype=np.int64)
    begin = np.empty(capacity + 1, dtype=np.int64)
    filled, room = 0, 256
    members = np.empty(room, dtype=np.int64)
    stopped = False
    depth_most = 1
    for o in range(starts.shape[0] - 1):
        depth_most = max(depth_most, starts[o + 1] - starts[o])
    if maximum < depth_most:
        depth_most = maximum
    place = np.empty(depth_most + 1, dtype=np.int64)  # the candidate at each depth
    group = np.empty(depth_most + 1, dtype=np.int64)  # the depth at which the events of its time begin
    before = np.empty(depth_most + 1, dtype=np.int64)  # the depth at which those of the time before begin
    fresh = np.empty(depth_most + 1, dtype=np.int64)  # how many of the set are new
    for o in range(starts.shape[0] - 1):
        first, last = starts[o], starts[o + 1]
        depth = 0
        position = first
        while True:
            added = False
            while position < last and depth < depth_most:
                if anchored and depth == 0 and position > first:
                    position = last
                    break
                row = candidates[position] - base
                time = values[TIME, row]
                earliest = outer_lo[o]
                if depth > 0:
                    earliest = min(earliest, values[TIME, candidates[place[0]] - base])
                else:
                    earliest = min(earliest, time)
                if max(outer_hi[o], time) - earliest > window:
                    position += 1
                    continue
                low, high, here = 0, 0, 0
                if depth > 0:
                    previous = candidates[place[depth - 1]] - base
                    tied = values[TIME, previous] == time and (not ties or values[TIE, previous] == values[TIE, row])
                    if tied:
                        low, high, here = before[depth - 1], group[depth - 1], group[depth - 1]
                    else:
                        low, high, here = group[depth - 1], depth, depth
                good = True
                for d in range(low, high):
                    earlier = candidates[place[d]] - base
                    for c in range(neighbours.shape[0]):
                        operator = neighbours[c, OPERATOR]
                        if neighbours[c, LATER_FLOAT] == 0:
                            whole = values[neighbours[c, LATER_COLUMN], row]
                            if neighbours[c, EARLIER_FLOAT] == 0:
                                good = _holds(operator, whole, values[neighbours[c, EARLIER_COLUMN], earlier])
                            else:
                                good = _holds(operator, _sign(whole, floats[neighbours[c, EARLIER_COLUMN], earlier]), 0)
                        else:
                            real = floats[neighbours[c, LATER_COLUMN], row]
                            if neighbours[c, EARLIER_FLOAT] == 0:
                                good = _holds(operator, -_sign(values[neighbours[c, EARLIER_COLUMN], earlier], real), 0)
                            else:
                                good = _holds(operator, real, floats[neighbours[c, EARLIER_COLUMN], earlier])
                        if not good:
                            break
                    if not good:
                        break
                if not good:
                    position += 1
                    continue
                place[depth] = position
                group[depth] = here
                before[depth] = low if depth > 0 else 0
                fresh[depth] = is_new[position] + (fresh[depth - 1] if depth > 0 else 0)
                depth += 1
                position += 1
                added = True
                if depth >= minimum and (fresh[depth - 1] > 0 or not needs_new[o]):
                    if size == limit:
                        stopped = True
                        break
                    if size == capacity:
                        capacity *= 2
                        larger = np.empty(capacity, dtype=np.int64)
                        larger[:size] = owner
                        owner = larger
                        larger = np.empty(capacity + 1, dtype=np.int64)
                        larger[:size] = begin[:size]
                        begin = larger
                    while filled + depth > room:
                        room *= 2
                        larger = np.empty(room, dtype=np.int64)
                        larger[:filled] = members[:filled]
                        members = larger
                    owner[size] = o
                    begin[size] = filled
                    for d in range(depth):
                        members[filled + d] = candidates[place[d]]
                    filled += depth
                    size += 1
                break
            if stopped:
                break
            if added:
                continue
            if depth == 0:
                break
            depth -= 1
            position = place[depth] + 1
        if stopped:
            break
    begin[size] = filled
    return owner[:size], begin[: size + 1], members[:filled], stopped


@kernel
def neighbour_pairs(starts, members, chosen, values, base, ties):
    """For each chosen set its pairs of neighbours: its place in ``chosen``, the earlier event, the later one."""
    size, capacity = 0, 64
    which = np.empty(capacity, dtype=np.int64)
    earlier = np.empty(capacity, dtype=np.int64)
    later = np.empty(capacity, dtype=np.int64)
    for k in range(chosen.shape[0]):
        first, last = starts[chosen[k]], starts[chosen[k] + 1]
        before, group = first, first
        for m in range(first + 1, last):
            row, previous = members[m] - base, members[m - 1] - base
            tied = values[TIME, row] == values[TIME, previous] and (
                not ties or values[TIE, row] == values[TIE, previous]
            )
            if not tied:
                before, group = group, m
            if group == first:
                continue  # nothing of the set is before this event
            for e in range(before, group):
                if size == capacity:
                    capacity *= 2
                    larger = np.empty(capacity, dtype=np.int64)
                    larger[:size] = which
                    which = larger
                    larger = np.empty(capacity, dtype=np.int64)
                    larger[:size] = earlier
                    earlier = larger
                    larger = np.empty(capacity, dtype=np.int64)
                    larger[:size] = later
                    later = larger
                which[size] = k
                earlier[size] = members[e]
                later[size] = members[m]
                size += 1
    return which[:size], earlier[:size], later[:size]
