"""The keys under which Spark keeps the state of shards.

Spark sends a key to the partition ``hash(key) mod partitions``. The keys of shards are chosen so that shard j goes to
partition j, for any number of partitions that divides :data:`EVEN`: each has as much to do as the others. A key depends
on its shard and its group only, so that a restart with other settings still finds the state.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

EVEN = 9600  # 2⁷·3·5²
_SEED = 42
_TRIES = 2**16

Hashes = npt.NDArray[np.uint32]


def group_number(attributes: Sequence[str]) -> int:
    """A number for the shards of patterns whose rows are sent by the same attributes."""
    return zlib.crc32("\0".join(attributes).encode()) & 0x7FFFFFFF


def shard_keys(group: int, shards: int) -> list[int]:
    """The key of each shard of a group.

    >>> [int(spark_hash(np.array([key]))[0]) % 4 for key in shard_keys(group_number(["user"]), 4)]
    [0, 1, 2, 3]
    """
    if not 1 <= shards <= EVEN:
        raise ValueError(
            f"a stream has {EVEN:,} shards at most, got {shards:,}. Pass shards=, or set spark.sql.shuffle.partitions: "
            "as many as there are cores is a good number"
        )
    found: dict[int, int] = {}
    start = 0
    while any(place not in found for place in range(shards)):
        keys = (group << 32) | np.arange(start, start + _TRIES, dtype=np.int64)
        places, first = np.unique(spark_hash(keys) % EVEN, return_index=True)
        found = dict(zip(places.tolist(), keys[first].tolist(), strict=True)) | found
        start += _TRIES
    return [found[place] for place in range(shards)]


def group_of(key: int) -> int:
    """The number of the group that a key belongs to."""
    return key >> 32


def spark_hash(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Spark's hash of a column of long integers: Murmur3, with the seed of its hash partitioning."""
    with np.errstate(over="ignore"):
        hashed = np.full(len(keys), _SEED, dtype=np.uint32)
        for half in (keys.astype(np.uint32), (keys >> 32).astype(np.uint32)):
            hashed = _rotated(hashed ^ _mixed(half), 13) * np.uint32(5) + np.uint32(0xE6546B64)
        hashed ^= np.uint32(8)  # bytes
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            hashed = (hashed ^ (hashed >> np.uint32(shift))) * np.uint32(factor)
        hashed ^= hashed >> np.uint32(16)
    return hashed.view(np.int32).astype(np.int64)


def _mixed(word: Hashes) -> Hashes:
    return _rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _rotated(word: Hashes, by: int) -> Hashes:
    return (word << np.uint32(by)) | (word >> np.uint32(32 - by))
