"""Workloads of many patterns over stocks and traffic, and how fast each way to share them is.

After I. Kolchinsky, A. Schuster: Real-time multi-pattern detection over event streams (SIGMOD 2019).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import cepheid
from cepheid.cli.bench import Result, Steps
from cepheid.engine.ingest import EventColumns
from cepheid.engine.sample import estimate_all
from cepheid.pattern.normal import Branch
from cepheid.pattern.normalise import normalise
from cepheid.plan.cardinality import Cardinality
from cepheid.stats.estimates import Estimates
from cepheid.workloads import stock_quotes, traffic_sensors
from cepheid.workloads.patterns import pattern_workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STOCKS, TRAFFIC = "stocks", "traffic"
TRIVIAL = "trivial"
MARGINS = (0.9, 0.97, 0.99)
"""How much more a price must have risen than another, as quantiles of all changes: that few pairs satisfy."""
MATCHES = 3.0
"""Patterns are taken of which no more matches are expected in a window, as long as there are any: those that one would
want to hear of."""
TRIED = 4
"""So many times as many patterns are made up as are taken."""
BATCH = 2_000
LIMIT = 10.0
"""So many seconds a plan is measured for; a slow one does not come to the end of the stream."""
NOTES = [
    (
        f"a plan is measured for {LIMIT:.0f} s of processor time at the most: a slow one has not seen all events, so "
        "its throughput is if anything too high, and the gains of the others too low"
    ),
    "one workload for each row; on stocks the gain over the trivial plan grows steeply with the events in a window",
]


@dataclass(frozen=True)
class Method:
    """How patterns are planned. ``planner`` matters where they are planned apart."""

    share: str | cepheid.Sharing
    planner: str = "auto"


def methods(names: Iterable[str], seconds: float) -> dict[str, Method]:
    """By the paper's names; the trivial plan, in the order of the patterns and without sharing, comes first."""
    search = cepheid.Sharing(seconds=seconds)
    known = {
        TRIVIAL: Method("none", "pattern_order"),
        "apart": Method("none"),
        "RE": Method("reorder"),
        "SH": Method("maximal"),
        "SPASS": Method("spass"),
        "MOTTO": Method("motto"),
        "SA-EDGE-PREFIX": Method(replace(search, plans="chains")),
        "TS-EDGE-PREFIX": Method(replace(search, plans="chains", search="tabu")),
        "SA-EDGE": Method(search),
        "TS-EDGE": Method(replace(search, search="tabu")),
        "SA-VERTEX4": Method(replace(search, neighbourhood="vertex", k=4)),
        "TS-VERTEX4": Method(replace(search, neighbourhood="vertex", k=4, search="tabu")),
        "SA-VERTEX8": Method(replace(search, neighbourhood="vertex", k=8)),
        "TS-VERTEX8": Method(replace(search, neighbourhood="vertex", k=8, search="tabu")),
    }
    return {name: known[name] for name in (TRIVIAL, *names)}


@dataclass(frozen=True)
class Workload:
    """Patterns and a stream. Number and size of patterns and the window of time are the paper's.

    The number of types, the rate of the stream, margins, MATCHES and overlap are ours, as is the single seed where the
    paper takes the mean of ten workloads. The gain depends on them, most of all on ``per_second``: the trivial plan
    slows down with a high power of the events in a window, so a gain says little without it.
    """

    data: str = STOCKS
    patterns: int = 100
    size: float = 5
    window: str = "15 minutes"
    types: int = 12
    events: int = 4_000
    overlap: float = 0.8
    per_second: float = 0.5
    difference: float | None = None
    seed: int = 1

    def rates(self) -> dict[str, float]:
        """From 2 to 47, as in the paper; many types are rare."""
        source = random.Random(self.seed)
        return {f"S{number}": 2 + 45 * source.random() ** 2 for number in range(1, self.types + 1)}

    def stream(self) -> pa.Table:
        if self.data == TRAFFIC:
            return traffic_sensors(self.events, sensors=self.types, interval=60.0, seed=self.seed)
        return stock_quotes(self.events, rates=self.rates(), per_second=self.per_second, seed=self.seed)

    def texts(self, stream: pa.Table) -> list[str]:
        count = TRIED * self.patterns
        options: dict[str, Any] = {"size": self.size, "window": self.window, "overlap": self.overlap}
        options |= {"difference": self.difference, "seed": self.seed, "result": "{first}.ts AS first"}
        if self.data == TRAFFIC:
            counts = stream["type"].value_counts().to_pylist()
            seen = {row["values"]: float(row["counts"]) for row in counts}
            return pattern_workload(count, seen, attributes=("speed", "vehicles"), **options)
        changes = np.abs(stream["change"].to_numpy())
        margins = [round(float(np.quantile(changes, share)), 3) for share in MARGINS]
        return pattern_workload(count, self.rates(), margins=margins, **options)


