"""The monitor of a regression model: counting, starting, variants, rounding."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from cepheid.monitor import Balanced, LeastSquaresMonitor, ModelDrift, Observations, Pooled, Started, Waiting
from cepheid.monitor.kernels import Floats
from cepheid.monitor.model import Settings
from cepheid.monitor.nodes import Nodes
from cepheid.monitor.streams import drift_set, fixed_set
from tests.monitor.reference import Reference


def model_of(monitor: LeastSquaresMonitor) -> Floats:
    assert monitor.model is not None
    return monitor.model


def test_every_message_is_counted_when_all_are_polled() -> None:
    x, y = drift_set(epochs=2, epoch=600, nodes=5, dimension=3, sigma=2.0)
    monitor = LeastSquaresMonitor(5, 3, 0.5, window=200, resolution="poll")
    events = list(monitor.run((x, y)))
    assert isinstance(events[0], Started)
    assert events[0].messages == 2 * 5, "each node has reported, and was given the model"
    total = events[0].messages
    for event in events[1:]:
        assert isinstance(event, ModelDrift)
        quiet = 5 - len(event.violators)
        total += len(event.violators) + 2 * quiet + 5
        assert event.messages == total
    assert monitor.messages == total
    assert len(events) > 3


def test_every_message_is_counted_when_nodes_are_balanced() -> None:
    x, y = fixed_set(2000, nodes=12, dimension=3, sigma=3.0)
    monitor = LeastSquaresMonitor(12, 3, 0.5, window=200, resolution="balance")
    before = None
    balanced = 0
    for event in monitor.run((x, y)):
        if isinstance(event, Balanced):
            balanced += 1
            assert before is not None
            assert event.messages - before == 2 * len(event.violators) + 3 * len(event.asked)
        before = event.messages
    assert balanced > 3


def test_every_message_is_counted_when_drifts_are_pooled() -> None:
    x, y = fixed_set(2000, nodes=12, dimension=3, sigma=3.0)
    monitor = LeastSquaresMonitor(12, 3, 0.5, window=200, resolution="pool")
    before = None
    kinds = set()
    for event in monitor.run((x, y)):
        if before is not None:
            assert isinstance(event, Pooled | ModelDrift)
            kinds.add(type(event))
            assert event.messages - before == len(event.violators) + (12 if isinstance(event, ModelDrift) else 0)
        before = event.messages
    assert kinds == {Pooled, ModelDrift}
    assert monitor.sent["poll"] == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("data", ["fixed", "drift"])
def test_the_papers_sets(data: str, seed: int) -> None:
    """Normalised messages at the paper's settings, without the first window or epoch."""
    x, y = fixed_set(seed=seed) if data == "fixed" else drift_set(seed=seed)
    skipped = 1300 if data == "fixed" else 3900

    def normalised(**options: Any) -> float:
        monitor = LeastSquaresMonitor(10, 10, 0.5, window=1300, **options)
        before = [event.messages for event in monitor.run((x, y)) if cast(int, event.time) < skipped]
        return (monitor.messages - (before[-1] if before else 0)) / (10 * (len(y) - skipped))

    paper = normalised(zone="paper", resolution="poll")
    assert 0.035 < paper < 0.055
    assert normalised(resolution="poll") <= 0.8 * paper
    assert normalised() <= 0.5 * paper


def test_a_singular_start_waits_and_says_why() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2, 3))
    x[:150, :, 2] = x[:150, :, 0] - x[:150, :, 1]
    y = x @ [1.0, 2.0, 3.0]
    monitor = LeastSquaresMonitor(2, 3, 0.5, window=20)
    events = list(monitor.run((x[:150], y[:150])))
    assert monitor.model is None
    waiting = [event for event in events if isinstance(event, Waiting)]
    assert len(waiting) == len(events)
    assert "determine 2 of 3 coefficients" in waiting[0].reason
    assert "ridge=" in waiting[0].reason
    assert len(events) < 15, "it asks less and less often"
    later = list(monitor.run((x[150:], y[150:])))
    assert sum(isinstance(event, Started) for event in later) == 1
    np.testing.assert_allclose(model_of(monitor), [1.0, 2.0, 3.0], atol=0.5)


def test_a_singular_start_with_ridge_has_a_model() -> None:
    x = np.ones((40, 2, 3))
    monitor = LeastSquaresMonitor(2, 3, 0.5, window=20, ridge=0.1)
    assert [type(event) for event in monitor.run((x, x.sum(axis=2)))] == [Started]
    np.testing.assert_allclose(model_of(monitor), 120 / 120.1, rtol=1e-9)


def test_a_model_is_given_up_when_data_no_longer_determine_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2, 2))
    x[100:, :, 1] = x[100:, :, 0]
    monitor = LeastSquaresMonitor(2, 2, 0.5, window=30)
    events = list(monitor.run((x, x.sum(axis=2))))
    assert monitor.model is None
    assert isinstance(events[-1], Waiting)


