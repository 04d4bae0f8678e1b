"""``cepheid bench``: runs a benchmark, shows a table, writes a CSV and a plot.

A benchmark is a file of the repository's folder ``benchmarks``. The first line of its docstring is the question that it
answers. It has a function ``run(quick, progress)`` that gives a :class:`Result`, and ``plot(result, figure)``, which
draws it on a matplotlib figure. Files whose name starts with ``_`` are parts that several benchmarks use.
"""

from __future__ import annotations

import ast
import csv
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeAlias, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cepheid.language.problems import CepheidError, closest

T = TypeVar("T")
Value: TypeAlias = str | int | float | bool | None

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's: told apart by people who are colour-blind too."""
WIDE = 400
"""Characters of a line where there is no terminal."""


class BenchError(CepheidError):
    """A benchmark that cannot be run."""


@dataclass(frozen=True)
class Result:
    """What a benchmark measured: rows with the same columns, and what a reader should know about them."""

    rows: Sequence[Mapping[str, Value]]
    notes: Sequence[str] = field(default_factory=tuple)

    def where(self, **wanted: Value) -> list[Mapping[str, Value]]:
        """The rows with these values.

        >>> Result([{"plan": "eager", "f": 1}, {"plan": "tree", "f": 1}]).where(plan="tree")
        [{'plan': 'tree', 'f': 1}]
        """
        return [row for row in self.rows if all(row[name] == value for name, value in wanted.items())]


class Steps(Protocol):
    """``for case in progress(cases)`` moves the bar on after each case; its text is shown."""

    def __call__(self, steps: Sequence[T], describe: Callable[[T], str] = str) -> Iterator[T]: ...


@dataclass(frozen=True)
class Benchmark:
    name: str
    question: str
    path: Path


def benchmarks_in(folder: Path) -> dict[str, Benchmark]:
    """All benchmarks of a folder, by name; none of them is run for this."""
    found = {}
    for path in sorted(folder.glob("[!_]*.py")):
        name = path.stem.replace("_", "-")
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[name] = Benchmark(name, text.partition("\n")[0], path)
    return found


def find_folder() -> Path:
    """Beside the source tree, as in a clone of the repository, or in the current folder."""
    places = (Path(__file__).parents[3] / "benchmarks", Path("benchmarks"))
    for place in places:
        if place.is_dir():
            return place
    raise BenchError(
        "there are no benchmarks here: they are not part of the installed package. Clone Cepheid's repository and run "
        "this in its folder, or name the folder that they are in with --from. "
        f"Looked in: {', '.join(str(place) for place in places)}"
    )


def find(name: str, folder: Path) -> Benchmark:
    known = benchmarks_in(folder)
    wanted = name.replace("_", "-")
    if wanted not in known:
        hint = closest(wanted, known)
        raise BenchError(
            f"there is no benchmark {name!r} in {folder}; there are: {', '.join(known) or 'none'}."
            + (f" Hint: {hint}" if hint else "")
        )
    return known[wanted]


def show_benchmarks(folder: Path, out: Console) -> None:
    table = Table("benchmark", "the question it answers", box=None, pad_edge=False)
    for benchmark in benchmarks_in(folder).values():
        table.add_row(benchmark.name, benchmark.question)
    out.print(table, markup=False)


def run_benchmark(benchmark: Benchmark, quick: bool, folder: Path | None, out: Console, err: Console) -> Result:
    """``folder``: where to write the CSV and the plot; nowhere, if not said."""
    if folder is not None:
        _require_matplotlib()
        folder.mkdir(parents=True, exist_ok=True)
    module = _load(benchmark)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=err, transient=True, disable=not err.is_terminal,
    )  # fmt: skip
    with bar:
        result: Result = module.run(quick, _Bar(bar))
    command = f"cepheid bench {benchmark.name}{' --quick' if quick else ''}"
    _show(benchmark, result, command, out)
    if folder is not None:
        written = [folder / f"{benchmark.name}.csv", folder / f"{benchmark.name}.png"]
        _write_csv(written[0], benchmark, result, command)
        _write_plot(written[1], benchmark, result, command, module)
        out.print(f"written to {' and '.join(map(str, written))}", markup=False)
    return result


def machine() -> str:
    """The processor, its cores, the system and the Python, in a line."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass  # not on Linux, or a processor without a name
    cores = os.cpu_count() or 1
    return f"{model}, {cores} core{'s' if cores > 1 else ''}, {platform.system()}, Python {platform.python_version()}"


def _load(benchmark: Benchmark) -> ModuleType:
    """Benchmarks import what they share as ``benchmarks._something``."""
    root = str(benchmark.path.parent.resolve().parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    name = f"benchmarks.{benchmark.path.stem}"
    spec = importlib.util.spec_from_file_location(name, benchmark.path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    missing = [wanted for wanted in ("run", "plot") if not hasattr(module, wanted)]
    if missing:
        raise BenchError(f"{benchmark.path} is no benchmark: it has no function {' and no function '.join(missing)}")
    return module


class _Bar:
    """Steps on a terminal; a line for each, if it is none: some benchmarks take hours."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, steps: Sequence[T], describe: Callable[[T], str] = str) -> Iterator[T]:
        task = self._progress.add_task("", total=len(steps))
        for place, step in enumerate(steps, 1):
            self._progress.update(task, description=describe(step))
            if self._progress.disable:
                said = f"{place} of {len(steps)}: {describe(step)}"
                self._progress.console.print(said, markup=False, highlight=False)
            yield step
            self._progress.advance(task)


def _show(benchmark: Benchmark, result: Result, command: str, out: Console) -> None:
    table = Table(title=benchmark.question, caption=f"{command}\n{machine()}")
    columns = list(result.rows[0]) if result.rows else []
    for column in columns:
        numbers = all(not isinstance(row[column], str) for row in result.rows)
        table.add_column(column, justify="right" if numbers else "left")
    for row in result.rows:
        table.add_row(*(_text(row[column]) for column in columns))
    (out if out.is_terminal else Console(file=out.file, width=WIDE, soft_wrap=True)).print(table, markup=False)
    for note in result.notes:
        out.print(note, markup=False)


def _text(value: Value) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return value


def _write_csv(path: Path, benchmark: Benchmark, result: Result, command: str) -> None:
    """What it is stands above the columns, in lines that start with #."""
    with path.open("w", newline="", encoding="utf-8") as file:
        for line in (benchmark.question, f"command: {command}", f"machine: {machine()}", *result.notes):
            file.write(f"# {line}\n")
        columns = list(result.rows[0]) if result.rows else []
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(result.rows)


def _write_plot(path: Path, benchmark: Benchmark, result: Result, command: str, module: ModuleType) -> None:
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "axes.prop_cycle": cycler(color=COLOURS),
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "grid.alpha": 0.3,
        "legend.frameon": False,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(9, 5.5), layout="constrained")
        figure.suptitle(benchmark.question, fontweight="bold", wrap=True)
        figure.supxlabel(f"{command}\n{machine()}", fontsize=7, color="0.4")
        module.plot(result, figure)
        figure.savefig(path, dpi=150)


def _require_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise BenchError(
            "plots need matplotlib, which is not installed. Install it with: pip install '.[plot]', in a clone of "
            "Cepheid, or run without --out, which only prints the table"
        )
