"""What a node does for each observation (Algorithm 1), for many nodes and observations at a time.

The sums A = Σ x xᵀ and c = Σ x y are kept as a double and the rest that did not fit into it, so that what leaves a
window takes away what it brought, after any number of observations and whatever came in between. The node's drift is
watched in the coordinates of the model in force: M = P·Δ and the vectors of the zone, where P is the inverse that the
coordinator sent. Each observation changes them by a term of rank one, in O(m²) steps; nothing is inverted.

The spectral norm of M is not computed for each observation. An upper bound is: the bound that was certified last, plus
the Frobenius norm of what M has changed by since. Only where it does not decide, a new bound is certified: a matrix
B has norm below b when b²·I − BᵀB has a Cholesky factor. That costs O(m³) and is rare.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.engine.compile import inline, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

RESIDUAL, PAPER, GROWING = range(3)
"""Zones: the residual one and the paper's (4.7) for windows that slide, the residual one for data that only grow."""
REFRESH = 256
"""After so many changes by terms of rank one, M is computed anew from the sums: rounding does not add up."""


class State(NamedTuple):
    """All nodes: the first axis of each array is the node."""

    ring_x: Floats
    """The observations in the window; where it is infinite, the last one."""
    ring_y: Floats
    head: Ints
    """Where the next observation is written."""
    seen: Ints
    """Observations so far."""
    due: Ints
    """A node without a model reports when it has so many observations."""
    muted: Bools
    """The node has reported or answered and waits for what the coordinator decides."""
    outside: Bools
    """The node is outside its zone, or has the observations that are due."""
    sum_a: Floats
    rest_a: Floats
    sum_c: Floats
    rest_c: Floats
    sent_a: Floats
    """The sums that the coordinator knows."""
    sent_c: Floats
    reference_a: Floats
    """What drift is measured from: A₀ʲ, c₀ʲ of the paper, less what balancing has moved to other nodes."""
    reference_c: Floats
    m: Floats
    """P·Δ."""
    p: Floats
    """Residual zone: P·(δ − Δβ₀). Paper's zone: P·δ. Growing data: δ − Δβ₀."""
    q: Floats
    """Paper's zone: P·Δβ₀."""
    certified: Floats
    """M when its norm was last bounded."""
    bound: Floats
    """The bound."""
    direction: Floats
    """Nearly the direction that M stretches most."""
    changes: Ints
    """Since M was last computed from the sums."""
    certificates: Ints
    """How many bounds were certified."""


class Rules(NamedTuple):
    """What all nodes have in common: the kind of model, and the one in force."""

    window: int
    """0: infinite."""
    phi: float
    zone: int
    has_model: bool
    inverse: Floats
    """P."""
    beta: Floats
    """β₀."""
    epsilon: float
    budget: float
    """ε, less what rounding may have done to P and β₀. Growing data: the radius of the zone."""


@inline
def _add(total, rest, value):
    """The sum of a double with its rest and a value: the new double, and the new rest."""
    s = total + value
    back = s - total
    lost = (total - (s - back)) + (value - back)
    return s, rest + lost


@inline
def _apply(state, rules, j, sign, x, y):
    """Observation (x, y) comes (1) or goes (-1)."""
    m = x.shape[0]
    for a in range(m):
        for b in range(a, m):
            state.sum_a[j, a, b], state.rest_a[j, a, b] = _add(
                state.sum_a[j, a, b], state.rest_a[j, a, b], sign * (x[a] * x[b])
            )
        state.sum_c[j, a], state.rest_c[j, a] = _add(state.sum_c[j, a], state.rest_c[j, a], sign * (x[a] * y))
    if rules.has_model and not state.muted[j]:
        predicted = 0.0
        for a in range(m):
            predicted += x[a] * rules.beta[a]
        if rules.zone == GROWING:
            for a in range(m):
                state.p[j, a] += sign * x[a] * (y - predicted)
        else:
            for a in range(m):
                u = 0.0
                for b in range(m):
                    u += rules.inverse[a, b] * x[b]
                u *= sign
                for b in range(m):
                    state.m[j, a, b] += u * x[b]
                if rules.zone == PAPER:
                    state.p[j, a] += u * y
                    state.q[j, a] += u * predicted
                else:
                    state.p[j, a] += u * (y - predicted)
        state.changes[j] += 1


