"""What the monitor is compared with: the present model at every round, and models that are sent every T rounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cepheid.monitor.kernels import Floats, Ints
from cepheid.monitor.least_squares import LeastSquaresMonitor
from cepheid.monitor.model import Settings

BLOCK = 4096


def exact_models(settings: Settings, x: Floats, y: Floats) -> Floats:
    """β after each round, of shape (rounds, dimension): what the naive algorithm knows, which sends every observation.

    NaN where the observations do not determine it.
    """
    rounds, _, size = x.shape
    phi = settings.ar1 or 0.0
    first = 1.0 - phi * phi
    z, w = x.copy(), y.copy()
    z[1:] -= phi * x[:-1]
    w[1:] -= phi * y[:-1]
    z[0] *= np.sqrt(first)
    w[0] *= np.sqrt(first)
    window = settings.window
    total = np.zeros((size, size + 1))
    found = np.full((rounds, size), np.nan)
    for start in range(0, rounds, BLOCK):
        stop = min(start + BLOCK, rounds)
        terms = _sums(z[start:stop], w[start:stop])
        if window is not None and stop > window:
            # What has left, and with AR(1) errors what is the first observation now.
            since = max(start, window)
            gone = slice(since - window, stop - window)
            now = slice(since - window + 1, stop - window + 1)
            old = first * _sums(x[gone], y[gone])
            if phi:
                old += _sums(z[now], w[now]) - first * _sums(x[now], y[now])
            terms[since - start :] -= old
        sums = total + np.cumsum(terms, axis=0)
        # Rounding would add up over blocks: the next one starts from what is in the window.
        total = sums[-1] if window is None else _window_sums(x, y, stop, window, phi)
        a, c = sums[:, :, :size] + settings.ridge * np.eye(size), sums[:, :, size]
        good = np.linalg.cond(a) < 1e15
        found[start:stop][good] = np.linalg.solve(a[good], c[good][:, :, None])[:, :, 0]
    return found


def _sums(x: Floats, y: Floats) -> Floats:
    """Σ x (xᵀ, y) of each round."""
    sums: Floats = np.einsum("rka,rkb->rab", x, np.concatenate([x, y[:, :, None]], axis=2), optimize=True)
    return sums


def _window_sums(x: Floats, y: Floats, stop: int, window: int, phi: float) -> Floats:
    x, y = x[max(0, stop - window) : stop], y[max(0, stop - window) : stop]
    whole = _sums(x[1:] - phi * x[:-1], y[1:] - phi * y[:-1]).sum(axis=0)
    sums: Floats = whole + (1.0 - phi * phi) * _sums(x[:1], y[:1])[0]
    return sums


@dataclass(frozen=True)
class Trace:
    """A run, round by round: how far the model in force was from the present one, and the messages so far.

    ``error`` is NaN while there is no model. ``syncs`` are the rounds with a new model.
    """

    beta: Floats
    error: Floats
    messages: Ints
    syncs: Ints
    nodes: int

    def normalised(self, skipped: int) -> float:
        """Messages per node and round, after the first rounds."""
        before = int(self.messages[skipped - 1]) if skipped else 0
        return float(int(self.messages[-1]) - before) / (self.nodes * (len(self.messages) - skipped))

    def largest_error(self, skipped: int) -> float:
        return float(np.nanmax(self.error[skipped:]))


def trace(monitor: LeastSquaresMonitor, x: Floats, y: Floats, beta: Floats | None = None) -> Trace:
    """Runs a new monitor over rounds. ``beta``: :func:`exact_models`, if they are there already."""
    rounds, nodes, _ = x.shape
    beta = exact_models(monitor.settings, x, y) if beta is None else beta
    error = np.full(rounds, np.nan)
    messages = np.zeros(rounds, np.int64)
    syncs = []
    since, model, sent = 0, None, 0
    # The model and the count after an event hold until the next one.
    for at, new, total, is_new in _changes(monitor, x, y):
        messages[since:at] = sent
        if model is not None:
            error[since:at] = np.linalg.norm(beta[since:at] - model, axis=1)
        since, model, sent = at, new, total
        if is_new:
            syncs.append(at)
    messages[since:] = sent
    if model is not None:
        error[since:] = np.linalg.norm(beta[since:] - model, axis=1)
    return Trace(beta, error, messages, np.array(syncs, np.int64), nodes)


def _changes(monitor: LeastSquaresMonitor, x: Floats, y: Floats) -> Iterator[tuple[int, Floats | None, int, bool]]:
    for event in monitor.run((x, y)):
        assert isinstance(event.time, int)
        yield event.time, monitor.model, event.messages, event.type in ("ModelStart", "ModelDrift")


def periodic_error(beta: Floats, period: int) -> Floats:
    """PER(T): the error in each round, when the model of every T-th round is in force until the next.

    Each node sends its sums every T rounds: 1/T messages per node and round. As in the paper, what it costs to send the
    model to the nodes is not counted.
    """
    known = beta[np.arange(len(beta)) // period * period]
    error: Floats = np.linalg.norm(beta - known, axis=1)
    return error


def best_period(beta: Floats, largest: float) -> int:
    """The largest T with which PER(T) is never further off than ``largest``: known in hindsight only.

    >>> best_period(np.arange(100.0)[:, None], 6.5)
    7
    """
    # A few rounds of each period rule most of them out, so that few are looked at as a whole.
    for period in range(len(beta), 1, -1):
        starts = np.arange(0, len(beta), period)[:, None]
        some = np.minimum(starts + np.linspace(0, period - 1, 9).astype(np.int64), len(beta) - 1)
        if np.linalg.norm(beta[some] - beta[starts], axis=2).max() > largest:
            continue
        if periodic_error(beta, period).max() <= largest:
            return period
    return 1
