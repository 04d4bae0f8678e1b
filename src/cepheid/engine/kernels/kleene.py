"""Kleene closure: the sets that can be made of candidate events."""

from __future__ import annotations

import numpy as np

from cepheid.engine.compile import kernel
from cepheid.engine.kernels.join import TIE, TIME, _holds, _sign

# A condition on neighbours compares a value of the later event with one of the earlier: its operator, then for each
# of the two the column of the row store and whether it holds doubles.
OPERATOR, LATER_COLUMN, LATER_FLOAT, EARLIER_COLUMN, EARLIER_FLOAT = range(5)


# What a bound adds up over a set.
SUM, LEAST, GREATEST = range(3)


@kernel
def enumerate_sets(
    starts, candidates, is_new, outer_lo, outer_hi, needs_new, anchored, minimum, maximum, window, neighbours,
    kinds, amounts, total_low, total_high, values, floats, base, ties, limit,
):  # fmt: skip
    """All sets of ``minimum`` to ``maximum`` candidates that fit the window and satisfy the conditions on neighbours.

    ``starts``: where the candidates of each outer tuple begin; they are in the order of time. ``needs_new``: outer
    tuples whose sets must hold an event that ``is_new``. ``anchored``: every set holds the first candidate of its
    outer tuple. For each bound, of a kind, the ``amounts`` of the candidates make a total that must come to lie between
    ``total_low`` and ``total_high`` of the outer tuple. Returns for each set its outer tuple and where its members
    begin, the members, and whether the limit was reached.

    The search goes depth first, adding later candidates. It turns back from a set that breaks a condition, and from
    one whose totals cannot come to lie right, whatever is added: totals are rounded, so a little is allowed for.
    """
    n_bounds = kinds.shape[0]
    most = 0
    for o in range(starts.shape[0] - 1):
        most = max(most, starts[o + 1] - starts[o])
    # What the candidates from a place on can make of a total, at the least and at the most.
    rest_low = np.zeros((n_bounds, most + 1), dtype=np.float64)
    rest_high = np.zeros((n_bounds, most + 1), dtype=np.float64)
    slack = np.zeros(n_bounds, dtype=np.float64)
    size, capacity = 0, 64
    owner = np.empty(capacity, dtype=np.int64)
    begin = np.empty(capacity + 1, dtype=np.int64)
    filled, room = 0, 256
    members = np.empty(room, dtype=np.int64)
    stopped = False
    depth_most = min(max(most, 1), maximum)
    total = np.zeros((n_bounds, depth_most + 1), dtype=np.float64)  # of the set up to each depth
    place = np.empty(depth_most + 1, dtype=np.int64)  # the candidate at each depth
    group = np.empty(depth_most + 1, dtype=np.int64)  # the depth at which the events of its time begin
    before = np.empty(depth_most + 1, dtype=np.int64)  # the depth at which those of the time before begin
    fresh = np.empty(depth_most + 1, dtype=np.int64)  # how many of the set are new
    for o in range(starts.shape[0] - 1):
        first, last = starts[o], starts[o + 1]
        depth = 0
        position = first
        last_new = first - 1
        for k in range(first, last):
            if is_new[k]:
                last_new = k
        for b in range(n_bounds):
            rest_low[b, last - first] = 0.0 if kinds[b] == SUM else np.inf
            rest_high[b, last - first] = 0.0 if kinds[b] == SUM else -np.inf
            size_of_all = 0.0
            for k in range(last - 1, first - 1, -1):
                amount, at = amounts[b, k], k - first
                if kinds[b] == SUM:
                    rest_low[b, at] = rest_low[b, at + 1] + min(amount, 0.0)
                    rest_high[b, at] = rest_high[b, at + 1] + max(amount, 0.0)
                else:
                    rest_low[b, at] = min(rest_low[b, at + 1], amount)
                    rest_high[b, at] = max(rest_high[b, at + 1], amount)
                if np.isfinite(amount):
                    size_of_all += abs(amount)
            slack[b] = 1e-9 * size_of_all
        while True:
            added = False
            while position < last and depth < depth_most:
                if anchored and depth == 0 and position > first:
                    position = last
                    break
                if needs_new[o] and position > last_new and (depth == 0 or fresh[depth - 1] == 0):
                    position = last  # no new event can come into the set any more
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
                for b in range(n_bounds):
                    if not good:
                        break
                    amount, after = amounts[b, position], position + 1 - first
                    if kinds[b] == SUM:
                        here_total = amount + (total[b, depth - 1] if depth > 0 else 0.0)
                        least, greatest = here_total + rest_low[b, after], here_total + rest_high[b, after]
                    elif kinds[b] == LEAST:
                        here_total = min(amount, total[b, depth - 1]) if depth > 0 else amount
                        least, greatest = min(here_total, rest_low[b, after]), here_total
                    else:
                        here_total = max(amount, total[b, depth - 1]) if depth > 0 else amount
                        least, greatest = here_total, max(here_total, rest_high[b, after])
                    total[b, depth] = here_total
                    good = not (least > total_high[b, o] + slack[b] or greatest < total_low[b, o] - slack[b])
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
                complete = depth >= minimum and (fresh[depth - 1] > 0 or not needs_new[o])
                for b in range(n_bounds):
                    so_far = total[b, depth - 1]
                    if so_far > total_high[b, o] + slack[b] or so_far < total_low[b, o] - slack[b]:
                        complete = False
                if complete:
                    if size == limit or filled + depth > limit:  # members take room too
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