@inline
def _observe(state, rules, j, x, y, terms):
    """Node j sees (x, y), and its window moves on (lines 1 to 4).

    With errors that are an AR(1) process the model is that of the whitened observations of the window: the first, times
    √(1 − φ²), and of each other what the one before does not explain. Rows of ``terms`` are x, y and the sign.
    """
    m = x.shape[0]
    size = state.ring_x.shape[1]
    head = state.head[j]
    after = (head + 1) % size
    last = (head + size - 1) % size
    phi = rules.phi
    first = np.sqrt(1.0 - phi * phi)
    full = rules.window > 0 and state.seen[j] >= rules.window
    begins = state.seen[j] == 0
    for a in range(m):
        old = state.ring_x[j, head, a]
        terms[0, a] = first * x[a] if begins else x[a] - phi * state.ring_x[j, last, a]
        terms[1, a] = first * old
        terms[2, a] = state.ring_x[j, after, a] - phi * old
        terms[3, a] = first * state.ring_x[j, after, a]
    old = state.ring_y[j, head]
    terms[0, m] = first * y if begins else y - phi * state.ring_y[j, last]
    terms[1, m] = first * old
    terms[2, m] = state.ring_y[j, after] - phi * old
    terms[3, m] = first * state.ring_y[j, after]
    terms[0, m + 1] = 1.0
    terms[1, m + 1] = -1.0
    terms[2, m + 1] = -1.0
    terms[3, m + 1] = 1.0
    count = 1
    if full:
        # Where errors are independent, the observation after the one that leaves stays what it is.
        count = 2 if phi == 0.0 else 4
    for t in range(count):
        _apply(state, rules, j, terms[t, m + 1], terms[t, :m], terms[t, m])
    for a in range(m):
        state.ring_x[j, head, a] = x[a]
    state.ring_y[j, head] = y
    state.head[j] = after
    state.seen[j] += 1


@inline
def _refresh(state, rules, j, drift):
    """M and the vectors, computed from the sums (line 5)."""
    m = rules.beta.shape[0]
    for a in range(m):
        for b in range(a, m):
            drift[a, b] = (state.sum_a[j, a, b] - state.reference_a[j, a, b]) + state.rest_a[j, a, b]
            drift[b, a] = drift[a, b]
    for a in range(m):
        moved = 0.0
        for b in range(m):
            moved += drift[a, b] * rules.beta[b]
        change = (state.sum_c[j, a] - state.reference_c[j, a]) + state.rest_c[j, a]
        drift[m, a] = change if rules.zone == PAPER else change - moved
    if rules.zone == GROWING:
        for a in range(m):
            state.p[j, a] = drift[m, a]
    else:
        for a in range(m):
            total = 0.0
            for b in range(m):
                total += rules.inverse[a, b] * drift[m, b]
            state.p[j, a] = total
            for b in range(m):
                total = 0.0
                for l in range(m):  # noqa: E741
                    total += rules.inverse[a, l] * drift[l, b]
                state.m[j, a, b] = total
        for a in range(m):
            total = 0.0
            for b in range(m):
                total += state.m[j, a, b] * rules.beta[b]
            state.q[j, a] = total
    state.changes[j] = 0


@inline
def _room(state, rules, j):
    """How large the norm of M may be, after what the vectors take of the budget."""
    first = 0.0
    second = 0.0
    for a in range(rules.beta.shape[0]):
        first += state.p[j, a] * state.p[j, a]
        if rules.zone == PAPER:
            second += state.q[j, a] * state.q[j, a]
    return (rules.budget - np.sqrt(first) - np.sqrt(second)) / rules.epsilon


@inline
def _has_norm_below(gram, bound, factor):
    """Whether bound²·I − gram is positive definite, as its Cholesky factor shows."""
    m = gram.shape[0]
    good = True
    top = bound * bound * (1.0 - 1e-13)
    for a in range(m):
        for b in range(a + 1):
            total = (top if a == b else 0.0) - gram[a, b]
            for l in range(b):  # noqa: E741
                total -= factor[a, l] * factor[b, l]
            if a == b:
                good = good and total > 0.0
                factor[a, a] = np.sqrt(total) if good else 1.0
            else:
                factor[a, b] = total / factor[b, b]
    return good


