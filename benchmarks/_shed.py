"""How the benchmarks of load shedding measure: an overload on the stream runner, compared with a run that drops
nothing.

What is lost is compared between strategies that take turns on clocks of their own: each push takes as long as it really
does, but the time in which others have their turn does not count. So a machine that is slow for a while is so for all.
Latencies are measured on a stream that does not wait.

After A. Slo, S. Bhowmik, K. Rothermel: hSPICE, state-aware event shedding in complex event processing (DEBS 2020).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import cepheid
from benchmarks._shed_queries import GAP, Query
from cepheid.cli.bench import Result, Steps
from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.engine.warming import warm_up
from cepheid.local.match import BATCH, prepare
from cepheid.local.signals import Stop
from cepheid.local.stream.queue import Chunk, EventQueue
from cepheid.local.stream.result import StreamResult
from cepheid.local.stream.runner import Runner
from cepheid.local.stream.sinks import sink_of
from cepheid.shed.batching import SLICE, BatchSize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = npt.NDArray[np.int64]

STRATEGIES = {
    "hSPICE": cepheid.HSpice,
    "eSPICE": cepheid.ESpice,
    "pSPICE": cepheid.PSpice,
    "sampling": cepheid.WeightedSampling,
    "cost-aware": cepheid.CostAware,
}
"""The paper's, what it compares them with, and ours."""
BOUND, SAFETY = 1.0, 0.8
"""The paper's: a second, and shedding starts at 80 per cent of it."""
CALM = 0.6
"""Before the overload, events come at this part of μ, so that there is a model when it starts."""
SPAN = 0.005
"""Events of so many seconds come together."""
PREVIEW = 60_000
SHARE = cepheid.Sharing(steps=2_000)
"""The plan that patterns share is searched for in so many steps, so that it is the same for all strategies."""
FIRST = 2.0
"""Seconds for which the first events are taken, to see how fast the machine is."""
RATES = (120, 140, 160, 180, 200)
"""Per cent of μ."""
OF = 16
"""There are hundreds of millions of matches; of so many one is looked at, the same ones in all runs."""
REPEATS = int(os.environ.get("CEPHEID_REPEATS", "3"))
OURS, THEIRS = "cost-aware", "hSPICE"


class Rising:
    """A source: the events of a stream over and over, at one rate for some seconds and then at the next.

    When the stream is over it starts anew, with later times and other numbers.
    """

    def __init__(self, events: pa.Table, phases: Sequence[tuple[float, float]]) -> None:
        self._events = events.combine_chunks()
        self._phases = phases
        self._period = int(events["ts"][-1].value) + GAP

    @property
    def count(self) -> int:
        return sum(int(seconds * rate) for seconds, rate in self._phases)

    def preview(self, columns: EventColumns) -> pa.Table:
        return self._events.slice(0, PREVIEW)

    def slice(self, start: int, count: int) -> pa.Table:
        """Some events, wherever they are in the endless stream."""
        turn, place = divmod(start, len(self._events))
        part = self._events.slice(place, count)
        if turn:
            ts = pa.array(part["ts"].cast(pa.int64()).to_numpy() + turn * self._period).cast(part["ts"].type)
            part = part.set_column(0, "n", pa.array(part["n"].to_numpy() + turn * len(self._events)))
            part = part.set_column(1, "ts", ts)
        if len(part) < count:
            return pa.concat_tables([part, self.slice(start + len(part), count - len(part))])
        return part

    def chunks(self) -> Iterator[tuple[Chunk, float]]:
        """Events that come together, and when the last of them does, in seconds from the start."""
        due, place = 0.0, 0
        for seconds, rate in self._phases:
            end, each = place + int(seconds * rate), max(1, round(rate * SPAN))
            while place < end:
                count = min(each, end - place)
                yield Chunk(self.slice(place, count), due), due + count / rate
                due += count / rate
                place += count

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[Chunk]:
        began = perf_counter()
        for chunk, complete in self.chunks():
            if stop.wait(began + complete - perf_counter()):
                return
            yield replace(chunk, came=began + chunk.came)


