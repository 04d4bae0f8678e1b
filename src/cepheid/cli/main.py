"""``cepheid``: the commands, thin shells around the library."""

from __future__ import annotations

import importlib
import platform
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, NoReturn

import pyarrow as pa
import typer
from rich.console import Console

from cepheid.cli.files import FileError, read_patterns, read_schema, read_table
from cepheid.cli.following import Adapt, CheckEvery, Migrate, following
from cepheid.language.pattern import Pattern
from cepheid.language.problems import CepheidError, PatternError, told
from cepheid.pattern.check import check as check_patterns
from cepheid.pattern.normalise import normalise
from cepheid.pattern.read import parse_all, read_all

app = typer.Typer(
    help="Find complex event patterns in streams and tables of events.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,  # there may be secrets among them
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def main() -> None:
    app()


def fail(message: str) -> NoReturn:
    """Say what is wrong and stop, as with a mistake in the command's own options."""
    err.print("[red]error:[/red]", end=" ")
    err.print(message, markup=False)
    raise typer.Exit(2)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    for package in ("cepheid", "numpy", "pyarrow", "numba", "pyspark"):
        try:
            found = version(package)
        except PackageNotFoundError:
            found = "not installed (pip install 'cepheid\\[spark]')" if package == "pyspark" else "not installed"
        out.print(f"{package} {found}")
    out.print(f"python {platform.python_version()}")
    raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the versions and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def check(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files with patterns; - reads standard input.", metavar="FILE", show_default=False),
    ],
    events: Annotated[
        Path | None,
        typer.Option(
            "--events", "-e", help="Also check against the columns of these events (Parquet, Arrow, CSV, JSON lines)."
        ),
    ] = None,
    time: Annotated[str, typer.Option(help="The column with an event's time.")] = "ts",
    type_: Annotated[
        str, typer.Option("--type", help="The column with an event's type; an empty one says that there is none.")
    ] = "type",
    tie_breaker: Annotated[str | None, typer.Option(help="The column that orders events of the same time.")] = None,
    modules: Annotated[
        list[str] | None, typer.Option("--import", help="A Python module that registers functions; may be repeated.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Report problems only.")] = False,
) -> None:
    """Check patterns: report every mistake, or show what each pattern means.

    The exit code is 0 if all patterns can be run, 1 if one of them cannot, 2 if a file cannot be read.
    """
    for module in modules or []:
        _import(module)
    wrong = patterns = 0
    with _failing_plainly():
        schema = None if events is None else read_schema(events)
        for file in files:
            text, name = read_patterns(file)
            try:
                found = parse_all(text, name=name)
                check_patterns(found, schema, time=time, type=type_ or None, tie_breaker=tie_breaker)
            except PatternError as error:
                wrong += len(error.problems)
                err.print(f"{error}\n", markup=False)
                continue
            patterns += len(found)
            for pattern in found:
                _describe(pattern, name, quiet)
    if wrong:
        err.print(f"{wrong} problem{'s' if wrong > 1 else ''} found")
        raise typer.Exit(1)
    if not quiet:
        out.print(f"{patterns} pattern{'s' if patterns > 1 else ''} can be run")


@app.command()
def match(
    events: Annotated[Path, typer.Argument(help="The events: Parquet, Arrow, CSV or JSON lines.", show_default=False)],
    patterns: Annotated[
        list[Path], typer.Option("--patterns", "-p", help="Files with patterns; - reads standard input.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write all matches to this file (.parquet, .jsonl, .csv).", show_default=False
        ),
    ] = None,
    time: Annotated[str, typer.Option(help="The column with an event's time.")] = "ts",
    type_: Annotated[
        str, typer.Option("--type", help="The column with an event's type; an empty one says that there is none.")
    ] = "type",
    tie_breaker: Annotated[str | None, typer.Option(help="The column that orders events of the same time.")] = None,
    planner: Annotated[str, typer.Option(help="How the plan is found.")] = "auto",
    adapt: Adapt = None,
    check_every: CheckEvery = None,
    migrate: Migrate = None,
    show: Annotated[int, typer.Option(help="How many matches of each pattern to show.", min=0)] = 10,
    modules: Annotated[
        list[str] | None, typer.Option("--import", help="A Python module that registers functions; may be repeated.")
    ] = None,
) -> None:
    """Find the matches of patterns in a file of events."""
    from cepheid.cli.matching import run_match

    for module in modules or []:
        _import(module)
    with _failing_plainly():
        found: list[Pattern] = []
        for file in patterns:
            text, name = read_patterns(file)
            found += read_all(text, name=name)
        columns = {"time": time, "type": type_ or None, "tie_breaker": tie_breaker}
        options = {"planner": planner, **following(adapt, check_every, migrate)}
        run_match(found, read_table(events), columns, options, output, show, out, err)


