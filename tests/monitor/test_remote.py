"""Nodes and a coordinator with only messages between them: late, repeated, and with processes that start again."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.monitor.messages import EMPTY, Order, Report
from cepheid.monitor.model import Settings
from cepheid.monitor.remote import RemoteCoordinator, RemoteNode
from tests.monitor.reference import Reference
from tests.monitor.test_guarantee import KINDS, stream


@settings(max_examples=100)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
    nodes=st.integers(1, 4),
    size=st.integers(1, 3),
    window=st.none() | st.integers(3, 30),
    ar1=st.sampled_from([None, 0.8]),
    zone=st.sampled_from(["residual", "paper"]),
    epsilon=st.sampled_from([0.1, 1.0, 5.0]),
)
def test_when_no_message_is_on_its_way_the_model_is_close(
    kind: str, seed: int, nodes: int, size: int, window: int | None, ar1: float | None, zone: Any, epsilon: float
) -> None:
    shared = Settings(nodes, size, epsilon, window, 0.0, ar1, zone)
    names = [f"n{number}" for number in range(nodes)]
    x, y = stream(kind, seed, 80, nodes, size)
    rng = np.random.default_rng(seed)
    there = [RemoteNode(name, shared, 10) for name in names]
    coordinator = RemoteCoordinator(shared, names)
    log: list[str] = []  # every report that ever was: what a topic keeps
    up: deque[str] = deque()
    down: list[deque[str]] = [deque() for _ in names]
    orders = 0
    reference = Reference(nodes, window, 0.0, ar1)

    def send(reports: list[Report]) -> None:
        for report in reports:
            for _ in range(1 + (rng.random() < 0.2)):  # some come twice
                up.append(report.to_json())
            log.append(report.to_json())

    def deliver(place: int) -> None:
        order = Order.from_json(down[place].popleft(), shared)
        assert order is not None
        send(there[place].follow(order))

    def coordinate(texts: list[str]) -> None:
        nonlocal orders
        order = coordinator.receive([report for text in texts if (report := Report.from_json(text))])
        if order is not None:
            assert order.number > orders
            orders = order.number
            for line in down:
                line.append(order.to_json())

    for at in range(len(y)):
        for place in range(nodes):
            send(there[place].observe(x[at, place : place + 1], y[at, place : place + 1]))
            reference.observe(place, x[at, place], y[at, place])
            if down[place] and rng.random() < 0.3:
                deliver(place)
        if up and rng.random() < 0.4:
            coordinate([up.popleft() for _ in range(rng.integers(1, len(up) + 1))])
        if rng.random() < 0.05:
            place = int(rng.integers(nodes))
            there[place] = RemoteNode.restore(names[place], shared, 10, there[place].snapshot())
        if rng.random() < 0.05:
            coordinator = RemoteCoordinator(shared, names, orders)
            coordinate(log)
        if rng.random() < 0.3 or at == len(y) - 1:
            while up or any(down):
                if up:
                    coordinate([up.popleft()])
                for place in range(nodes):
                    if down[place]:
                        deliver(place)
            if coordinator.model is not None:
                beta = reference.beta()
                slack = 1e-6 * epsilon + 1e-9 * float(np.linalg.norm(beta))
                assert np.linalg.norm(beta - coordinator.model) <= epsilon + slack


def test_a_node_that_was_kept_with_another_window_is_refused() -> None:
    kept = RemoteNode("a", Settings(1, 2, 1.0, 10), 5).snapshot()
    with pytest.raises(ValueError, match="window and dimension stay the same"):
        RemoteNode.restore("a", Settings(1, 2, 1.0, 20), 5, kept)


def test_an_empty_message_says_nothing() -> None:
    assert Report.from_json(EMPTY) is None
    assert Order.from_json(EMPTY, Settings(1, 2, 1.0)) is None


def test_reports_of_unknown_nodes_are_refused() -> None:
    coordinator = RemoteCoordinator(Settings(1, 1, 1.0), ["a"])
    with pytest.raises(ValueError, match="unknown node 'b'; there are a"):
        coordinator.receive([Report("b", 1, np.eye(1), np.ones(1))])
