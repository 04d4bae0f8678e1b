"""The models and periods that the monitor is compared with."""

from __future__ import annotations

import numpy as np
import pytest

from cepheid.monitor import LeastSquaresMonitor, baselines
from cepheid.monitor.baselines import best_period, exact_models, periodic_error, trace
from cepheid.monitor.model import Settings
from tests.monitor.reference import Reference


@pytest.mark.parametrize("window", [None, 7])
@pytest.mark.parametrize("ar1", [None, 0.6])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_exact_models(window: int | None, ar1: float | None, ridge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "BLOCK", 10)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(45, 2, 3)), rng.normal(size=(45, 2))
    found = exact_models(Settings(2, 3, 1.0, window, ridge, ar1), x, y)
    reference = Reference(2, window, ridge, ar1)
    for at in range(45):
        for node in range(2):
            reference.observe(node, x[at, node], y[at, node])
        if at >= 3:
            np.testing.assert_allclose(found[at], reference.beta(), rtol=1e-8)


def test_a_trace_is_what_the_events_say() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 3, 2)), rng.normal(size=(400, 3))
    events = list(LeastSquaresMonitor(3, 2, 0.4, window=50).run((x, y)))
    traced = trace(LeastSquaresMonitor(3, 2, 0.4, window=50), x, y)
    assert traced.messages[-1] == events[-1].messages
    assert np.isnan(traced.error[:49]).all()
    assert (traced.error[49:] <= 0.4).all()
    assert traced.error[traced.syncs[0]] < 1e-9
    started = events[0].messages
    assert traced.normalised(50) == (traced.messages[-1] - started) / (3 * 350)


def test_the_best_period_is_the_largest_that_will_do() -> None:
    rng = np.random.default_rng(0)
    beta = np.cumsum(rng.normal(size=(500, 2)), axis=0)
    largest = 6.0
    best = best_period(beta, largest)
    assert periodic_error(beta, best).max() <= largest
    assert all(periodic_error(beta, period).max() > largest for period in range(best + 1, 501))
