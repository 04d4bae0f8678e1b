"""Workloads of many patterns over stocks and traffic, and how fast each way to share them is.

After I. Kolchinsky, A. Schuster: Real-time multi-pattern detection over event streams (SIGMOD 2019).
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from benchmarks import _adaptive
from cepheid.cli.bench import Result, Steps
from cepheid.engine.ingest import EventColumns
from cepheid.engine.joiner import LimitError
from cepheid.engine.sample import estimate_all
from cepheid.engine.session import Session
from cepheid.pattern.normal import Branch
from cepheid.pattern.normalise import normalise
from cepheid.plan.cardinality import Cardinality
from cepheid.stats.estimates import Estimates
from cepheid.workloads import stock_quotes, traffic_sensors
from cepheid.workloads.patterns import pattern_workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STOCKS, TRAFFIC = "stocks", "traffic"
REAL = {"real stocks": _adaptive.STOCKS, "real traffic": _adaptive.TRAFFIC}
TRIVIAL = "trivial"
MARGINS = (0.9, 0.97, 0.99)
"""How much more a price must have risen than another, as quantiles of all changes: that few pairs satisfy."""
MATCHES = 3.0
"""Patterns are taken of which no more matches are expected in a window, as long as there are any: those that one would
want to hear of."""
TRIED = 4
"""So many times as many patterns are made up as are taken."""
BATCH = 5_000
LIMIT = 5.0
"""So many seconds a plan is measured for; a slow one does not come to the end of the stream."""
REPEATS = 5
MOST = 20_000_000
"""A plan that makes more partial matches than that at once is stopped there: a few of them take gigabytes."""
START = datetime(2024, 1, 1)
NOTES = [
    (
        f"a plan is measured for {LIMIT:.0f} s of processor time: a slow one does not come to the end of the stream, "
        "and sees windows that fill up, so its throughput is if anything too high, and the gains of the others too low"
    ),
    (
        f"one that makes more than {MOST:,} partial matches at once is stopped, and the events that it was given then "
        "count as done: that too makes the gains of the others too low"
    ),
    f"fast ones are measured up to {REPEATS} times, for half of that time, and the fastest run counts",
    "planning and getting ready are not counted; a gain depends steeply on how many events are in a window",
]


@dataclass(frozen=True)
class Method:
    """How patterns are planned. ``planner`` matters where they are planned apart."""

    share: str | cepheid.Sharing
    planner: str = "auto"


def methods(names: Iterable[str], seconds: float, *, everything: bool = False) -> dict[str, Method]:
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
        "SA-EDGE": Method(search),
        "TS-EDGE": Method(replace(search, search="tabu")),
        "TS-EDGE-PREFIX": Method(replace(search, plans="chains", search="tabu")),
        "SA-VERTEX4": Method(replace(search, neighbourhood="vertex", k=4)),
        "TS-VERTEX4": Method(replace(search, neighbourhood="vertex", k=4, search="tabu")),
        "SA-VERTEX8": Method(replace(search, neighbourhood="vertex", k=8)),
        "TS-VERTEX8": Method(replace(search, neighbourhood="vertex", k=8, search="tabu")),
    }
    return known if everything else {name: known[name] for name in (TRIVIAL, *names)}


@dataclass(frozen=True)
class Workload:
    """Patterns and a stream. Number and size of patterns and the window of time are the paper's.

    The number of types, the rate of the stream, margins, MATCHES and overlap are ours. The gain depends on them, most
    of all on ``per_second``: the trivial plan slows down with a high power of the events in a window, so a gain says
    little without it. Real events are replayed one after the other, each type about once a minute.
    """

    data: str = STOCKS
    patterns: int = 100
    size: float = 5
    window: str = "15 minutes"
    types: int = 12
    events: int = 20_000
    overlap: float = 0.8
    per_second: float = 0.5
    difference: float | None = None
    seed: int = 1

    def rates(self) -> dict[str, float]:
        """From 2 to 47, as in the paper; many types are rare."""
        source = random.Random(self.seed)
        return {f"S{number}": 2 + 45 * source.random() ** 2 for number in range(1, self.types + 1)}

    def stream(self) -> pa.Table:
        if self.data in REAL:
            return self._real()
        if self.data == TRAFFIC:
            return traffic_sensors(self.events, sensors=self.types, interval=60.0, seed=self.seed)
        return stock_quotes(self.events, rates=self.rates(), per_second=self.per_second, seed=self.seed)

    def _real(self) -> pa.Table:
        """The first events of some types, drawn by chance."""
        table, names, _ = _adaptive.STREAMS[REAL[self.data]]()
        types = random.Random(self.seed).sample(names, self.types)
        mine = table.filter(pc.is_in(table["type"], pa.array(types))).slice(0, self.events)
        places = np.arange(mine.num_rows) * round(60e6 / self.types)
        times = np.datetime64(START, "us") + places.astype("timedelta64[us]")
        return mine.add_column(0, "ts", pa.array(times))

    def texts(self, stream: pa.Table) -> list[str]:
        count = TRIED * self.patterns
        options: dict[str, Any] = {"size": self.size, "window": self.window, "overlap": self.overlap}
        options |= {"difference": self.difference, "seed": self.seed, "result": "{first}.ts AS first"}
        types = self.rates()
        if self.data != STOCKS:
            counts = stream["type"].value_counts().to_pylist()
            types = {row["values"]: float(row["counts"]) for row in counts}
        if "speed" in stream.column_names:
            return pattern_workload(count, types, attributes=("speed", "vehicles"), **options)
        attribute = "change" if self.data == STOCKS else "diff"
        changes = np.abs(stream[attribute].to_numpy())
        margins = [round(float(np.quantile(changes, share)), 3) for share in MARGINS]
        return pattern_workload(count, types, attributes=(attribute,), margins=margins, **options)


@dataclass
class Run:
    """One workload, made once for all methods."""

    workload: Workload
    events: pa.Table = field(init=False)
    patterns: tuple[cepheid.Pattern, ...] = field(init=False)
    estimates: Mapping[Branch, Estimates] = field(init=False)

    def __post_init__(self) -> None:
        self.events = self.stream()
        made = [cepheid.parse(text) for text in self.workload.texts(self.events)]
        self.estimates = estimate_all(made, self.events, EventColumns())
        made.sort(key=lambda pattern: max(MATCHES, self._expected(pattern)))
        self.patterns = tuple(made[: self.workload.patterns])
        cepheid.match(self.patterns[:5], self.events.slice(0, 300))  # so that nothing is compiled while it is measured

    def stream(self) -> pa.Table:
        return self.workload.stream()

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
            max_partial_matches=MOST, **options,
        )  # fmt: skip
        session = engine.open()
        session.prepare(self.events.schema)
        planned = session.snapshot()
        runs = [self.pushed(session)]
        while sum(run["seconds"] for run in runs) < LIMIT / 2 and len(runs) < REPEATS:
            runs.append(self.pushed(engine.restore(planned)))
        found = min(runs, key=lambda run: run["seconds"])
        return {"events": found["events"], "matches": found["matches"], "events per second": found["rate"]}

    def pushed(self, session: Session, limit: float | None = LIMIT) -> dict[str, Any]:
        """Push the stream, for so many seconds at the most."""
        seen = 0
        matches: int | None = 0
        start = process_time()
        for place in range(0, self.events.num_rows, BATCH):
            some = self.events.slice(place, BATCH)
            seen += some.num_rows
            try:
                matches += session.push(some, watermark=some["ts"][-1]).num_rows
            except LimitError:
                matches = None
                break
            if limit is not None and process_time() - start > limit:
                break
        seconds = process_time() - start
        return {"events": seen, "matches": matches, "seconds": seconds, "rate": seen / seconds}


def sweep(
    cases: Sequence[tuple[Mapping[str, Any], Workload, Mapping[str, Method]]], progress: Steps, **options: Any
) -> Result:
    """Each workload by each method; a row for each. The gain is that over the trivial plan."""
    rows = []
    for labels, workload, ways in progress(cases, lambda case: ", ".join(f"{k} {v}" for k, v in case[0].items())):
        run = Run(workload)
        found = {name: run.measure(method, **options) for name, method in ways.items()}
        complete = {f["matches"] for f in found.values() if f["events"] == run.events.num_rows} - {None}
        assert len(complete) <= 1, f"the methods found different numbers of matches: {complete}"
        trivial = found[TRIVIAL]["events per second"]
        for name, measured in found.items():
            gain = measured["events per second"] / trivial
            rows.append({**labels, "seed": workload.seed, "method": name, **measured, "gain": gain})
    return Result(rows, [*NOTES, *_means(rows, list(cases[0][0]))])


def _means(rows: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> list[str]:
    """Gains of the workloads that were measured several times."""
    found: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for row in rows:
        found.setdefault(tuple(row[label] for label in labels), {}).setdefault(row["method"], []).append(row["gain"])
    return [
        f"{', '.join(map(str, case))}, mean of {len(gains[TRIVIAL])} seeds: "
        + ", ".join(f"{name} {statistics.geometric_mean(some):.3g}" for name, some in gains.items() if name != TRIVIAL)
        for case, gains in found.items()
        if len(gains[TRIVIAL]) > 1
    ]


def numbers(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(row[name]) for row in rows]


def style(name: str) -> dict[str, Any]:
    """A method looks the same in all plots."""
    place = list(methods((), 0.0, everything=True)).index(name) - 1
    return {"color": f"C{place % 7}", "linestyle": "-" if place < 7 else "--", "marker": "osv^DPX*h+d<>"[place % 13]}


def draw(axes: Axes, result: Result, x: str, xscale: str = "linear", **where: Any) -> None:
    """The gain against something; of several seeds the geometric mean."""
    some = result.where(**where)
    for name in dict.fromkeys(str(row["method"]) for row in some):
        if name != TRIVIAL:
            mine = [row for row in some if row["method"] == name]
            gains = {at: [float(row["gain"] or 0) for row in mine if row[x] == at] for at in numbers(mine, x)}
            means = [statistics.geometric_mean(gains[at]) for at in sorted(gains)]
            axes.plot(sorted(gains), means, ms=5, lw=1.5, label=name, **style(name))
    places = sorted({float(row[x] or 0) for row in some})
    axes.set(xscale=xscale, yscale="log", xlabel=x)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.set_xticks([], minor=True)
    axes.axhline(1, color="0.6", lw=1)


def legend(figure: Figure, axes: Axes) -> None:
    """One for all panels, beside them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
