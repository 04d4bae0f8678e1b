"""Numbers that Spark's hash partitioning puts into partitions of their own."""

from __future__ import annotations

_SEED = 42
_MASK = 0xFFFFFFFF


def spread(count: int) -> list[int]:
    """For each of ``count`` partitions a number that goes there when rows are repartitioned by it.

    Numbers from 0 on would leave some partitions empty and put several into others.

    >>> spread(4)
    [5, 1, 3, 0]
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < count:
        found.setdefault(_signed(_murmur3(number)) % count, number)
        number += 1
    return [found[place] for place in range(count)]


def _murmur3(number: int) -> int:
    """Spark's hash of an integer."""
    mixed = (number * 0xCC9E2D51) & _MASK
    mixed = (_rotated(mixed, 15) * 0x1B873593) & _MASK
    hashed = (_rotated(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    hashed ^= 4  # bytes
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = ((hashed ^ (hashed >> shift)) * factor) & _MASK
    return hashed ^ (hashed >> 16)


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _MASK


def _signed(value: int) -> int:
    return value - 2**32 if value >= 2**31 else value
