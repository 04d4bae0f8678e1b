"""The overload detector in a made-up world: a queue, a server and a clock that exist only here."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from cepheid.shed.batching import BatchSize
from cepheid.shed.detector import OverloadDetector

MU = 10_000.0
"""Events that the server takes in a second when nothing is dropped."""
TICK = 0.005
"""Events come in groups, each of them this many seconds' worth."""


@dataclass
class World:
    """What a strategy makes of a ratio: with ``power`` 1 and no overhead, exactly what it was told."""

    rate: Callable[[float], float]
    power: float = 1.0
    overhead: float = 0.0
    cliff: float = 0.0  # nothing is gained until only this much is kept
    lag: float = 0.0  # seconds until the partial matches of before are gone
    noise: float = 0.0
    pause: float = 0.0  # now and then
    fixed: float = 0.0005  # for each push
    bound: float = 1.0
    times: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    shedding: list[bool] = field(default_factory=list)

    def run(self, seconds: float) -> World:
        rng = random.Random(0)
        detector, size = OverloadDetector(self.bound, 0.8), BatchSize(0.05 * self.bound, 65_536)
        queue: deque[tuple[float, int]] = deque()
        batch: list[tuple[float, int]]
        now, came, kept, arrived, owed, pushes = 0.0, 0.0, 1.0, 0, 0.0, 0

        def comes_until(now: float) -> None:
            nonlocal came, owed, arrived
            while came <= now:
                owed += self.rate(came) * TICK
                if owed >= 1:
                    queue.append((came, int(owed)))
                    arrived += int(owed)
                    owed -= int(owed)
                came += TICK

        while now < seconds:
            if not queue:
                now = max(now, came)
                comes_until(now)
                continue
            most, growing = size.events, size.growing
            left, batch = most, []
            while queue and left:
                at, n = queue.popleft()
                if n > left:
                    queue.appendleft((at, n - left))
                batch.append((at, min(n, left)))
                left -= min(n, left)
            n = sum(count for _, count in batch)
            work = self.overhead * (detector.ratio > 0) + kept**self.power
            if self.cliff:
                work = 0.2 + 0.9 / (1 + math.exp(-(kept - self.cliff) / 0.03))
            took = self.fixed + n * work / MU * math.exp(rng.gauss(0, self.noise)) + self.pause * (pushes % 97 == 96)
            pushes += 1
            now += took
            comes_until(now)
            fade = math.exp(-took / self.lag) if self.lag else 0.0
            size.took(n, took)
            self.latencies += [now - at for at, _ in batch]
            ratio = detector.after_push(
                now, arrived=arrived, served=n, seconds=took, queued=sum(count for _, count in queue),
                waited=now - queue[0][0] if queue else 0.0, capacity=None if n >= most and not growing else size.rate,
            )  # fmt: skip
            kept = kept * fade + (1 - ratio) * (1 - fade)
            arrived = 0
            self.times.append(now)
            self.ratios.append(ratio)
            self.shedding.append(detector.shedding)
        return self

    def after(self, seconds: float) -> np.ndarray:
        return np.array(self.ratios)[np.array(self.times) >= seconds]

    @property
    def switches(self) -> int:
        return int(np.abs(np.diff(np.array(self.shedding, int))).sum())


def steady(rate: float) -> Callable[[float], float]:
    return lambda now: rate * MU


PLANTS: dict[str, Any] = {
    "exact": {},
    "with overhead": {"overhead": 0.15},
    "weak": {"power": 0.6},
    "overreacts": {"power": 4.0},
    "overreacts wildly": {"power": 12.0},
    "a cliff": {"cliff": 0.5},
    "a cliff, slow": {"cliff": 0.5, "lag": 0.1},
    "slow": {"lag": 0.5},
    "noisy": {"noise": 0.3},
    "long to start": {"fixed": 0.015},
    "slow and noisy, with overhead": {"lag": 0.5, "noise": 0.3, "overhead": 0.1},
}


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("rate", [1.2, 1.4, 1.6, 1.8, 2.0])
def test_the_bound_holds_and_the_ratio_settles(plant: str, rate: float) -> None:
    world = World(steady(rate), **PLANTS[plant]).run(40)
    settled = world.after(15)
    assert max(world.latencies) <= 1.0
    assert world.switches == 1  # on, and never off
    assert settled.std() < 0.1
    if plant == "exact":
        assert settled.mean() == pytest.approx(1 - 1 / rate, abs=0.03)


@pytest.mark.parametrize(("rate", "fixed"), [(0.9, 0.0005), (0.5, 0.02), (0.01, 0.02)])
def test_no_overload_nothing_dropped(rate: float, fixed: float) -> None:
    world = World(steady(rate), noise=0.1, fixed=fixed).run(30)
    assert not any(world.ratios)
    assert world.switches == 0


@pytest.mark.parametrize("plant", PLANTS)
def test_shedding_ends_with_the_overload_and_does_not_come_back(plant: str) -> None:
    world = World(lambda now: MU * (2.0 if 5 <= now < 20 else 0.7), **PLANTS[plant]).run(40)
    assert max(world.latencies) <= 1.0
    assert world.switches == 2
    assert not world.after(31).any()


def test_at_the_edge_it_does_not_flicker() -> None:
    """About as much comes as can be served, now a little more, now less: on and off once in each of six swings."""
    world = World(lambda now: MU * (1.0 + 0.1 * math.sin(now / 3)), noise=0.1).run(120)
    assert max(world.latencies) <= 1.0
    assert world.switches <= 2 * 7
    assert world.after(20).mean() < 0.1


def test_pauses_fit_into_what_the_level_leaves() -> None:
    """As those of a garbage collector; the queue settles at 0.4 s, so that there is time for them."""
    world = World(steady(2.0), pause=0.2, noise=0.1).run(60)
    assert max(world.latencies) <= 1.0


@pytest.mark.parametrize("bound", [0.1, 0.5, 10.0])
def test_any_bound(bound: float) -> None:
    world = World(steady(1.6), bound=bound, noise=0.1).run(40 * bound)
    assert max(world.latencies) <= bound
    assert world.after(20 * bound).mean() == pytest.approx(1 - 1 / 1.6, abs=0.08)


def test_a_burst_starts_it_before_anything_has_waited() -> None:
    detector = OverloadDetector(1.0)
    detector.after_push(0.1, arrived=1000, served=1000, seconds=0.1, queued=10, waited=0.0)
    assert detector.after_push(0.2, arrived=50_000, served=1000, seconds=0.1, queued=49_000, waited=0.1) > 0.5


def test_who_waits_too_long_is_an_emergency() -> None:
    detector = OverloadDetector(1.0)
    detector.after_push(0.1, arrived=1000, served=900, seconds=0.1, queued=100, waited=0.0)
    assert detector.after_push(0.2, arrived=1000, served=900, seconds=0.1, queued=200, waited=0.95) > 0.98


@pytest.mark.parametrize(
    ("bound", "safety", "said"), [(0.0, 0.8, "latency_bound"), (1.0, 1.0, "safety"), (1.0, 0.0, "safety")]
)
def test_mistakes(bound: float, safety: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        OverloadDetector(bound, safety)


def test_a_queue_that_is_worked_off_long_after_the_last_event() -> None:
    detector = OverloadDetector(0.05)
    detector.after_push(0.05, arrived=10_000, served=50, seconds=0.05, queued=9_950, waited=0.05)
    for push in range(1, 400):
        now = 0.05 + 0.05 * push
        ratio = detector.after_push(now, arrived=0, served=50, seconds=0.05, queued=9_000, waited=now)
        assert 0 < ratio < 1