def test_condition_and_epsilon_decide_what_is_singular() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2, 2))
    x[:, :, 1] = x[:, :, 0] + 1e-6 * x[:, :, 1]
    y = x.sum(axis=2)
    rough = LeastSquaresMonitor(2, 2, 10.0, window=30)
    assert isinstance(next(rough.run((x, y))), Started)
    strict = next(LeastSquaresMonitor(2, 2, 1e-5, window=30).run((x, y)))
    assert isinstance(strict, Waiting)
    assert "too badly for epsilon = 1e-05" in strict.reason


@pytest.mark.parametrize("window", [None, 8])
def test_ar1_is_generalised_least_squares(window: int | None) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(25, 2, 3)), rng.normal(size=(25, 2))
    monitor = LeastSquaresMonitor(2, 3, 1e-6, window=window, ar1=0.8, warmup=8)
    list(monitor.run((x, y)))
    a, c = np.zeros((3, 3)), np.zeros(3)
    for node in range(2):
        mine_x, mine_y = x[-(window or 25) :, node], y[-(window or 25) :, node]
        place = np.arange(len(mine_y))
        inverse = np.linalg.inv(0.8 ** np.abs(place[:, None] - place))
        a += mine_x.T @ inverse @ mine_x
        c += mine_x.T @ inverse @ mine_y
    np.testing.assert_allclose(model_of(monitor), np.linalg.solve(a, c), atol=1e-6)
    reference = Reference(2, window, 0.0, 0.8)
    for at in range(25):
        for node in range(2):
            reference.observe(node, x[at, node], y[at, node])
    np.testing.assert_allclose(reference.beta(), np.linalg.solve(a, c), rtol=1e-9)


@pytest.mark.parametrize("window", [None, 50])
def test_sums_stay_exact_over_many_observations(window: int | None) -> None:
    """A million heavy-tailed observations. Plain running sums lose what a large one pushes out of the double."""
    rng = np.random.default_rng(0)
    count, size = 1_000_000, 3
    x, y = rng.standard_cauchy(size=(count, size)), rng.standard_cauchy(size=count)
    nodes = Nodes(Settings(1, size, 1.0, window=window), 1, due=count + 1)
    nodes.advance(np.zeros(count, np.int64), np.arange(count), x, y, 0)
    sum_a, sum_c = nodes.send(np.array([0]))
    last = slice(0 if window is None else -window, None)
    exact = x[last].astype(np.longdouble)
    scale = np.sqrt(np.outer((exact**2).sum(axis=0), (exact**2).sum(axis=0))).astype(float)
    assert np.abs(sum_a[0] - (exact.T @ exact).astype(float)).max() <= 1e-13 * scale.min()
    np.testing.assert_allclose(sum_c[0], (exact.T @ y[last]).astype(float), rtol=1e-9)
    if window is not None:
        plain = np.cumsum(x[:, 0] ** 2)
        naive = abs(plain[-1] - plain[-1 - window] - float((exact[:, 0] ** 2).sum())) / scale[0, 0]
        assert naive > 1e-9, "this is what the test guards against"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 0.0}, "epsilon is a number above 0"),
        ({"nodes": 0, "zone": "round"}, "nodes is 1 or more, got 0; zone is 'residual' or 'paper', got 'round'"),
        ({"window": 1, "ar1": 0.5}, "window is 2 or more"),
        ({"ar1": 1.0}, "ar1 is a number between -1 and 1"),
        ({"resolution": "vote"}, "resolution is 'pool', 'balance' or 'poll', got 'vote'"),
    ],
)
def test_settings_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LeastSquaresMonitor(**({"nodes": 2, "dimension": 2, "epsilon": 1.0} | options))


@pytest.mark.parametrize(
    ("node", "x", "y", "said"),
    [
        ([0], [[1.0, 2.0]], [1.0], "3 x each, as dimension= says; got 2"),
        ([2], [[1.0, 2.0, 3.0]], [1.0], "numbered from 0 to 1; got 2"),
        ([0], [[1.0, 2.0, np.nan]], [1.0], "observation 0 is not finite"),
        ([0, 1], [[1.0, 2.0, 3.0]], [1.0], "2 observations have x of shape"),
    ],
)
def test_observations_that_cannot_be(node: Any, x: Any, y: Any, said: str) -> None:
    monitor = LeastSquaresMonitor(2, 3, 1.0)
    with pytest.raises(ValueError, match=said):
        list(monitor.run(Observations(node, x, y)))


@pytest.mark.parametrize("window", [None, 40])
@pytest.mark.parametrize("near", [1e-3, 1e-5, 1e-6, 1e-7])
def test_nearly_singular_data_have_a_model_with_room_or_none(window: int | None, near: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2, 2))
    x[:, :, 1] = x[:, :, 0] + near * x[:, :, 1]
    for epsilon in (1e-3, 1.0, 1e3):
        monitor = LeastSquaresMonitor(2, 2, epsilon, window=window)
        list(monitor.run((x, x.sum(axis=2) + rng.normal(size=(200, 2)))))
        assert monitor.messages > 0