@dataclass
class Run:
    """One workload, made once for all methods."""

    workload: Workload
    events: pa.Table = field(init=False)
    patterns: tuple[cepheid.Pattern, ...] = field(init=False)
    estimates: Mapping[Branch, Estimates] = field(init=False)

    def __post_init__(self) -> None:
        self.events = self.workload.stream()
        made = [cepheid.parse(text) for text in self.workload.texts(self.events)]
        self.estimates = estimate_all(made, self.events, EventColumns())
        made.sort(key=lambda pattern: max(MATCHES, self._expected(pattern)))
        self.patterns = tuple(made[: self.workload.patterns])
        cepheid.match(self.patterns[:5], self.events.slice(0, 300))  # so that nothing is compiled while it is measured

    def _expected(self, pattern: cepheid.Pattern) -> float:
        """The matches in a window."""
        branches = normalise(pattern).branches
        return sum(
            Cardinality(branch, self.estimates[branch]).of(frozenset(v.name for v in branch.variables))
            for branch in branches
            if branch in self.estimates
        )

    def measure(self, method: Method, **options: Any) -> dict[str, Any]:
        engine = cepheid.Engine(
            self.patterns, planner=method.planner, share=method.share, estimates=self.estimates,
            max_partial_matches=10**9, **options,
        )  # fmt: skip
        session = engine.open()
        seen = matches = 0
        start = process_time()
        for place in range(0, self.events.num_rows, BATCH):
            some = self.events.slice(place, BATCH)
            matches += session.push(some, watermark=some["ts"][-1]).num_rows
            seen += some.num_rows
            if process_time() - start > LIMIT:
                break
        seconds = process_time() - start
        return {"events": seen, "matches": matches, "events per second": seen / seconds}


def sweep(
    cases: Sequence[tuple[Mapping[str, Any], Workload, Mapping[str, Method]]], progress: Steps, **options: Any
) -> Result:
    """Each workload by each method; a row for each. The gain is that over the trivial plan."""
    rows = []
    for labels, workload, ways in progress(cases, lambda case: ", ".join(f"{k} {v}" for k, v in case[0].items())):
        run = Run(workload)
        found = {name: run.measure(method, **options) for name, method in ways.items()}
        complete = {f["matches"] for f in found.values() if f["events"] == run.events.num_rows}
        assert len(complete) <= 1, f"the methods found different numbers of matches: {complete}"
        trivial = found[TRIVIAL]["events per second"]
        for name, measured in found.items():
            rows.append({**labels, "method": name, **measured, "gain": measured["events per second"] / trivial})
    return Result(rows, NOTES)


def numbers(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(row[name]) for row in rows]


def draw(axes: Axes, result: Result, x: str, **where: Any) -> None:
    names = dict.fromkeys(row["method"] for row in result.where(**where))
    for name in names:
        if name != TRIVIAL:
            rows = result.where(method=name, **where)
            axes.plot(numbers(rows, x), numbers(rows, "gain"), marker="o", label=str(name))
    axes.set(yscale="log", xlabel=x)
    axes.legend(fontsize=7)