PatternFiles = Annotated[
    list[Path], typer.Option("--patterns", "-p", help="Files with patterns; - reads standard input.")
]
TimeColumn = Annotated[str, typer.Option("--time", help="The column with an event's time.")]
TypeColumn = Annotated[
    str, typer.Option("--type", help="The column with an event's type; an empty one says that there is none.")
]
TieBreaker = Annotated[
    str | None, typer.Option("--tie-breaker", help="The column that orders events of the same time.")
]
Modules = Annotated[
    list[str] | None, typer.Option("--import", help="A Python module that registers functions; may be repeated.")
]


@app.command()
def explain(
    patterns: PatternFiles,
    events: Annotated[
        Path | None,
        typer.Argument(help="Events to run the plans on: Parquet, Arrow, CSV or JSON lines.", show_default=False),
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw the plans to this file (SVG).", show_default=False)] = None,
    timeline: Annotated[
        Path | None,
        typer.Option(
            help="Let plans follow the data, and draw rates, plans and throughput over time to this file (PNG, SVG).",
            show_default=False,
        ),
    ] = None,
    planner: Annotated[str, typer.Option(help="How the plan is found.")] = "auto",
    adapt: Adapt = None,
    check_every: CheckEvery = None,
    migrate: Migrate = None,
    share: Annotated[
        str | None,
        typer.Option(help="How patterns share work: none, maximal, reorder, prefix; a search, if not said."),
    ] = None,
    time: TimeColumn = "ts",
    type_: TypeColumn = "type",
    tie_breaker: TieBreaker = None,
    modules: Modules = None,
) -> None:
    """Show the plan of each pattern; with events, also what came of it: expected and real numbers, step by step."""
    from cepheid.cli.explaining import run_explain, run_timeline

    for module in modules or []:
        _import(module)
    with _failing_plainly():
        columns = {"time": time, "type": type_ or None, "tie_breaker": tie_breaker}
        table = None if events is None else read_table(events)
        if timeline is not None:
            if table is None:
                fail("--timeline needs events: cepheid explain -p PATTERNS EVENTS --timeline FILE")
            follow = following(adapt or "true", check_every, migrate)
            run_timeline(_read_all(patterns), table, columns, planner, share, follow, timeline, out)
        elif adapt or check_every or migrate:
            fail("--adapt, --check-every and --migrate are for --timeline: a plan that is shown is the first one")
        if timeline is None or svg is not None:
            run_explain(_read_all(patterns), table, columns, planner, share, svg, out)


@app.command()
def why(
    events: Annotated[Path, typer.Argument(help="The events: Parquet, Arrow, CSV or JSON lines.", show_default=False)],
    patterns: PatternFiles,
    time: TimeColumn = "ts",
    type_: TypeColumn = "type",
    tie_breaker: TieBreaker = None,
    modules: Modules = None,
) -> None:
    """Say why patterns find nothing: where the events dry up, and what would help."""
    from cepheid.cli.explaining import run_why

    for module in modules or []:
        _import(module)
    with _failing_plainly():
        columns = {"time": time, "type": type_ or None, "tie_breaker": tie_breaker}
        run_why(_read_all(patterns), read_table(events), columns, out)


@app.command()
def stream(
    source: Annotated[
        str,
        typer.Argument(
            help="A file of events (Parquet, Arrow, CSV, JSON lines), - for JSON lines on standard input, or "
            "tcp://HOST:PORT, listen://HOST:PORT, kafka://SERVERS/TOPIC.",
            show_default=False,
        ),
    ],
    patterns: PatternFiles,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            show_default=False,
            help="Where matches go: a .jsonl file, a folder (Parquet), - for standard output, kafka://SERVERS/TOPIC.",
        ),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Events of the file a second.", show_default=False)] = None,
    speed: Annotated[
        float | None, typer.Option(help="How many times as fast as its own time stamps.", show_default=False)
    ] = None,
    lateness: Annotated[
        str, typer.Option(help="How much older than the newest an event may be, such as '10 seconds'.")
    ] = "0",
    shed: Annotated[
        str | None,
        typer.Option(help="What to drop under overload: hspice, espice, pspice, sampling, cost.", show_default=False),
    ] = None,
    latency_bound: Annotated[
        str | None,
        typer.Option(help="With --shed: no event is to take longer; 1 second, if not said.", show_default=False),
    ] = None,
    safety: Annotated[
        float | None,
        typer.Option(help="Drop when events wait for this part of the bound; 0.8, if not said.", show_default=False),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--weight", help="What a match of a pattern is worth: fraud=10; may be repeated.", show_default=False
        ),
    ] = None,
    queue_size: Annotated[
        int | None, typer.Option(help="Events that may wait before the source has to.", show_default=False)
    ] = None,
    run_for: Annotated[
        str | None, typer.Option("--for", help="Stop after so long, such as '1 minute'.", show_default=False)
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(help="The columns of JSON lines: 'ts timestamp, type string, x double'.", show_default=False),
    ] = None,
    on_bad_line: Annotated[
        str, typer.Option(help="Whether a line of JSON that is no event ends the stream: fail, skip.")
    ] = "fail",
    earliest: Annotated[bool, typer.Option("--earliest", help="Read a topic of Kafka from its beginning.")] = False,
    metrics: Annotated[
        Path | None, typer.Option(help="Write what each second was like (.csv, .parquet).", show_default=False)
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the run to this file (PNG, SVG).", show_default=False)] = None,
    time: TimeColumn = "ts",
    type_: TypeColumn = "type",
    tie_breaker: TieBreaker = None,
    planner: Annotated[str, typer.Option(help="How the plan is found.")] = "auto",
    adapt: Adapt = None,
    check_every: CheckEvery = None,
    migrate: Migrate = None,
    modules: Modules = None,
) -> None:
    """Find patterns in a stream on this machine, as events come; Ctrl-C stops it cleanly.

    A file comes as fast as it is matched, or with --rate or --speed as fast as is said.
    """
    from cepheid.cli.stream_options import lateness_from, source_from, strategy_from
    from cepheid.cli.streaming import run_stream
    from cepheid.local.stream.queue import size_of
    from cepheid.local.stream.watermark import seconds_of

    for module in modules or []:
        _import(module)
    with _failing_plainly():
        try:
            columns = {"time": time, "type": type_ or None, "tie_breaker": tie_breaker}
            start = source_from(source, rate, speed, schema, earliest, on_bad_line)
            options = {
                "planner": planner,
                **following(adapt, check_every, migrate),
                "allowed_lateness": lateness_from(lateness),
                "run_for": None if run_for is None else seconds_of(run_for, "--for"),
                "shed": strategy_from(shed, latency_bound, safety, weights, start),
                "queue_size": None if queue_size is None else size_of(queue_size, shed, "--queue-size", "--shed"),
            }
            run_stream(_read_all(patterns), start, output, columns, options, metrics, plot, out, err)
        except ModuleNotFoundError as error:
            fail(str(error))
        except KeyboardInterrupt:
            err.print("stopped before the end: not all matches were written")
            raise typer.Exit(130) from None