class Clock:
    """Counts the processor's time while it is told to, so that what else the machine does is of no account."""

    def __init__(self) -> None:
        self._before = 0.0
        self._started: float | None = None

    def __call__(self) -> float:
        return self._before + (0.0 if self._started is None else process_time() - self._started)

    @contextmanager
    def running(self, runs: bool = True) -> Iterator[None]:
        was = self._started is not None
        self._set(runs)
        try:
            yield
        finally:
            self._set(was)

    def _set(self, runs: bool) -> None:
        self._before, self._started = self(), process_time() if runs else None

    def skip(self, seconds: float) -> None:
        self._before += max(seconds, 0.0)


class Arrivals(EventQueue):
    """The queue of a run with a clock of its own: there is what has come by its time."""

    def __init__(self, source: Rising, clock: Clock) -> None:
        super().__init__(None)
        self._coming = source.chunks()
        self._next = next(self._coming, None)
        self._clock = clock

    def _come(self) -> None:
        now = self._clock()
        with self._clock.running(False):
            while self._next is not None and self._next[1] <= now:
                self.put(self._next[0])
                self._next = next(self._coming, None)
            if self._next is None:
                self.end()

    @property
    def events(self) -> int:
        self._come()
        return super().events

    @property
    def arrived(self) -> int:
        self._come()
        return super().arrived

    def wait(self, seconds: float) -> bool:
        if not self.events and self._next is not None:
            self._clock.skip(min(self._next[1] - self._clock() + 1e-6, seconds))
            self._come()
        return super().wait(0.0)


