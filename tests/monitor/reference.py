"""Least squares done plainly, to compare the monitor with."""

from __future__ import annotations

import numpy as np

from cepheid.monitor.kernels import Floats


class Reference:
    """The observations of all nodes, and the model that they make."""

    def __init__(self, nodes: int, window: int | None, ridge: float, ar1: float | None) -> None:
        self.rows: list[list[tuple[Floats, float]]] = [[] for _ in range(nodes)]
        self.window, self.ridge, self.ar1 = window, ridge, ar1

    def observe(self, node: int, x: Floats, y: float) -> None:
        self.rows[node].append((x, y))
        if self.window is not None:
            self.rows[node] = self.rows[node][-self.window :]

    def whitened(self, node: int) -> tuple[Floats, Floats]:
        x = np.array([row[0] for row in self.rows[node]])
        y = np.array([row[1] for row in self.rows[node]])
        if self.ar1 is not None and len(y):
            first = np.sqrt(1 - self.ar1**2)
            x = np.concatenate([first * x[:1], x[1:] - self.ar1 * x[:-1]])
            y = np.concatenate([first * y[:1], y[1:] - self.ar1 * y[:-1]])
        return x, y

    def beta(self) -> Floats:
        """By orthogonal factors of the rows, not by their sums."""
        parts = [self.whitened(node) for node in range(len(self.rows)) if self.rows[node]]
        x, y = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        size = x.shape[1]
        x = np.concatenate([x, np.sqrt(self.ridge) * np.eye(size)])
        y = np.concatenate([y, np.zeros(size)])
        return np.linalg.lstsq(x, y, rcond=None)[0]
