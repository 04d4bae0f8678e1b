"""The pace of micro-batches in a made-up world: a stream, a machine and a clock that exist only here."""

from __future__ import annotations

import math
import random
import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from cepheid.shed.pace import Pace

MU = 10_000.0
"""Events that the machine takes in a second of work when nothing is dropped."""
START = 1.0
"""Seconds until the first micro-batch: what has come by then is in it."""


@dataclass
class World:
    """Micro-batches that take ``before`` and ``after`` seconds whatever is dropped. ``load``: how fast events come, in
    parts of μ. A strategy makes of a ratio what it was told with ``power`` 1."""

    load: Callable[[float], float]
    before: float = 0.25
    after: float = 0.2
    bound: float = 2.0
    parts: int = 1  # that are worked on one after the other
    power: float = 1.0
    lag: float = 0.0  # seconds until the partial matches of before are gone
    trigger: float = 0.0
    skew: float = 0.0  # how much the clock of the work is ahead of the one that says when micro-batches begin
    latencies: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    cuts: list[float] = field(default_factory=list)

    def run(self, seconds: float) -> World:
        rng = random.Random(0)
        now, since = START, 0.0
        pace = Pace(self.bound, 0.8, lambda: now + self.skew)
        kept = 1.0
        while now < seconds:
            cut = now
            events = int(self.load(cut) * MU * (cut - since))
            now += self.before * math.exp(rng.gauss(0, 0.1))
            highest = 0.0
            for part in range(self.parts):
                mine = events // self.parts + (events % self.parts if not part else 0)
                for _, size in pace.pieces(cut, mine):
                    highest = max(highest, pace.ratio)
                    took = 0.002 + size * (0.05 + 0.95 * kept**self.power) / MU * math.exp(rng.gauss(0, 0.1))
                    now += took
                    fade = math.exp(-took / self.lag) if self.lag else 0.0
                    kept = fade * kept + (1 - fade) * (1 - pace.ratio)
            now += self.after * math.exp(rng.gauss(0, 0.1))
            self.cuts.append(cut)
            self.latencies.append(now - since)
            self.ratios.append(highest)
            since = cut
            if self.trigger:
                now = max(now, math.ceil((cut + 1e-9) / self.trigger) * self.trigger)
        return self

    def later(self, values: list[float], after: float = 40.0) -> list[float]:
        return [value for cut, value in zip(self.cuts, values, strict=True) if cut >= after]


@pytest.mark.parametrize("load", [0.05, 0.2, 0.35])
@pytest.mark.parametrize("parts", [1, 4])
def test_nothing_is_dropped_without_need(load: float, parts: int) -> None:
    world = World(lambda now: load, parts=parts).run(60)
    assert not any(world.ratios)


def test_what_had_gathered_before_the_start_is_caught_up_with() -> None:
    assert not any(World(lambda now: 0.3, bound=4.0).run(60).ratios)


@pytest.mark.parametrize("load", [0.7, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize(("power", "lag"), [(1.0, 0.0), (2.0, 0.0), (0.5, 0.0), (1.0, 0.2)])
def test_the_bound_holds(load: float, parts: int, power: float, lag: float) -> None:
    world = World(lambda now: load, parts=parts, power=power, lag=lag).run(80)
    assert max(world.later(world.latencies)) < world.bound
    assert min(world.later(world.ratios)) > 0


def test_the_share_settles_where_the_work_fits() -> None:
    world = World(lambda now: 2.0).run(120)
    ratios = world.later(world.ratios, 60)
    assert statistics.stdev(ratios) < 0.1
    assert statistics.mean(world.later(world.latencies, 60)) > 0.6 * world.bound  # no more is dropped than need be


def test_an_overload_that_ends() -> None:
    world = World(lambda now: 2.0 if 20 <= now < 40 else 0.3).run(80)
    assert max(world.latencies[2:]) < world.bound
    assert not any(ratio for cut, ratio in zip(world.cuts, world.ratios, strict=True) if cut < 20 or cut > 60)


def test_a_stream_that_is_idle_between_bursts() -> None:
    """Time in which nothing comes says nothing about what a micro-batch takes."""
    world = World(lambda now: 0.2, trigger=0.9, bound=4.0).run(60)
    assert not any(world.ratios)


def test_what_is_over_is_over() -> None:
    """After a pause, the first event is not dropped for what was before."""
    now = 0.0
    pace = Pace(2.0, 0.8, lambda: now)

    def micro_batch(cut: float, events: int) -> float:
        nonlocal now
        now = max(now, cut) + 0.2
        ratio = 0.0
        for _, size in pace.pieces(cut, events):
            ratio = pace.ratio
            now += size * 1e-4
        return ratio

    for _ in range(8):
        last = micro_batch(now, 30_000)
    assert last > 0.5
    assert micro_batch(now + 0.5, 10) > 0.5
    assert micro_batch(now + 10, 10) == 0


def test_sizes_that_alternate() -> None:
    """A small micro-batch is not taken for a part of a large one."""
    world = World(lambda now: 0.55 if int(now) % 2 else 0.01, bound=4.0).run(60)
    assert not any(world.ratios)


def test_a_trigger() -> None:
    world = World(lambda now: 1.5, trigger=1.0, bound=2.5).run(80)
    assert max(world.later(world.latencies)) < world.bound


@pytest.mark.parametrize("skew", [0.05, 3.0])
def test_clocks_that_do_not_quite_agree(skew: float) -> None:
    world = World(lambda now: 2.0, skew=skew).run(80)
    assert max(world.later(world.latencies)) < world.bound
    assert not any(World(lambda now: 0.2, skew=skew).run(60).ratios)


def test_a_bound_that_cannot_be_kept() -> None:
    with pytest.warns(RuntimeWarning, match=r"takes 0\.\d\d s whatever is dropped.*the latency bound of 0.5 s"):
        World(lambda now: 2.0, bound=0.5).run(30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        World(lambda now: 2.0).run(20)
        World(lambda now: 0.01, trigger=5.0).run(60)


def test_a_micro_batch_that_is_done_again() -> None:
    """It says when it was begun for the first time, which may be long ago."""
    now = 1e6
    pace = Pace(2.0, 0.8, lambda: now)
    for cut in (5.0, 1e6 + 1, 1e6 + 2, 1e6 + 3):
        now = max(now, cut) + 0.2
        for _, size in pace.pieces(cut, 1000):
            now += size * 1e-5
    assert pace.ratio == 0
    assert pace.overhead < 1


def test_a_micro_batch_without_events() -> None:
    pace = Pace(2.0, 0.8)
    assert list(pace.pieces(1.0, 0)) == [(0, 0)]


def test_pieces_are_all_of_it() -> None:
    pace = Pace(2.0, 0.8)
    for cut, events in enumerate((1, 1000, 100_000)):
        found = list(pace.pieces(float(cut), events))
        assert [start for start, _ in found] == [sum(size for _, size in found[:n]) for n in range(len(found))]
        assert sum(size for _, size in found) == events
