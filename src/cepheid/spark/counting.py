"""Rows that are counted on their way, without a job of their own."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

NAME = "cepheid matches"
"""Under which a stream reports what was counted."""
MOST = 50
"""With more patterns than these, only the sum is counted."""


def counted_matches(found: DataFrame, patterns: Sequence[str], example: str | None = None) -> DataFrame:
    """Matches whose number, in all and of each pattern, is part of the progress that a stream reports.

    ``example``: an aggregate in SQL that is reported too.
    """
    counts: list[Column] = [F.count(F.lit(1)).alias("matches")]
    if len(patterns) <= MOST:
        counts += [F.count_if(F.col("pattern") == name).alias(f"of {place}") for place, name in enumerate(patterns)]
    if example is not None:
        counts.append(F.expr(example).alias("example"))
    return found.observe(NAME, counts[0], *counts[1:])
