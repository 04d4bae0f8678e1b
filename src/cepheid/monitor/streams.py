"""Made-up observations: the paper's two sets (4.5.1)."""

from __future__ import annotations

import numpy as np

from cepheid.monitor.kernels import Floats


def fixed_set(
    rounds: int = 16_900, nodes: int = 10, dimension: int = 10, sigma: float = 10.0, *, seed: int = 0
) -> tuple[Floats, Floats]:
    """Rounds of y = xᵀβ + noise with one β, drawn from N(0, 1) like x; the noise is from N(0, σ²)."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=(1, dimension)).repeat(rounds, axis=0)
    return _observed(rng, beta, nodes, sigma)


def drift_set(
    epochs: int = 5, epoch: int = 3900, nodes: int = 10, dimension: int = 10, sigma: float = 10.0, *, seed: int = 0
) -> tuple[Floats, Floats]:
    """The same with a β that moves to another one in the first quarter of each epoch, and rests for the others."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(epochs + 1, dimension))
    number, at = np.divmod(np.arange(epochs * epoch), epoch)
    share = np.minimum(at / (epoch / 4), 1.0)[:, None]
    return _observed(rng, (1 - share) * places[number] + share * places[number + 1], nodes, sigma)


def _observed(rng: np.random.Generator, beta: Floats, nodes: int, sigma: float) -> tuple[Floats, Floats]:
    rounds, dimension = beta.shape
    x = rng.normal(size=(rounds, nodes, dimension))
    y = np.einsum("rkm,rm->rk", x, beta) + sigma * rng.normal(size=(rounds, nodes))
    return x, y
