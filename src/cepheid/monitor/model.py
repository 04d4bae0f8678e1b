"""A least-squares model of the sums of all nodes, and the zone in which it is close enough to the present one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from cepheid.monitor.kernels import GROWING, PAPER, RESIDUAL, Floats

Zone: TypeAlias = Literal["residual", "paper"]

UNIT = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Settings:
    """What all parts of a monitor must agree on.

    ``epsilon``: how far the model in force may be from the present one. ``window``: observations of each node that
    count, None for all. ``ridge``: λ of the penalty λ‖β‖². ``ar1``: φ, if each node's errors are an AR(1) process.
    """

    nodes: int
    dimension: int
    epsilon: float
    window: int | None = None
    ridge: float = 0.0
    ar1: float | None = None
    zone: Zone = "residual"

    def __post_init__(self) -> None:
        wrong = []
        if self.nodes < 1:
            wrong.append(f"nodes is 1 or more, got {self.nodes!r}")
        if self.dimension < 1:
            wrong.append(f"dimension is 1 or more, got {self.dimension!r}")
        if not (np.isfinite(self.epsilon) and self.epsilon > 0):
            wrong.append(f"epsilon is a number above 0, got {self.epsilon!r}")
        least = 2 if self.ar1 else 1
        if self.window is not None and self.window < least:
            wrong.append(f"window is {least} or more observations, or None for all, got {self.window!r}")
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            wrong.append(f"ridge is 0 or more, got {self.ridge!r}")
        if self.ar1 is not None and not -1 < self.ar1 < 1:
            wrong.append(f"ar1 is a number between -1 and 1, or None, got {self.ar1!r}")
        if self.zone not in ("residual", "paper"):
            wrong.append(f"zone is 'residual' or 'paper', got {self.zone!r}")
        if wrong:
            raise ValueError("; ".join(wrong))

    @property
    def kind(self) -> int:
        """The zone, as the kernels know it."""
        if self.zone == "paper":
            return PAPER
        return RESIDUAL if self.window is not None else GROWING


@dataclass(frozen=True)
class Model:
    """A model in force: β₀, and what nodes need to tell whether they are inside its zone.

    ``inverse`` is P, about Â₀⁻¹, and ``budget`` what is left of ε after rounding. For data that only grow, the budget
    is the radius of the zone.
    """

    settings: Settings
    beta: Floats
    inverse: Floats
    budget: float

    def value(self, drift_a: Floats, drift_c: Floats) -> float:
        """How far out a drift (Δ, δ) is: at most 1 in the zone. It is a norm, so that a mean is no further out."""
        residual = drift_c - drift_a @ self.beta
        if self.settings.kind == GROWING:
            return float(math.sqrt(max(float(residual @ self.inverse @ residual), 0.0)) / self.budget)
        spectral = self.settings.epsilon * float(np.linalg.norm(self.inverse @ drift_a, 2))
        if self.settings.kind == PAPER:
            first, second = self.inverse @ drift_c, self.inverse @ (drift_a @ self.beta)
            return float(spectral + np.linalg.norm(first) + np.linalg.norm(second)) / self.budget
        return float(spectral + np.linalg.norm(self.inverse @ residual)) / self.budget


@dataclass(frozen=True)
class Undetermined:
    """Why the observations do not make a model."""

    reason: str


def fit(settings: Settings, sum_a: Floats, sum_c: Floats) -> Model | Undetermined:
    """The model of the mean sums Â, ĉ of the nodes.

    With whatever P and β₀ come out, (Â+Δ)(β−β₀) = δ − Δβ₀ + ρ, where ρ = ĉ − Âβ₀ is what solving left over. Times P:
    ‖β−β₀‖·(1 − ‖I−PÂ‖ − ‖PΔ‖) ≤ ‖P(δ−Δβ₀)‖ + ‖Pρ‖. So ‖Pρ‖ + ε‖I−PÂ‖ is taken off ε, and the zone holds for the numbers
    that the machine has, not only for those that it should have.
    """
    size = settings.dimension
    mean_a = (sum_a + settings.ridge * np.eye(size)) / settings.nodes
    mean_c = sum_c / settings.nodes
    if not (np.isfinite(mean_a).all() and np.isfinite(mean_c).all()):
        return Undetermined("the sums of the observations are too large for doubles; scale the columns")
    values = np.linalg.eigvalsh(mean_a)
    largest, smallest = float(values[-1]), float(values[0])
    # Rounding may have moved each eigenvalue by this much.
    smallest -= 4 * size * UNIT * largest
    if smallest <= 0:
        rank = int((values > 4 * size * UNIT * largest).sum())
        return Undetermined(
            f"the observations determine {rank} of {size} coefficients: their matrix is singular. Wait for "
            "observations that differ more, leave out columns that depend on others, or set ridge= to a number above 0"
        )
    inverse = np.linalg.inv(mean_a)
    inverse = (inverse + inverse.T) / 2
    beta = inverse @ mean_c
    for _ in range(2):  # as exact as P lets it be
        beta = beta + inverse @ (mean_c - mean_a @ beta)
    left = mean_c - mean_a @ beta
    slack_left = size * UNIT * (np.abs(mean_a) @ np.abs(beta) + np.abs(mean_c))
    off = np.linalg.norm(np.eye(size) - inverse @ mean_a, 2)
    off += 8 * size * UNIT * np.linalg.norm(np.abs(inverse) @ np.abs(mean_a), 2)
    epsilon = settings.epsilon
    if settings.kind == GROWING:
        # (Â+Δ) ⪰ Â ⪰ λI gives ‖β−β₀‖ ≤ ‖Â^-½(δ−Δβ₀)‖ / √λ, a larger zone than ‖δ−Δβ₀‖ ≤ ελ.
        whole = epsilon * math.sqrt(smallest)
        lost = math.sqrt(max(float(left @ inverse @ left), 0.0)) + math.sqrt(slack_left @ np.abs(inverse) @ slack_left)
    else:
        whole = epsilon
        lost = float(np.linalg.norm(inverse @ left) + np.linalg.norm(np.abs(inverse) @ slack_left))
    share = float(lost / whole + off)
    if not share < 0.5:
        return Undetermined(
            f"the observations determine the coefficients too badly for epsilon = {epsilon:g}: the condition number of "
            f"their matrix is {largest / smallest:.1e}, and rounding alone would take {share:.0%} of epsilon. Wait for "
            "observations that differ more, scale the columns alike, or set ridge= to a number above 0"
        )
    return Model(settings, beta, inverse, whole * (1 - share))
