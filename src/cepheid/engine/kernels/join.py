"""The join: which tuples of events on one side go with which on the other.

One kernel serves every join and every negation. It takes the outer tuples one after the other, looks up the inner
ones that may go with it, by time or by key, and keeps the pairs that satisfy order, window and conditions. All of it
stands in one function: an array that is handed to another costs more than a comparison.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.compile import inline, kernel
from cepheid.shed.drops import ALL, CONTROL, SAME_LEFT, SAME_RIGHT

# A condition compares a value of the outer tuple with one of the inner tuple. It is a row of integers, and these are
# its places: the operator, then for each side the slot (which event of the tuple), the column of the row store, and
# whether it holds doubles.
OPERATOR, OUTER_SLOT, OUTER_COLUMN, OUTER_FLOAT, INNER_SLOT, INNER_COLUMN, INNER_FLOAT = range(7)
EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(6)

# What the kernel counts: the pairs it looked at, whether it stopped at the limit, the pairs whose order, window and
# events are right, and then, condition by condition, those that satisfy it.
CANDIDATES, STOPPED, REACHED = range(3)

TIME, TIE = 0, 1
"""The first columns of the row store."""

# A gate, at which pairs are counted and, under overload, dropped: its lines are settings, the level of each place, and
# how many pairs were processed and dropped there. Where a pair stands is the time from the first event of its left
# tuple, or from the start of that event's window if windows SLIDE, to the first event of its right tuple.
SETTINGS, LEVELS, PROCESSED, DROPPED = range(4)
# The settings. IS_LEFT: whether the outer tuples are the left ones. ANCHOR: which event of a left tuple says whether it
# is in the control group. ALIKE: which pairs share their fate where only some are dropped. SHEDS: whether any are.
SHIFT, OFFSET, STEP, IS_LEFT, ANCHOR, ALIKE, SHEDS = range(7)


@inline
def _holds(operator, left, right):
    if operator == LESS:
        return left < right
    if operator == GREATER:
        return left > right
    if operator == EQUAL:
        return left == right
    if operator == LESS_EQUAL:
        return left <= right
    if operator == GREATER_EQUAL:
        return left >= right
    return left != right


@inline
def _sign(whole, real):
    """The sign of an integer minus a double, neither of them rounded."""
    if real >= 9223372036854775808.0:
        return -1
    if real < -9223372036854775808.0:
        return 1
    floor = np.floor(real)
    bound = np.int64(floor)
    if whole < bound:
        return -1
    if whole > bound:
        return 1
    return -1 if real > floor else 0


@inline
def bucket_of(key, buckets):
    """Fibonacci hashing: upper bits of a product with 2^32 / φ; the number of buckets is a power of two.

    The key is folded to 31 bits first, so that the product has 63 and nothing overflows.
    """
    folded = (key ^ (key >> 31) ^ (key >> 62)) & 0x7FFFFFFF
    return ((folded * 2654435769) >> 20) & (buckets - 1)


@inline
def mixed(number):
    """A number in which every bit depends on all bits of another, below 2^31: no stream is in step with it."""
    number = (number ^ (number >> 31)) & 0x7FFFFFFF
    number = (number * 0x45D9F3B) & 0x7FFFFFFFFFFFFF
    number = (number ^ (number >> 16)) & 0x7FFFFFFF
    number = (number * 0x45D9F3B) & 0x7FFFFFFFFFFFFF
    return (number ^ (number >> 16)) & 0x7FFFFFFF


@kernel
def in_control(anchors):
    """Which tuples are in the control group, by the rows of their anchors."""
    found = np.empty(anchors.shape[0], dtype=np.bool_)
    for place in range(anchors.shape[0]):
        found[place] = mixed(anchors[place]) % CONTROL == 0
    return found


@kernel
def lots(rows):
    """What decides about tuples where only some are dropped: as ``join`` reckons it."""
    found = np.empty(rows.shape[0], dtype=np.int64)
    for place in range(rows.shape[0]):
        lot = np.int64(0)
        for column in range(rows.shape[1]):
            lot = mixed(lot + rows[place, column])
        found[place] = lot % ALL
    return found


@kernel
def join(
    outer, outer_lo, outer_hi, inner, inner_lo, inner_hi,
    low, high, window, after, before, conditions, values, floats, base, ties,
    key_slot, key_column, keys, heads, links, in_order, exists, limit, gate,
):  # fmt: skip
    """Pairs (o, i) of tuples, and counts.

    ``outer``, ``inner``: for each tuple the row numbers of its events; ``_lo``, ``_hi``: the times of its first and
    last event.
    ``low``, ``high``: for each outer tuple, between which times the events of the inner one must lie.
    ``after``, ``before``: pairs of an outer and an inner slot; the inner event must come after, or before, the outer
    one. With ``key_slot`` below 0 the inner tuples are sorted by ``inner_lo`` and searched by time; else those are
    searched that have the key of the outer tuple: ``heads`` has the newest tuple of each bucket, ``links`` the next
    older one. ``in_order``: whether a chain goes back in time all the way; then the outer tuples are taken from the
    last to the first, and what is too late for one is too late for all that follow.
    ``exists``: whether one inner tuple for each outer one is enough.
    ``gate``: if it is not empty, pairs are counted in it, by where they stand. If it sheds, those of the control group
    are counted, and those that are dropped.
    """
    gated = gate.shape[0] > 0
    sheds = gated and gate[SETTINGS, SHEDS] == 1
    is_left = gated and gate[SETTINGS, IS_LEFT] == 1
    slide = gate[SETTINGS, STEP] if gated else 0
    alike = gate[SETTINGS, ALIKE] if gated else 0
    anchor = gate[SETTINGS, ANCHOR] if gated else 0
    of_outer = alike != SAME_RIGHT if is_left else alike != SAME_LEFT
    of_inner = alike != SAME_LEFT if is_left else alike != SAME_RIGHT
    origin = np.int64(0)
    spared = False  # whether the left tuple is in the control group
    n_conditions = conditions.shape[0]
    counts = np.zeros(REACHED + 1 + n_conditions, dtype=np.int64)
    candidates = 0
    reached = 0
    size = 0
    capacity = max(64, 2 * outer.shape[0])
    found_outer = np.empty(capacity, dtype=np.int64)
    found_inner = np.empty(capacity, dtype=np.int64)
    whole = np.empty(n_conditions, dtype=np.int64)  # the outer values of the conditions
    real = np.empty(n_conditions, dtype=np.float64)
    position = 0
    key = np.int64(0)
    n_inner = inner.shape[0]
    backwards = key_slot >= 0 and in_order
    remembers = backwards and outer.shape[0] > heads.shape[0] // 256
    cursor = heads.copy() if remembers else heads
    reach = np.iinfo(np.int64).max  # what comes later than this was skipped
    for turn in range(outer.shape[0]):
        o = outer.shape[0] - 1 - turn if backwards else turn
        start, end = low[o], high[o]
        if inner.shape[1] == 1:  # of several events, the first need not be the one that must come after
            for p in range(after.shape[0]):
                start = max(start, values[TIME, outer[o, after[p, 0]] - base])
            for p in range(before.shape[0]):
                end = min(end, values[TIME, outer[o, before[p, 0]] - base])
        if start > end:
            continue
        if key_slot < 0:
            # Outer tuples mostly come in the order of time, so the place is near the last one.
            while position > 0 and inner_lo[position - 1] >= start:
                position -= 1
            if position < n_inner and inner_lo[position] < start:
                step = 1
                while position + step < n_inner and inner_lo[position + step] < start:
                    position += step
                    step *= 2
                while step > 0:
                    if position + step < n_inner and inner_lo[position + step] < start:
                        position += step
                    else:
                        step //= 2
                position += 1
            i = position
        else:
            key = values[key_column, outer[o, key_slot] - base]
            bucket = bucket_of(key, heads.shape[0])
            if remembers and end <= reach:
                reach = end
                i = cursor[bucket]
                while i >= 0 and inner_lo[i] > end:
                    i = links[i]
                cursor[bucket] = i
            else:
                i = heads[bucket]
        for c in range(n_conditions):
            row = outer[o, conditions[c, OUTER_SLOT]] - base
            whole[c] = values[conditions[c, OUTER_COLUMN], row]
            real[c] = floats[conditions[c, OUTER_COLUMN], row]
        if is_left:
            origin = outer_lo[o]
            if slide > 0:
                origin -= origin % slide
            spared = sheds and mixed(outer[o, anchor]) % CONTROL == 0
        this = -1
        while True:
            if key_slot < 0:
                if i >= n_inner or inner_lo[i] > end:
                    break
                this = i
                i += 1
            else:
                if i < 0 or (in_order and inner_lo[i] < start):
                    break
                this = i
                i = links[i]
                if keys[this] != key:
                    continue
            if gated:
                if is_left:
                    place = inner_lo[this]
                else:
                    origin, place = inner_lo[this], outer_lo[o]
                    if slide > 0:
                        origin -= origin % slide
                place = (place - origin + gate[SETTINGS, OFFSET]) >> gate[SETTINGS, SHIFT]
                if 0 <= place < gate.shape[1]:
                    if not sheds:
                        gate[PROCESSED, place] += 1
                    else:
                        if not is_left:
                            spared = mixed(inner[this, anchor]) % CONTROL == 0
                        level = gate[LEVELS, place]
                        if spared:
                            gate[PROCESSED, place] += 1
                        elif level > 0:
                            lot = np.int64(0)
                            if level < ALL:
                                if alike == SAME_RIGHT:
                                    lot = mixed(origin)
                                if of_outer:
                                    for a in range(outer.shape[1]):
                                        lot = mixed(lot + outer[o, a])
                                if of_inner:
                                    for b in range(inner.shape[1]):
                                        lot = mixed(lot + inner[this, b])
                            if lot % ALL < level:
                                gate[DROPPED, place] += 1
                                continue
            candidates += 1
            if inner_lo[this] < start or inner_hi[this] > end:
                continue
            if max(outer_hi[o], inner_hi[this]) - min(outer_lo[o], inner_lo[this]) > window:
                continue
            good = True
            for p in range(after.shape[0]):
                one = outer[o, after[p, 0]] - base
                other = inner[this, after[p, 1]] - base
                if values[TIME, one] >= values[TIME, other] and not (
                    ties and values[TIME, one] == values[TIME, other] and values[TIE, one] < values[TIE, other]
                ):
                    good = False
                    break
            if not good:
                continue
            for p in range(before.shape[0]):
                one = inner[this, before[p, 1]] - base
                other = outer[o, before[p, 0]] - base
                if values[TIME, one] >= values[TIME, other] and not (
                    ties and values[TIME, one] == values[TIME, other] and values[TIE, one] < values[TIE, other]
                ):
                    good = False
                    break
            if not good:
                continue
            # No event is used twice.
            for a in range(outer.shape[1]):
                for b in range(inner.shape[1]):
                    if outer[o, a] == inner[this, b]:
                        good = False
            if not good:
                continue
            reached += 1
            for c in range(n_conditions):
                row = inner[this, conditions[c, INNER_SLOT]] - base
                operator = conditions[c, OPERATOR]
                if conditions[c, OUTER_FLOAT] == 0:
                    if conditions[c, INNER_FLOAT] == 0:
                        good = _holds(operator, whole[c], values[conditions[c, INNER_COLUMN], row])
                    else:
                        good = _holds(operator, _sign(whole[c], floats[conditions[c, INNER_COLUMN], row]), 0)
                elif conditions[c, INNER_FLOAT] == 0:
                    good = _holds(operator, -_sign(values[conditions[c, INNER_COLUMN], row], real[c]), 0)
                else:
                    good = _holds(operator, real[c], floats[conditions[c, INNER_COLUMN], row])
                if not good:
                    break
                counts[REACHED + 1 + c] += 1
            if not good:
                continue
            if size == capacity:
                if size >= limit:
                    counts[STOPPED] = 1
                    break
                capacity *= 2
                larger = np.empty(capacity, dtype=np.int64)
                larger[:size] = found_outer
                found_outer = larger
                larger = np.empty(capacity, dtype=np.int64)
                larger[:size] = found_inner
                found_inner = larger
            found_outer[size] = o
            found_inner[size] = this
            size += 1
            if exists:
                break
        if counts[STOPPED]:
            break
    counts[CANDIDATES] = candidates
    counts[REACHED] = reached
    if backwards:
        return found_outer[:size][::-1].copy(), found_inner[:size][::-1].copy(), counts
    return found_outer[:size], found_inner[:size], counts
