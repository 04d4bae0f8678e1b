"""The model in force is never further than ε from the one of all data: over random streams, after every moment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.monitor import LeastSquaresMonitor, Observations
from cepheid.monitor.kernels import Floats
from tests.monitor.reference import Reference

KINDS = ("gaussian", "heavy-tailed", "drifting", "correlated", "near-singular", "outliers")


def stream(kind: str, seed: int, rounds: int, nodes: int, size: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rounds, nodes, size))
    noise = rng.normal(size=(rounds, nodes))
    beta = rng.normal(size=size) * 3
    move = np.zeros(size)
    if kind == "heavy-tailed":
        x = rng.standard_cauchy(size=x.shape)
        noise = rng.standard_cauchy(size=noise.shape)
    elif kind == "drifting":
        move = rng.normal(size=size) * 4
    elif kind == "correlated":
        noise = np.cumsum(noise, axis=0)
        x = np.cumsum(0.3 * x, axis=0)
    elif kind == "near-singular":
        x[:, :, -1] = x[:, :, 0] + 10.0 ** rng.uniform(-7, -1) * x[:, :, -1]
    elif kind == "outliers":
        x[rng.random(x.shape[:2]) < 0.02] *= 1e6
    share = np.linspace(0, 1, rounds)[:, None]
    y = np.einsum("rkm,rm->rk", x, beta + share * move) + noise
    return x, y


@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
    nodes=st.integers(1, 4),
    size=st.integers(1, 4),
    window=st.none() | st.integers(3, 40),
    ridge=st.sampled_from([0.0, 0.0, 0.01, 5.0]),
    ar1=st.sampled_from([None, None, 0.5, -0.7, 0.95]),
    zone=st.sampled_from(["residual", "paper"]),
    resolution=st.sampled_from(["pool", "balance", "poll"]),
    scale=st.sampled_from([0.03, 0.3, 1.0, 5.0]),
    alone=st.booleans(),
)
def test_the_model_in_force_is_close(
    kind: str, seed: int, nodes: int, size: int, window: int | None, scale: float, alone: bool, **options: Any
) -> None:
    """``alone``: each observation is a moment of its own, rather than one of each node."""
    x, y = stream(kind, seed, 90, nodes, size)
    monitor = LeastSquaresMonitor(nodes, size, epsilon=scale, window=window, warmup=10, **options)
    reference = Reference(nodes, window, options["ridge"], options["ar1"])
    for at in range(len(y)):
        turns = [[node] for node in range(nodes)] if alone else [list(range(nodes))]
        for turn in turns:
            list(monitor.run(Observations(turn, x[at, turn], y[at, turn], [at] * len(turn))))
            for node in turn:
                reference.observe(node, x[at, node], y[at, node])
            if monitor.model is not None:
                beta = reference.beta()
                # Plain least squares has rounding errors too.
                slack = 1e-6 * scale + 1e-9 * float(np.linalg.norm(beta))
                assert np.linalg.norm(beta - monitor.model) <= scale + slack


@pytest.mark.parametrize("resolution", ["pool", "balance", "poll"])
@pytest.mark.parametrize("kind", ["gaussian", "drifting", "outliers"])
def test_batches_do_not_matter(kind: str, resolution: Any) -> None:
    x, y = stream(kind, 5, 600, 3, 2)
    whole = LeastSquaresMonitor(3, 2, 0.4, window=100, resolution=resolution)
    parts = LeastSquaresMonitor(3, 2, 0.4, window=100, resolution=resolution)
    events = list(whole.run((x, y)))
    others = list(parts.run((x[at : at + 7], y[at : at + 7]) for at in range(0, 600, 7)))
    assert [(type(e), e.time, e.messages) for e in events] == [(type(e), e.time, e.messages) for e in others]
    assert len(events) > 3
    np.testing.assert_array_equal(whole.model, parts.model)