@dataclass
class Matches:
    """One in ``of`` matches of a run, by their numbers, and when they start and end."""

    keys: list[Numbers] = field(default_factory=list)
    starts: list[Numbers] = field(default_factory=list)
    ends: list[Numbers] = field(default_factory=list)
    events: int = 0  # in which they were looked for
    of: int = OF

    def add(self, found: pa.Table) -> None:
        if found.num_rows:
            columns = {name: found[name].cast(pa.int64()).to_numpy() for name in ("start", "end", "window_start")}
            # The same events can be found in several windows.
            keys = found["key"].to_numpy().view(np.int64) ^ columns["window_start"] * 0x9E3779B97F4A7C1
            some = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) <= np.uint64((2**64 - 1) // self.of)
            self.keys.append(keys[some])
            self.starts.append(columns["start"][some])
            self.ends.append(columns["end"][some])

    def between(self, first: int, last: int) -> Numbers:
        """The sorted numbers of those that lie between two times."""
        if not self.keys:
            return np.zeros(0, np.int64)
        starts, ends = np.concatenate(self.starts), np.concatenate(self.ends)
        return np.unique(np.concatenate(self.keys)[(starts >= first) & (ends <= last)])


def planned(query: Query) -> Engine:
    """The same plan each time."""
    engine, _ = prepare(list(query.patterns), query.events.slice(0, PREVIEW), share=SHARE)
    return engine


def unshed(query: Query, seconds: float, count: int | None = None) -> tuple[float, Matches]:
    """μ and all matches: as fast as it goes in batches of the size that the bound allows, for some events or a
    while."""
    source = Rising(query.events, [])
    session, size, matches = planned(query).open(), BatchSize(SLICE * (1 - SAFETY) * BOUND, BATCH), Matches()
    place, began = 0, process_time()
    while (place < count) if count is not None else (process_time() - began < seconds):
        batch = source.slice(place, size.events if count is None else min(size.events, count - place))
        started = process_time()
        matches.add(session.push(batch, watermark=batch["ts"][-1]))
        size.took(len(batch), process_time() - started)
        place += len(batch)
    rate = place / (process_time() - began)
    matches.add(session.close())
    matches.events = place
    return rate, matches


@dataclass(frozen=True)
class Trial:
    """How long events come at a calm rate, and then at one that is too high."""

    calm: float
    overload: float


@dataclass(frozen=True)
class Overload:
    """A query under a load that is too high, with one strategy. ``truth``: all its matches, if what is lost is
    counted."""

    query: Query
    strategy: str
    percent: int
    mu: float
    trial: Trial
    truth: Matches | None
    found: Matches = field(default_factory=Matches)

    @property
    def source(self) -> Rising:
        phases = [(self.trial.calm, CALM * self.mu), (self.trial.overload, self.percent / 100 * self.mu)]
        return Rising(self.query.events, phases)

    @property
    def shed(self) -> Any:
        return STRATEGIES[self.strategy](latency_bound=BOUND, safety=SAFETY)

    def live(self) -> dict[str, Any]:
        """Events come when they do."""
        patterns = list(self.query.patterns)
        return self.figures(cepheid.run(patterns, self.source, self.found.add, shed=self.shed, share=SHARE))

    def runner(self, clock: Clock) -> Runner:
        """Events come by a clock."""
        source, columns = self.source, EventColumns()
        preview = source.preview(columns)
        engine = replace(planned(self.query), shed=self.shed)
        warm_up(engine, engine.patterns, preview, columns)
        queue = Arrivals(source, clock)
        return Runner(engine.open(), source, sink_of(self.found.add), columns, self.shed, clock=clock, queue=queue)

    def figures(self, result: StreamResult) -> dict[str, Any]:
        """What was lost, what was dropped, how late events were."""
        busy = result.metrics.filter(pa.array(result.metrics["second"].to_numpy() >= int(self.trial.calm)))
        totals = {name: sum(busy[name].to_pylist()) for name in ("events_in", "dropped_from_queue", "dropped_events")}
        report = result.report["shedding"]
        pairs = report["pairs dropped"]
        latencies = {
            name: [v for v in busy[f"latency_{name}"].to_pylist() if v is not None] for name in ("p50", "p99", "max")
        }
        return {
            "query": self.query.name, "window": self.query.window, "rate %": self.percent, "strategy": self.strategy,
            **self._lost(),
            "recall, estimated %": 100 * report["estimated recall"],
            "to drop %": 100 * float(np.mean(busy["ratio"].to_numpy())),
            "pairs %": 100 * pairs / max(pairs + result.report["candidates"], 1),
            "events %": 100 * totals["dropped_events"] / max(totals["events_in"], 1),
            "partial matches": report["partial matches dropped"],
            "queue %": 100 * totals["dropped_from_queue"] / max(totals["events_in"], 1),
            "p50 ms": 1000 * float(np.median(latencies["p50"])),
            "p99 ms": 1000 * max(latencies["p99"]),
            "max ms": 1000 * max(latencies["max"]),
            "μ": self.mu,
        }  # fmt: skip

    def _lost(self) -> dict[str, float | None]:
        if self.truth is None:
            return {"FN %": None, "FP %": None}
        source, calm = self.source, int(self.trial.calm * CALM * self.mu)
        first, last = (source.slice(n, 1)["ts"][0].value for n in (calm, min(source.count, self.truth.events) - 1))
        wanted, got = self.truth.between(first, last), self.found.between(first, last)
        both = len(np.intersect1d(wanted, got, assume_unique=True))
        return {
            "FN %": 100 * (len(wanted) - both) / max(len(wanted), 1),
            "FP %": 100 * (len(got) - both) / max(len(wanted), 1),
        }


def in_turns(overloads: Sequence[Overload]) -> list[dict[str, Any]]:
    """All on clocks of their own; whose is the earliest has the next turn."""
    clocks = [Clock() for _ in overloads]
    runners = [overload.runner(clock) for overload, clock in zip(overloads, clocks, strict=True)]
    gc.collect()
    gc.freeze()  # as a run does, so that pauses are short
    for runner in runners:
        runner.begin()
    going = set(range(len(runners)))
    while going:
        place = min(going, key=lambda n: clocks[n]())
        with clocks[place].running():
            goes_on = runners[place].turn()
        if not goes_on:
            going.remove(place)
    gc.unfreeze()
    return [overload.figures(runner.finish()) for overload, runner in zip(overloads, runners, strict=True)]


def compare(
    queries: Sequence[Callable[[], Query]],
    rates: Sequence[int],
    trial: Trial,
    repeats: int,
    progress: Steps,
    *,
    exact: bool,
) -> Result:
    """All strategies on all queries and rates. ``exact``: count what was lost against the truth; then they take turns
    with each push, and else one runs after the other.

    μ is of the events that the overload has, dropping nothing; since the machine may be faster or slower a while later,
    the first events are taken again before each run, and μ is so many times as high as they are faster. Of several
    repeats the mean counts, and for the longest latency the worst.
    """
    rows: list[dict[str, Any]] = []
    said: list[str] = []
    for make in progress(queries, lambda made: made().name):
        query = make()
        unshed(query, 1.0)  # compiles what is not yet
        mu = at_first = unshed(query, FIRST)[0]
        truth: Matches | None = None
        if exact:
            count = int(mu * (CALM * trial.calm + max(rates) / 100 * trial.overload) * 1.3)
            mu, truth = unshed(query, 0.0, count)
            at_first = (at_first + unshed(query, FIRST)[0]) / 2
        said.append(f"{query.name}: {query.stream()[1]}; μ is {mu:,.0f} events/s")
        for percent in rates:
            runs: dict[str, list[dict[str, Any]]] = {name: [] for name in STRATEGIES}
            for _ in range(repeats):
                now = mu * unshed(query, FIRST)[0] / at_first
                overloads = [Overload(query, name, percent, now, trial, truth) for name in STRATEGIES]
                figures = in_turns(overloads) if exact else [overload.live() for overload in overloads]
                for mine, found in zip(figures, runs.values(), strict=True):
                    found.append(mine)
            rows += [_together(found) for found in runs.values()]
    within = sum(row["max ms"] <= 1000 * BOUND for row in rows)
    said.append(f"the bound of {BOUND:.0f} s was kept in {within} of {len(rows)} cases")
    if exact:
        said += _ranks(rows)
    said.append("p50 is of the middle second of the overload, p99 of the worst; max is the slowest event of all")
    return Result(rows, said)


def _ranks(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How far the paper's strategy and ours are behind the best of the others: points of false negatives."""
    cases: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows:
        cases.setdefault((row["query"], row["window"], row["rate %"]), {})[row["strategy"]] = row["FN %"]
    for mine in (THEIRS, OURS):
        others = [name for name in STRATEGIES if name not in (mine, OURS)]
        behind = [case[mine] - min(case[name] for name in others) for case in cases.values()]
        first = sum(points <= 0 for points in behind)
        yield f"{mine} loses the least in {first} of {len(behind)} cases; in the worst {max(behind):.1f} points more"


def _together(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means, and how far false negatives are spread; the longest latency is the longest of all runs."""
    means = {
        name: value if isinstance(value, str) or value is None else float(np.mean([run[name] for run in runs]))
        for name, value in runs[0].items()
    }
    spread = None if means["FN %"] is None else float(np.std([run["FN %"] for run in runs]))
    worst = {"rate %": runs[0]["rate %"], "FN ±": spread, "max ms": max(run["max ms"] for run in runs)}
    return means | worst


def lines(axes: Axes, result: Result, x: str, y: str, **wanted: Any) -> None:
    """A line for each strategy."""
    for place, name in enumerate(STRATEGIES):
        rows = result.where(strategy=name, **wanted)
        places = [float(str(row[x]).split()[0]) for row in rows]
        axes.plot(places, [float(row[y] or 0) for row in rows], marker="osv^D"[place], label=name, lw=1.5, ms=5)
    axes.set(xlabel=x, ylabel=y, ylim=(0, 102 if y in ("FN %", "to drop %") else None))


def legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize="small")