@app.command()
def run(
    job: Annotated[Path, typer.Argument(help="The job: a YAML file.", metavar="JOB", show_default=False)],
    report: Annotated[
        Path | None,
        typer.Option(help="Write a page with the outcome to this file.", metavar="HTML", show_default=False),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan too, with what came of it in a sample.")] = False,
    show: Annotated[int, typer.Option(help="How many matches to show.", min=0)] = 20,
    only_check: Annotated[bool, typer.Option("--check", help="Only say what is wrong with the job.")] = False,
) -> None:
    """Run a job on Spark, batch or stream: a file says where events come from and where matches go.

    Ctrl-C stops a stream cleanly. The exit code is 1 if the job or its patterns cannot be run, 2 if a run failed.
    """
    try:
        from cepheid.cli.running import check_job, run_description
        from cepheid.job import JobError
    except ModuleNotFoundError as error:
        fail(str(error))
    with _failing_plainly():
        try:
            if only_check:
                check_job(job, out)
            else:
                run_description(job, report, plan, show, out, err)
        except JobError as error:
            err.print(f"{error}\n\n{error.count} problem{'s' if error.count > 1 else ''} found", markup=False)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            err.print("stopped before the end: not all matches were written")
            raise typer.Exit(130) from None


@app.command()
def monitor(
    file: Annotated[Path, typer.Argument(help="What nodes observe: CSV, Parquet, Arrow.", show_default=False)],
    epsilon: Annotated[
        float | None, typer.Option(help="How far the model in force may be from the present one.", show_default=False)
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Watch the average of readings instead: time, sensor, velocity, vehicles.", show_default=False
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="How many observations of each node count; all, if not said.", show_default=False)
    ] = None,
    node: Annotated[str, typer.Option(help="The column that says which node it is.")] = "node",
    response: Annotated[str, typer.Option(help="The column that is predicted.")] = "y",
    features: Annotated[
        str | None,
        typer.Option(help="The columns to predict from: a,b,c. If not said, all others.", show_default=False),
    ] = None,
    time: TimeColumn = "ts",
    intercept: Annotated[bool, typer.Option("--intercept", help="The model has a constant too.")] = False,
    ridge: Annotated[float, typer.Option(help="A penalty on large coefficients.", min=0)] = 0.0,
    ar1: Annotated[
        float | None, typer.Option(help="The autocorrelation of each node's errors.", show_default=False)
    ] = None,
    zone: Annotated[str, typer.Option(help="residual or paper.")] = "residual",
    resolution: Annotated[str, typer.Option(help="pool, balance or poll.")] = "pool",
    plot: Annotated[Path | None, typer.Option(help="Draw the run to this PNG file.", show_default=False)] = None,
) -> None:
    """Watch a regression model over many nodes with few messages, as if the file came as streams.

    With --threshold instead of --epsilon: on which side of it the average of all sensors is.
    """
    from cepheid.cli.monitoring import Watched, run_average, run_model

    with _failing_plainly():
        if (epsilon is None) == (threshold is None):
            fail("say either --epsilon, for a regression model, or --threshold, for an average")
        if threshold is not None:
            run_average(file, threshold, plot, out, err)
            return
        assert epsilon is not None
        names = None if features is None else [name.strip() for name in features.split(",")]
        watched = Watched(read_table(file), node, response, names, time, intercept)
        run_model(watched, plot, out, err, epsilon, window, ridge, ar1, zone, resolution)


