"""How the benchmarks of load shedding measure: an overload on the stream runner, compared with a run that drops
nothing.

After A. Slo, S. Bhowmik, K. Rothermel: hSPICE, state-aware event shedding in complex event processing (DEBS 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import cepheid
from benchmarks._shed_queries import GAP, Query
from cepheid.cli.bench import Result, Steps
from cepheid.engine.ingest import EventColumns
from cepheid.local.match import BATCH, prepare
from cepheid.local.signals import Stop
from cepheid.local.stream.queue import Chunk
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
STEPS = 2_000
"""Of the search for plans that patterns share, where all strategies are to have the same."""
RATES = (120, 140, 160, 180, 200)
"""Per cent of μ."""


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

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[Chunk]:
        due, place = perf_counter(), 0
        for seconds, rate in self._phases:
            end, each = place + int(seconds * rate), max(1, round(rate * SPAN))
            while place < end:
                count = min(each, end - place)
                if stop.wait(due + count / rate - perf_counter()):
                    return
                yield Chunk(self.slice(place, count), due)
                due += count / rate
                place += count


@dataclass
class Matches:
    """The matches of a run as numbers, and when they start and end."""

    keys: list[Numbers] = field(default_factory=list)
    starts: list[Numbers] = field(default_factory=list)
    ends: list[Numbers] = field(default_factory=list)
    events: int = 0  # in which they were looked for

    def add(self, found: pa.Table) -> None:
        if found.num_rows:
            columns = {name: found[name].cast(pa.int64()).to_numpy() for name in ("start", "end", "window_start")}
            # The same events can be found in several windows.
            bits = found["key"].to_numpy().view(np.int64)
            self.keys.append(bits ^ columns["window_start"] * 0x9E3779B97F4A7C1)
            self.starts.append(columns["start"])
            self.ends.append(columns["end"])

    def between(self, first: int, last: int) -> Numbers:
        """The sorted numbers of those that lie between two times."""
        if not self.keys:
            return np.zeros(0, np.int64)
        starts, ends = np.concatenate(self.starts), np.concatenate(self.ends)
        return np.unique(np.concatenate(self.keys)[(starts >= first) & (ends <= last)])


def unshed(query: Query, seconds: float, count: int | None = None) -> tuple[float, Matches]:
    """μ and all matches: as fast as it goes in batches of the size that the bound allows, for some events or a
    while."""
    source = Rising(query.events, [])
    engine, _ = prepare(list(query.patterns), source.preview(EventColumns()))
    session, size, matches = engine.open(), BatchSize(SLICE * (1 - SAFETY) * BOUND, BATCH), Matches()
    place, began = 0, perf_counter()
    while (place < count) if count is not None else (perf_counter() - began < seconds):
        batch = source.slice(place, size.events if count is None else min(size.events, count - place))
        started = perf_counter()
        matches.add(session.push(batch, watermark=batch["ts"][-1]))
        size.took(len(batch), perf_counter() - started)
        place += len(batch)
    rate = place / (perf_counter() - began)
    matches.add(session.close())
    matches.events = place
    return rate, matches


@dataclass(frozen=True)
class Trial:
    """How long events come at a calm rate, and then at one that is too high."""

    calm: float
    overload: float


def overloaded(
    query: Query, strategy: str, percent: int, mu: float, trial: Trial, truth: Matches | None
) -> dict[str, Any]:
    """One strategy under one overload: what was lost, what was dropped, how late events were."""
    source = Rising(query.events, [(trial.calm, CALM * mu), (trial.overload, percent / 100 * mu)])
    found = Matches()
    result = cepheid.run(
        list(query.patterns), source, found.add, shed=STRATEGIES[strategy](latency_bound=BOUND, safety=SAFETY)
    )
    busy = result.metrics.filter(pa.array(result.metrics["second"].to_numpy() >= int(trial.calm)))
    totals = {name: sum(busy[name].to_pylist()) for name in ("events_in", "dropped_from_queue", "dropped_events")}
    report = result.report["shedding"]
    pairs = report["pairs dropped"]
    lost: dict[str, float | None] = {"FN %": None, "FP %": None}
    if truth is not None:
        calm = int(trial.calm * CALM * mu)
        first, last = (source.slice(n, 1)["ts"][0].value for n in (calm, min(source.count, truth.events) - 1))
        wanted, got = truth.between(first, last), found.between(first, last)
        both = len(np.intersect1d(wanted, got, assume_unique=True))
        lost = {
            "FN %": 100 * (len(wanted) - both) / max(len(wanted), 1),
            "FP %": 100 * (len(got) - both) / max(len(wanted), 1),
        }
    latencies = {
        name: [v for v in busy[f"latency_{name}"].to_pylist() if v is not None] for name in ("p50", "p99", "max")
    }
    return {
        "query": query.name, "window": query.window, "rate %": percent, "strategy": strategy, **lost,
        "recall, estimated %": 100 * report["estimated recall"],
        "to drop %": 100 * float(np.mean(busy["ratio"].to_numpy())),
        "pairs %": 100 * pairs / max(pairs + result.report["candidates"], 1),
        "events %": 100 * totals["dropped_events"] / max(totals["events_in"], 1),
        "partial matches": report["partial matches dropped"],
        "queue %": 100 * totals["dropped_from_queue"] / max(totals["events_in"], 1),
        "p50 ms": 1000 * float(np.median(latencies["p50"])),
        "p99 ms": 1000 * max(latencies["p99"]),
        "max ms": 1000 * max(latencies["max"]),
        "μ": mu,
    }  # fmt: skip


def compare(
    queries: Sequence[Callable[[], Query]],
    rates: Sequence[int],
    trial: Trial,
    repeats: int,
    progress: Steps,
    *,
    exact: bool,
) -> Result:
    """All strategies on all queries and rates; they take turns. ``exact``: count what was lost against the truth.

    μ is of the events that the overload has, dropping nothing; of several repeats the mean counts, and for the longest
    latency the worst.
    """
    rows: list[dict[str, Any]] = []
    said: list[str] = []
    for make in progress(queries, lambda made: made().name):
        query = make()
        mu, _ = unshed(query, 1.0)  # compiles what is not yet
        mu, _ = unshed(query, 2.0)
        truth: Matches | None = None
        if exact:
            count = int(mu * (CALM * trial.calm + max(rates) / 100 * trial.overload) * 1.3)
            mu, truth = unshed(query, 0.0, count)
        said.append(f"{query.name}: {query.stream()[1]}; μ is {mu:,.0f} events/s")
        for percent in rates:
            runs: dict[str, list[dict[str, Any]]] = {name: [] for name in STRATEGIES}
            for _ in range(repeats):
                for name, found in runs.items():
                    found.append(overloaded(query, name, percent, mu, trial, truth))
            rows += [_together(found) for found in runs.values()]
    within = sum(row["max ms"] <= 1000 * BOUND for row in rows)
    said.append(f"the bound of {BOUND:.0f} s was kept in {within} of {len(rows)} cases")
    said.append("p50 is of the middle second of the overload, p99 of the worst; max is the slowest event of all")
    return Result(rows, said)


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
