"""Which type each event of a stream has, by arrival rates that may change on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from cepheid.workloads.arguments import positive

FixedRates: TypeAlias = Mapping[str, float] | Sequence[float]
"""A relative rate for each type: by name, or in the order of the types."""
Rates: TypeAlias = FixedRates | Sequence[tuple[float, FixedRates]]
"""Rates for the whole stream, or pieces of the stream: the relative length of each and its rates."""
Floats: TypeAlias = npt.NDArray[np.float64]

STEPS = 1024
"""How many times in a stream rates that drift are changed: few enough to be cheap, enough to look gradual."""


def pieces_of(rates: Rates) -> list[tuple[float, FixedRates]]:
    """The pieces of the stream, of which there is one if the rates are fixed."""
    if isinstance(rates, Mapping) or all(isinstance(rate, Real) for rate in rates):
        return [(1.0, cast(FixedRates, rates))]
    pieces = []
    for piece in rates:
        if isinstance(piece, Real | Mapping | str) or len(piece) != 2:  # type: ignore[arg-type]
            raise ValueError(f"a piece of rates is a pair (length, rates), got {piece!r}")
        length, fixed = cast(tuple[float, FixedRates], piece)
        pieces.append((positive("the length of a piece of rates", length), fixed))
    return pieces


def _row(rates: FixedRates, types: Sequence[str]) -> Floats:
    if isinstance(rates, Mapping):
        unknown, missing = sorted(set(rates) - set(types)), [t for t in types if t not in rates]
        if unknown or missing:
            raise ValueError(f"rates name each type once; unknown: {unknown}, missing: {missing}")
        rates = [rates[t] for t in types]
    row = np.asarray(rates, np.float64)
    if row.shape != (len(types),):
        raise ValueError(f"expected {len(types)} rates, one for each type, got {row.size}")
    if not np.isfinite(row).all() or row.min() < 0 or not row.any():
        raise ValueError(f"rates are 0 or more, and not all 0, got {row.tolist()}")
    return row


def types_by_rate(
    rng: np.random.Generator, count: int, types: Sequence[str], pieces: Sequence[tuple[float, FixedRates]], drift: float
) -> tuple[npt.NDArray[np.int64], Floats]:
    """The number of each event's type, and the share that each type has of the whole stream on average.

    ``drift`` is the standard deviation of the logarithm of what a rate is multiplied by from the start to the end.
    """
    ends = np.cumsum([length for length, _ in pieces])
    borders = np.rint(ends / ends[-1] * count).astype(np.int64)
    rows = np.stack([_row(fixed, types) for _, fixed in pieces])
    steps = np.linspace(0, count, STEPS + 1).astype(np.int64) if drift else np.zeros(1, np.int64)
    starts = np.union1d(steps, borders)
    starts = starts[starts < count]
    shares = rows[np.searchsorted(borders, starts, side="right")]
    if drift:
        walk = np.cumsum(rng.normal(scale=drift / np.sqrt(STEPS), size=shares.shape), axis=0)
        shares = shares * np.exp(walk)
    shares = shares / shares.sum(axis=1, keepdims=True)
    sizes = np.diff(starts, append=count)
    # All steps are looked up in one search: the cumulative shares of step i lie between i and i + 1.
    numbers = np.repeat(np.arange(len(starts)), sizes)
    ladder = np.cumsum(shares, axis=1)
    ladder /= ladder[:, -1:]
    places = np.searchsorted(
        (ladder + np.arange(len(starts))[:, None]).reshape(-1), numbers + rng.random(count), "right"
    )
    codes = places - numbers * len(types)
    mean = sizes @ shares / count
    # A sum so close to i + 1 that it is rounded to it would fall into the next step.
    last = len(types) - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    return np.minimum(codes, last[numbers]), mean