@app.command()
def bench(
    name: Annotated[
        str | None, typer.Argument(help="Which benchmark; without a name, all are listed.", show_default=False)
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Write NAME.csv and NAME.png into this folder.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: to see that it runs, not to quote.")] = False,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="The folder with the benchmarks, if not the repository's.", show_default=False),
    ] = None,
) -> None:
    """Measure: each benchmark answers one question with a table, a CSV file and a plot."""
    from cepheid.cli.bench import BenchError, find, find_folder, run_benchmark, show_benchmarks

    try:
        benchmarks = source or find_folder()
        if name is None:
            show_benchmarks(benchmarks, out)
        else:
            run_benchmark(find(name, benchmarks), quick, folder, out, err)
    except BenchError as error:
        fail(str(error))


def _describe(pattern: Pattern, file: str, quiet: bool) -> None:
    normal = normalise(pattern)
    if not quiet:
        out.print(f"{normal}\n", markup=False)
    for place, branch in enumerate(normal.branches, start=1):
        if branch.never:
            which = f" (branch {place})" if len(normal.branches) > 1 else ""
            err.print("[yellow]warning:[/yellow]", end=" ")
            err.print(f"{file}: {normal.name}{which} never matches: {branch.never}", markup=False)


def _read_all(files: list[Path]) -> list[Pattern]:
    return [pattern for file in files for text, name in [read_patterns(file)] for pattern in read_all(text, name=name)]


def _import(module: str) -> None:
    """The current folder comes first, as it does for ``python -m``."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        fail(f"--import {module}: {told(error, Path())}")


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    err.print("[yellow]warning:[/yellow]", end=" ")
    err.print(str(message), markup=False)


@contextmanager
def _failing_plainly() -> Iterator[None]:
    """What is wrong with a file is one line, not a traceback; and a warning is one, without its place in the code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            yield
    except typer.Exit:  # it is a RuntimeError, and has said what there is to say
        raise
    except PatternError as error:
        err.print(f"{error}\n", markup=False)
        raise typer.Exit(1) from None
    except (FileError, CepheidError, ValueError, OSError, RuntimeError, pa.ArrowException) as error:
        fail(str(error))
