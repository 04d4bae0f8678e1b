"""The zones: whatever drift is inside, the model is close; and which zone is the larger."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cepheid.monitor.model import Model, Settings, Zone, fit

SETTINGS = Settings(nodes=1, dimension=3, epsilon=0.4, window=100)


def model_of(settings: Settings, rng: np.random.Generator) -> tuple[Model, np.ndarray, np.ndarray]:
    rows = rng.normal(size=(20, 3)) * rng.uniform(0.2, 5, size=3)
    a, c = rows.T @ rows, rows.T @ rng.normal(size=20) * 3
    found = fit(settings, a, c)
    assert isinstance(found, Model)
    return found, a, c


def drift(rng: np.random.Generator, grows: bool) -> tuple[np.ndarray, np.ndarray]:
    rows = rng.normal(size=(rng.integers(1, 6), 3))
    signs = np.ones(len(rows)) if grows else rng.choice([-1.0, 1.0], len(rows))
    return (rows.T * signs) @ rows, rows.T @ (signs * rng.normal(size=len(rows)) * rng.choice([0.1, 1.0, 10.0]))


@given(seed=st.integers(0, 2**32 - 1), zone=st.sampled_from(["residual", "paper"]), grows=st.booleans())
def test_drifts_on_the_border_keep_the_model_close(seed: int, zone: Zone, grows: bool) -> None:
    rng = np.random.default_rng(seed)
    settings = replace(SETTINGS, zone=zone, window=None if grows else 100)
    model, a, c = model_of(settings, rng)
    more_a, more_c = drift(rng, grows)
    size = model.value(more_a, more_c)
    beta = np.linalg.solve(a + more_a / size, c + more_c / size)
    assert np.linalg.norm(beta - model.beta) <= settings.epsilon * (1 + 1e-9)


@given(seed=st.integers(0, 2**32 - 1))
def test_the_residual_zone_contains_the_papers(seed: int) -> None:
    model, _, _ = model_of(SETTINGS, np.random.default_rng(seed))
    more = drift(np.random.default_rng(seed + 1), grows=False)
    paper = Model(replace(SETTINGS, zone="paper"), model.beta, model.inverse, model.budget)
    assert model.value(*more) <= paper.value(*more) * (1 + 1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_the_zone_of_growing_data_contains_the_ball(seed: int) -> None:
    """The ball is ‖δ − Δβ₀‖ ≤ ε·λ, with the smallest eigenvalue λ of the sums."""
    settings = replace(SETTINGS, window=None)
    model, a, _ = model_of(settings, np.random.default_rng(seed))
    more_a, more_c = drift(np.random.default_rng(seed + 1), grows=True)
    ball = np.linalg.norm(more_c - more_a @ model.beta) / (settings.epsilon * np.linalg.eigvalsh(a)[0])
    assert model.value(more_a, more_c) <= ball * (1 + 1e-9)


def test_the_papers_inequality_for_growing_data_is_false() -> None:
    """(4.8) rests on ‖(A+B)⁻¹u‖ ≤ ‖A⁻¹u‖, which does not hold for vectors."""
    a, b = np.diag([1.0, 100.0]), np.array([[1.0, 5.0], [5.0, 26.0]])
    assert np.all(np.linalg.eigvalsh(b) > 0)
    changed = np.linalg.solve(a + b, a)  # (A+B)⁻¹u for all u = A·v with ‖v‖ = 1, that is ‖A⁻¹u‖ = 1
    assert np.linalg.norm(changed, 2) > 1.0
