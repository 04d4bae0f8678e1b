"""Exponential histograms count within their error, in logarithmic memory."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.stats.histogram import ExponentialHistogram


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 40)), max_size=60),
    st.integers(1, 100),
    st.sampled_from([0.01, 0.05, 0.2, 0.5]),
)
def test_counts_are_within_the_relative_error(steps: list[tuple[int, int]], window: int, error: float) -> None:
    histogram = ExponentialHistogram(window, error)
    exact: deque[int] = deque()
    now = 0
    for step, events in steps:
        now += step
        histogram.add(now, events)
        exact.extend([now] * events)
        while exact and exact[0] <= now - window:
            exact.popleft()
        assert abs(histogram.count(now) - len(exact)) <= error * len(exact) + 1e-9


def test_memory_is_logarithmic_and_large_batches_are_cheap() -> None:
    histogram = ExponentialHistogram(10**9, 0.05)
    for now in range(100):
        histogram.add(now, 10**9)
    assert histogram.buckets < 12 * 40
    assert histogram.count(99) == pytest.approx(10**11, rel=0.05)
    assert histogram.count(10**10) == 0


@pytest.mark.parametrize(("window", "error"), [(0, 0.1), (10, 0.0), (10, 1.0)])
def test_bad_settings(window: int, error: float) -> None:
    with pytest.raises(ValueError, match="got"):
        ExponentialHistogram(window, error)