@inline
def _certify(state, rules, j, room, gram, factor):
    """Whether the norm of M is at most ``room``; if so, a bound of it is kept for later."""
    m = rules.beta.shape[0]
    for a in range(m):
        for b in range(a + 1):
            total = 0.0
            for l in range(m):  # noqa: E741
                total += state.m[j, l, a] * state.m[j, l, b]
            gram[a, b] = total
            gram[b, a] = total
    # A few steps of the power method, from where it ended last time, tell how large the norm is at least.
    least = 0.0
    for _ in range(4):
        size = 0.0
        stretched = 0.0
        for a in range(m):
            total = 0.0
            for b in range(m):
                total += gram[a, b] * state.direction[j, b]
            factor[0, a] = total
            size += total * total
            stretched += total * state.direction[j, a]
        least = np.sqrt(max(stretched, 0.0))
        if size > 0.0:
            size = np.sqrt(size)
            for a in range(m):
                state.direction[j, a] = factor[0, a] / size
    good = False
    if least <= room:
        state.certificates[j] += 1
        close = least + 0.1 * (room - least)
        for attempt in range(2):
            if attempt == 1:
                close = room
            if not good:
                good = _has_norm_below(gram, close, factor)
                if good:
                    state.bound[j] = close
        if good:
            for a in range(m):
                for b in range(m):
                    state.certified[j, a, b] = state.m[j, a, b]
    return good


@inline
def _is_outside(state, rules, j, drift, gram, factor):
    """Whether node j's drift is outside the zone (line 6). What cannot be told cheaply is told from the sums."""
    m = rules.beta.shape[0]
    inside = False
    for attempt in range(2):
        exact = attempt == 1
        if not inside and (exact or state.changes[j] < REFRESH):
            if exact:
                _refresh(state, rules, j, drift)
            if rules.zone == GROWING:
                total = 0.0
                for a in range(m):
                    part = 0.0
                    for b in range(m):
                        part += rules.inverse[a, b] * state.p[j, b]
                    total += part * state.p[j, a]
                inside = total <= rules.budget * rules.budget
            else:
                room = _room(state, rules, j)
                if exact:
                    inside = room > 0.0 and _certify(state, rules, j, room, gram, factor)
                else:
                    moved = 0.0
                    for a in range(m):
                        for b in range(m):
                            change = state.m[j, a, b] - state.certified[j, a, b]
                            moved += change * change
                    inside = state.bound[j] + np.sqrt(moved) <= room
    return not inside


@kernel
def advance(state, rules, node, step, x, y, start):
    """Observations from ``start`` on, until the end of a step in which a node is outside; the place after it."""
    m = rules.beta.shape[0]
    terms = np.empty((4, m + 2))
    drift = np.empty((m + 1, m))
    gram = np.empty((m, m))
    factor = np.empty((m, m))
    place = start
    stop = False
    while place < node.shape[0] and not stop:
        j = node[place]
        _observe(state, rules, j, x[place], y[place], terms)
        if not state.muted[j]:
            if rules.has_model:
                state.outside[j] = _is_outside(state, rules, j, drift, gram, factor)
            else:
                state.outside[j] = state.seen[j] >= state.due[j]
        place += 1
        if place == node.shape[0] or step[place] != step[place - 1]:
            # Only nodes of this step can have changed.
            back = place - 1
            while back >= 0 and step[back] == step[place - 1] and not stop:
                stop = state.outside[node[back]]
                back -= 1
    return place


@kernel
def recheck(state, rules, nodes):
    """After a new model or reference: where the nodes stand now."""
    m = rules.beta.shape[0]
    drift = np.empty((m + 1, m))
    gram = np.empty((m, m))
    factor = np.empty((m, m))
    for place in range(nodes.shape[0]):
        j = nodes[place]
        _refresh(state, rules, j, drift)
        state.bound[j] = np.inf
        state.outside[j] = _is_outside(state, rules, j, drift, gram, factor)
