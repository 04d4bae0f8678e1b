"""Numbers that Spark's hash partitioning puts into partitions of their own."""

from __future__ import annotations

import numpy as np

from cepheid.spark.shard_keys import spark_hash


def spread(count: int) -> list[int]:
    """For each of ``count`` partitions a long integer that goes there when rows are repartitioned by it.

    Numbers from 0 on would leave some partitions empty and put several into others.

    >>> spread(4)
    [2, 0, 14, 3]
    """
    found: dict[int, int] = {}
    tries = 16 * count
    while len(found) < count:
        tries *= 2
        places, first = np.unique(spark_hash(np.arange(tries)) % count, return_index=True)
        found = dict(zip(places.tolist(), first.tolist(), strict=True))
    return [found[place] for place in range(count)]
