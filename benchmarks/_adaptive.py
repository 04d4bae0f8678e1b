"""Plans that follow the data: the streams, pattern sets and measurements that figures 5 to 7 have in common.

Kolchinsky and Schuster, Efficient Adaptive Detection of Complex Event Patterns. Streams are replayed at a constant
rate: an event's time is its place among the events of the pattern. So nights, when hardly a car passes, are short, and
what changes is how often types come compared with each other, and how often conditions hold.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

import cepheid
from cepheid.adapt.policies import DEFAULT, Policy
from cepheid.cli.bench import Result, Steps
from cepheid.local.match import prepare

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAFFIC, STOCKS = "aarhus_traffic.parquet", "stocks_1min.parquet"
SETS = ("sequence", "negation", "conjunction", "Kleene", "disjunction")
PLANNERS = tuple(os.environ.get("CEPHEID_PLANNERS", "greedy,zstream").split(","))
BATCH = 256
FEWEST, WORK, MOST = 20, 2_000, 20_000
"""A window has so many events of a type at first. It grows until an event makes so much work on average, and no larger
than that at some place of the stream an event makes the most: of a few hundred events no one can tell how long they
take, and who has no time to look in a burst has no choice."""
PLACES, SHORT = (1, 3, 5, 7), 0.5
"""Where the work is looked at, in eighths of the stream, and for how many seconds at each."""
LIMIT = float(os.environ.get("CEPHEID_SECONDS", "4"))
"""So many seconds a run is measured for: where a plan does not follow, some events can take minutes. A look at the
statistics is taken some times a second."""
SILENT = 4
"""Days without a car: of these observation points every third type of a traffic pattern is."""
SPEEDS = 30.0, 55.0
"""Of all others cars are always slower, or always faster; then no plan is bad."""

SIZES = tuple(map(int, os.environ.get("CEPHEID_SIZES", "3,4,5,6,7,8").split(",")))
"""Of patterns. All of them take hours."""
REPEATS = int(os.environ.get("CEPHEID_REPEATS", "3"))
PATTERNS = int(os.environ.get("CEPHEID_PATTERNS", "3"))
"""Of each set and size. What a change brings differs far more from pattern to pattern than from run to run."""
NOTE = (
    f"a run ends after {LIMIT:.0f} s of processor time; a method that got less far than the first is compared with it "
    "by the events that it got to"
)
STATIC, NEVER = "static", 10**12
"""All methods look at the statistics when the leader does, a session with ``adapt=True`` that decides by itself when to
and that nobody measures: so they differ in what they decide, and not in when they happened to look. It is the first to
get each batch, which takes a little longer than to be one of the others."""
EVERY: dict[str, Policy | None] = {
    STATIC: None,
    "unconditional published": cepheid.Unconditional(cautious=False),
    "threshold 0.1 published": cepheid.Threshold(0.1, cautious=False),
    "threshold 0.3 published": cepheid.Threshold(0.3, cautious=False),
    "threshold 1 published": cepheid.Threshold(1.0, cautious=False),
    "invariant published": cepheid.Invariant(cautious=False),
    "unconditional": cepheid.Unconditional(),
    "threshold 0.1": cepheid.Threshold(0.1),
    "threshold 0.3": cepheid.Threshold(0.3),
    "threshold 1": cepheid.Threshold(1.0),
    "invariant": cepheid.Invariant(),
    "adapt=True": DEFAULT,
}
"""As the paper has them, they take every plan that is better now. The others are as careful as this library is: so what
invariants bring is seen beside thresholds that are as careful."""
SELDOM = ("threshold 0.1 published", "threshold 0.1")
"""Each method takes as long as the others: these run if they are named, or if all are."""


def methods_called(names: str | None) -> dict[str, Policy | None]:
    """Those that ``CEPHEID_METHODS`` names, and the one that they are compared with; ``all``; or the usual ones.

    >>> list(methods_called("adapt=True,threshold 0.1"))
    ['static', 'threshold 0.1', 'adapt=True']
    >>> len(methods_called("all")) - len(methods_called(None))
    2
    """
    if names is None:
        return {name: policy for name, policy in EVERY.items() if name not in SELDOM}
    wanted = {name.strip() for name in names.split(",")}
    if unknown := sorted(wanted - EVERY.keys() - {"all"}):
        raise ValueError(f"CEPHEID_METHODS names {unknown[0]!r}: expected all, or some of {', '.join(EVERY)}")
    return {name: policy for name, policy in EVERY.items() if name in {*wanted, STATIC} or "all" in wanted}


METHODS = methods_called(os.environ.get("CEPHEID_METHODS"))


@dataclass(frozen=True)
class Case:
    """A pattern, a planner for it, and its events with the time that a replay gives them. ``seed``: which of its
    set."""

    patterns: str
    seed: int
    size: int
    planner: str
    pattern: str
    events: pa.Table
    window: int

    def __str__(self) -> str:
        return f"{self.patterns} of {self.size}, no. {self.seed + 1}, {self.planner}"


@cache
def _file(name: str) -> pa.Table | None:
    default = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("CEPHEID_DATA", default)) / name
    return pa.parquet.read_table(path) if path.is_file() else None


def is_real(name: str) -> bool:
    return _file(name) is not None


# --- the two streams: type, and the attributes that conditions compare


@cache
def _traffic() -> tuple[pa.Table, list[str], list[str]]:
    """Reports of cars; and the observation points that were never silent for long, and those that were."""
    found = _file(TRAFFIC)
    if found is None:
        from cepheid.workloads import traffic_sensors

        made_up = traffic_sensors(600_000, sensors=60, drift=0.3, skew=0.7)
        names = sorted(made_up["type"].unique().to_pylist())
        return made_up.drop_columns(["ts"]), names, names
    table = found.filter(pc.greater(found["vehicle_count"], 0))
    points, point = np.unique(table["sensor"].to_numpy(), return_inverse=True)
    days = table["ts"].to_numpy().astype("datetime64[D]").astype(np.int64)
    reports = np.zeros((len(points), int(np.ptp(days)) + 1))
    np.add.at(reports, (point, days - days.min()), 1)
    usual = np.median(reports, axis=1)
    silent = (reports <= usual[:, None] / 10).sum(axis=1)
    speed = np.bincount(point, table["avg_speed"].to_numpy()) / reports.sum(axis=1)
    fit = (usual > 60) & (speed > SPEEDS[0]) & (speed < SPEEDS[1])
    labels = np.array([f"P{number}" for number in points])
    columns = {"type": labels[point], "speed": table["avg_speed"], "vehicles": table["vehicle_count"]}
    return pa.table(columns), list(labels[fit & (silent == 0)]), list(labels[fit & (silent >= SILENT)])


@cache
def _stocks() -> tuple[pa.Table, list[str], list[str]]:
    """Quotes with the change of the price; the symbols that are quoted each minute, twice."""
    found = _file(STOCKS)
    if found is None:
        from cepheid.workloads import stock_quotes

        made_up = stock_quotes(600_000, rates=[1.0] * 40, symbols=[f"S{n}" for n in range(40)], drift=0.3)
        names = [f"S{n}" for n in range(40)]
        return pa.table({"type": made_up["type"], "diff": made_up["change"]}), names, names
    table = found.sort_by([("ticker", "ascending"), ("ts", "ascending")])
    price, ticker = table["close"].to_numpy(), table["ticker"].to_numpy(zero_copy_only=False)
    diff = np.diff(price, prepend=price[0])
    diff[np.flatnonzero(ticker[1:] != ticker[:-1]) + 1] = 0.0
    table = pa.table({"ts": table["ts"], "type": ticker, "diff": np.round(diff, 4)}).sort_by("ts")
    counts = pc.value_counts(table["type"]).to_pylist()
    names = sorted(c["values"] for c in counts if c["counts"] > 5_500 and c["values"].isalpha())
    return table.drop_columns(["ts"]), names, names


STREAMS = {TRAFFIC: _traffic, STOCKS: _stocks}
COMPARED = {TRAFFIC: ("speed", "vehicles"), STOCKS: ("diff",)}


# --- the five pattern sets


def cases_of(stream: str, patterns: str, size: int, events: int, seed: int = 0) -> Iterator[Case]:
    """One pattern of a set; its types are drawn by chance, the same in every run. Each planner has a window of its own:
    where a plan makes hardly any work, it does not matter which one it is."""
    table, steady, silent = STREAMS[stream]()
    count = {"negation": size + 1, "disjunction": 3 * size}.get(patterns, size)
    rng = np.random.default_rng([seed, size, SETS.index(patterns)])
    some = list(rng.choice(silent, min(count // 3, len(silent)), replace=False))
    some += list(rng.choice([name for name in steady if name not in some], count - len(some), replace=False))
    types = [str(name) for name in rng.permutation(some)]
    mine = table.filter(pc.is_in(table["type"], pa.array(types))).slice(0, events)
    mine = mine.add_column(0, "ts", pa.array(np.arange(mine.num_rows)))
    text = _text(patterns, types, COMPARED[stream], size)

    for planner in PLANNERS:

        def within(window: int, planner: str = planner) -> Case:
            return Case(patterns, seed, size, planner, f"{text} WITHIN {window}", mine, window)

        case = within(count * FEWEST)
        usual, highest = _work(case)
        while highest > MOST:
            case = within(case.window - case.window // 4)
            usual, highest = _work(case)
        while usual < WORK and 12 * case.window < mine.num_rows:
            larger = within(case.window + case.window // 4)
            usual, highest = _work(larger)
            if highest > MOST:
                break
            case = larger
        yield case


def _work(case: Case) -> tuple[float, float]:
    """Candidates and matches for each event, with a plan that fits: on average over some places, and at the busiest."""
    found = []
    for place in PLACES:
        some = replace(case, events=case.events.slice(case.events.num_rows * place // 8, 3 * case.window))
        estimates = first_estimates(replace(some, window=some.window // 2))
        figures, seconds = measure(some, {STATIC: None}, estimates, SHORT)[STATIC]
        events = min(BATCH * len(seconds), some.events.num_rows)
        found.append((figures["candidates"] + 10 * figures["matches"]) / events)
    return statistics.mean(found), max(found)


def _text(patterns: str, types: list[str], attributes: Sequence[str], size: int) -> str:
    names = [f"v{place}" for place in range(len(types))]
    leaves = [f"{type_} {name}" for type_, name in zip(types, names, strict=True)]
    rising = [names]
    match patterns:
        case "negation":
            structure = f"SEQ({leaves[0]}, NOT({leaves[size]}), {', '.join(leaves[1:size])})"
            rising = [names[:size], [names[0], names[size]]]
        case "conjunction":
            structure = f"AND({', '.join(leaves)})"
        case "Kleene":
            structure = f"SEQ({', '.join([*leaves[:-1], f'KL({leaves[-1]}, 1, 2)'])})"
        case "disjunction":
            parts = [slice(start, start + size) for start in range(0, 3 * size, size)]
            sequences = [f"SEQ({', '.join(leaves[part])})" for part in parts]
            structure = f"OR({', '.join(sequences)})"
            rising = [names[part] for part in parts]
        case _:
            structure = f"SEQ({', '.join(leaves)})"
    pairs = [pair for chain in rising for pair in pairwise(chain)]
    conditions = " AND ".join(f"{x}.{a} < {y}.{a}" for x, y in pairs for a in attributes)
    return f"PATTERN {structure} WHERE {conditions}"


# --- measuring


def first_estimates(case: Case) -> Any:
    """What is known after four windows: the plan that all methods start with is made of it.

    Until then there is the plan of a sample; one that knows nothing could take minutes for a batch.
    """
    some = case.events.slice(0, min(4 * case.window, case.events.num_rows // 4))
    engine, _ = prepare(case.pattern, some, planner=case.planner)
    session = engine.open()
    for start in range(0, some.num_rows, BATCH):
        batch = some.slice(start, BATCH)
        session.push(batch, watermark=batch["ts"][-1])
    return session.estimates()


@dataclass
class Run:
    """A method on its way through a case."""

    session: cepheid.Session
    seconds: list[float] = field(default_factory=list)  # after each batch
    matches: int = 0

    def push(self, batch: pa.Table, looks: bool = False) -> bool:
        """``looks``: at the statistics after it, whatever it thinks. Whether it did."""
        checks = self.checks
        started = time.process_time()  # the engine has one thread, and the machine may have other things to do
        self.matches += self.session.push(batch, watermark=batch["ts"][-1]).num_rows
        if looks:
            self.session.look()
        self.seconds.append((self.seconds or [0.0])[-1] + time.process_time() - started)
        return self.checks > checks

    @property
    def checks(self) -> int:
        follower = self.session._follower  # a report takes longer than many a push
        return 0 if follower is None else follower.checks

    def figures(self) -> dict[str, float]:
        self.matches += self.session.close().num_rows
        report = self.session.report()
        found = report.get("adaptation", {"changed": 0, "overhead": 0.0, "seconds": {"estimating": 0.0, "all": 1.0}})
        spent = found["seconds"]
        return {
            "changes": found["changed"],
            "overhead %": 100 * found["overhead"],
            "estimating %": 100 * spent["estimating"] / max(spent["all"], 1e-9),
            "candidates": report["candidates"],
            "matches": self.matches,
        }


def measure(
    case: Case, methods: Mapping[str, Policy | None], estimates: Any, limit: float = LIMIT, first: int = 0
) -> dict[str, tuple[dict[str, float], list[float]]]:
    """Of each method the figures of a run, and the seconds after each batch, until the leader runs out of time.

    They take turns with each batch, so that it is the same for all when the machine is slow for a while. ``first``: who
    begins. Where nearly all work is in one batch, it matters who has it when.
    """
    pattern = cepheid.parse(case.pattern)
    options = {"planner": case.planner, "estimates": estimates}
    runs = {
        name: Run(cepheid.Engine([pattern], adapt=policy, check_every=NEVER if policy else None, **options).open())
        for name, policy in methods.items()
    }
    leader = None
    if any(methods.values()):
        leader = Run(cepheid.Engine([pattern], adapt=DEFAULT, **options).open())
    turns = [*runs.values()][first:] + [*runs.values()][:first]
    for start in range(0, case.events.num_rows, BATCH):
        batch = case.events.slice(start, BATCH)
        looks = leader is not None and leader.push(batch)
        for run in turns:
            run.push(batch, looks)
        turns = [run for run in (*turns[1:], *turns[:1]) if run.seconds[-1] <= limit]
        if leader.seconds[-1] > limit if leader is not None else not turns:
            break
    return {name: (run.figures(), run.seconds) for name, run in runs.items()}


def compare(
    stream: str, cases: Sequence[Case], methods: Mapping[str, Policy | None], repeats: int, progress: Steps
) -> Result:
    """Every method on every case; the median of the repeats counts."""
    rows: list[dict[str, Any]] = []
    for case in progress(cases):
        estimates = first_estimates(case)
        gc.collect()
        gc.freeze()  # to go through all objects of the libraries takes a tenth of a second, whoever's turn it is
        runs: dict[str, list[tuple[dict[str, float], list[float]]]] = {name: [] for name in methods}
        for repeat in range(repeats):
            for name, found in measure(case, methods, estimates, first=repeat * len(methods) // repeats).items():
                runs[name].append(found)
        whole = -(-case.events.num_rows // BATCH)
        all_matches = {f["matches"] for mine in runs.values() for f, seconds in mine if len(seconds) == whole}
        assert len(all_matches) <= 1, "a plan never changes the result"
        middle = {}
        rates = _rates({name: [seconds for _, seconds in mine] for name, mine in runs.items()})
        for name, mine in runs.items():
            middle[name] = {key: statistics.median(figures[key] for figures, _ in mine) for key in mine[0][0]}
            events = min(BATCH * min(len(seconds) for _, seconds in mine), case.events.num_rows)
            middle[name] |= {"events": events, "events/s": statistics.median(rates[name])}
            middle[name]["seconds"] = statistics.median(seconds[-1] for _, seconds in mine)
        for name, figures in middle.items():
            gain = figures["events/s"] / middle[STATIC]["events/s"] if STATIC in middle else None
            rows.append(
                {"patterns": case.patterns, "no.": case.seed + 1, "size": case.size, "planner": case.planner}
                | {"method": name}
                | {**figures, "gain over static": gain}
            )
    kind = "real events" if is_real(stream) else f"made-up events: there is no {stream} in the folder of CEPHEID_DATA"
    return Result(rows, [kind, NOTE, *_summary(rows)])


def _rates(runs: Mapping[str, list[list[float]]]) -> dict[str, list[float]]:
    """Events a second of each method in each repeat, given the seconds after each batch.

    That of the method which got furthest, and of the others so many times less as they took longer for the events that
    they got to.
    """
    found: dict[str, list[float]] = {name: [] for name in runs}
    for together in zip(*runs.values(), strict=True):
        first = max(together, key=lambda seconds: (len(seconds), -seconds[-1]))
        rate = BATCH * len(first) / first[-1]
        for name, seconds in zip(runs, together, strict=True):
            found[name].append(rate * first[len(seconds) - 1] / seconds[-1])
    return found


def mean(result: Result, column: str, **wanted: Any) -> float:
    """The geometric mean over pattern sets, for figures that differ by orders of magnitude; else the mean."""
    values = [float(row[column] or 0) for row in result.where(**wanted)]
    if column in ("events/s", "gain over static"):
        return float(np.exp(np.mean(np.log(values)))) if values else 0.0
    return float(np.mean(values)) if values else 0.0


def _summary(rows: list[dict[str, Any]]) -> list[str]:
    """Throughput by planner and size; and overhead as part of all the time: of a run of half a second, one look is a
    large part."""
    found = []
    for planner in PLANNERS:
        mine = [row for row in rows if row["planner"] == planner]
        spent = {m: [row for row in mine if row["method"] == m] for m in dict.fromkeys(row["method"] for row in mine)}
        parts = {
            m: sum(row["overhead %"] * row["seconds"] for row in some) / sum(row["seconds"] for row in some)
            for m, some in spent.items()
        }
        overheads = ", ".join(f"{m} {part:.2f} %" for m, part in parts.items() if part)
        found.append(f"{planner}, overhead of all the time: {overheads}")
        for large in (False, True):
            some = [row for row in mine if (row["size"] >= 6) == large]
            if not some:
                continue
            part = Result(some)
            means = {m: mean(part, "events/s", method=m) for m in spent}
            best = ", ".join(f"{m} {v:,.0f}" for m, v in sorted(means.items(), key=lambda item: -item[1]))
            found.append(f"{planner}, size {'6 and more' if large else 'below 6'}, events/s: {best}")
    return found


def plot_methods(result: Result, figure: Figure) -> None:
    """Figures 6 and 7: a row for each planner; throughput, gain, changes and overhead against the size."""
    from matplotlib import colormaps

    figure.set_size_inches(16, 8)
    panels = figure.subplots(len(PLANNERS), 4, squeeze=False)
    methods = list(dict.fromkeys(str(row["method"]) for row in result.rows))
    colours = colormaps["tab10" if len(methods) <= 10 else "tab20"]
    sizes = sorted({int(row["size"] or 0) for row in result.rows})
    for line, planner in zip(panels, PLANNERS, strict=True):
        for axes, column in zip(line, ("events/s", "gain over static", "changes", "overhead %"), strict=True):
            for place, method in enumerate(methods):
                values = [mean(result, column, planner=planner, method=method, size=size) for size in sizes]
                style = {"color": "black", "ls": "--"} if method == STATIC else {"color": colours(place)}
                axes.plot(sizes, values, marker="osv^DPX*h+<>"[place % 12], label=method, lw=1.5, ms=5, **style)
            axes.set(xlabel="size of the pattern", title=f"{planner}: {column}")
            axes.set_xticks(sizes)
            if column in ("events/s", "gain over static"):
                axes.set_yscale("log")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
