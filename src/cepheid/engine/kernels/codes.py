"""Numbers for combinations of values: a hash table with open addressing, over rows of integers."""

from __future__ import annotations

from cepheid.engine.compile import inline, kernel


@inline
def _slot(keys, row, size):
    """Where to begin looking for a row of keys among ``size`` slots, a power of two."""
    mixed = 0
    for column in range(keys.shape[1]):
        key = keys[row, column]
        folded = key ^ (key >> 31) ^ (key >> 62)  # to 31 bits, so that the product has 63 and nothing overflows
        mixed = ((((31 * mixed) ^ folded) & 0x7FFFFFFF) * 2654435769 >> 20) & 0x7FFFFFFF
    return mixed & (size - 1)


@kernel
def encode(rows, slots, keys, codes, count, following, found):
    """Write the code of each row to ``found``; a row that is not among the ``count`` keys becomes one, and its code is
    the ``following`` one. ``slots`` has, for each key, its place and 1 more. Returns the new count.
    """
    size, width = slots.shape[0], rows.shape[1]
    for row in range(rows.shape[0]):
        slot = _slot(rows, row, size)
        while True:
            place = slots[slot] - 1
            if place < 0:
                for column in range(width):
                    keys[count, column] = rows[row, column]
                codes[count] = following
                following += 1
                place = count
                count += 1
                slots[slot] = count
                break
            same = True
            for column in range(width):
                if keys[place, column] != rows[row, column]:
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & (size - 1)
        found[row] = codes[place]
    return count


@kernel
def fill(slots, keys, count):
    """Put the keys into slots, which are empty; no two are equal."""
    size = slots.shape[0]
    for place in range(count):
        slot = _slot(keys, place, size)
        while slots[slot]:
            slot = (slot + 1) & (size - 1)
        slots[slot] = place + 1
