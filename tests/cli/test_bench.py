"""``cepheid bench``, as a user runs it, with a benchmark that measures nothing."""

from __future__ import annotations

import csv
import importlib.util
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cepheid.cli import bench
from cepheid.cli.main import app

BENCHMARK = '''
"""How long is a piece of string?

It depends.
"""
from benchmarks._ruler import LENGTH
from cepheid.cli.bench import Result

def run(quick, progress):
    lengths = [LENGTH * place for place in progress(range(2 if quick else 4))]
    return Result([{"piece": f"p{i}", "length": x, "long": x > 5} for i, x in enumerate(lengths)], ["measured [once]"])

def plot(result, figure):
    figure.subplots().plot([row["length"] for row in result.rows])
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "benchmarks"
    made.mkdir()
    (made / "__init__.py").touch()
    (made / "_ruler.py").write_text("LENGTH = 2.5", encoding="utf-8")
    (made / "string_length.py").write_text(BENCHMARK, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("benchmarks", "benchmarks._ruler", "benchmarks.string_length"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return made


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", *(str(a) for a in arguments)])


def test_without_a_name_lists_the_questions(folder: Path) -> None:
    result = run("--from", folder)
    assert result.exit_code == 0, result.output
    assert "string-length  How long is a piece of string?" in result.stdout
    assert "ruler" not in result.stdout
    assert "depends" not in result.stdout


def test_the_repository_has_benchmarks() -> None:
    found = bench.benchmarks_in(bench.find_folder())
    assert "speed" in found
    assert all(benchmark.question.endswith("?") for benchmark in found.values())


def test_a_table_a_csv_and_a_plot(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "results"
    result = run("string-length", "--from", folder, "--out", out)
    assert result.exit_code == 0, result.output
    assert "How long is a piece of string?" in result.stdout
    assert "measured [once]" in result.stdout
    assert "Python" in result.stdout
    assert result.stderr.splitlines() == ["1 of 4: 0", "2 of 4: 1", "3 of 4: 2", "4 of 4: 3"]
    lines = (out / "string-length.csv").read_text(encoding="utf-8").splitlines()
    said = [line for line in lines if line.startswith("#")]
    assert said[:2] == ["# How long is a piece of string?", "# command: cepheid bench string-length"]
    assert said[2].startswith("# machine: ")
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [row["length"] for row in rows] == ["0.0", "2.5", "5.0", "7.5"]
    assert (out / "string-length.png").read_bytes().startswith(b"\x89PNG")


def test_a_wide_table_is_whole_where_there_is_no_terminal(folder: Path) -> None:
    """As in a log: a terminal's 80 characters would leave nothing of its words."""
    columns = [f"the column with number {place}" for place in range(12)]
    text = BENCHMARK.replace("Result([{", f"Result([dict.fromkeys({columns}, 1234567.0) | {{")
    (folder / "string_length.py").write_text(text, encoding="utf-8")
    result = run("string-length", "--from", folder)
    assert result.exit_code == 0, result.output
    assert all(column in result.stdout for column in columns)
    assert result.stdout.count("1,234,567") == 4 * len(columns)


def test_quick_and_underscores(folder: Path) -> None:
    result = run("string_length", "--from", folder, "--quick")
    assert result.exit_code == 0, result.output
    assert "p1" in result.stdout
    assert "p2" not in result.stdout
    assert "cepheid bench string-length --quick" in result.stdout


def test_an_unknown_name(folder: Path) -> None:
    result = run("string-lenght", "--from", folder)
    assert result.exit_code == 2
    assert "there is no benchmark 'string-lenght'" in result.stderr
    assert "did you mean 'string-length'?" in result.stderr


def test_a_file_that_is_no_benchmark(folder: Path) -> None:
    (folder / "half.py").write_text("def run(quick, progress): ...", encoding="utf-8")
    result = run("half", "--from", folder)
    assert result.exit_code == 2
    assert "has no function plot" in result.stderr


def test_no_benchmarks_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "a" / "b" / "c" / "bench.py"))
    result = run()
    assert result.exit_code == 2
    assert "Clone Cepheid's repository" in result.stderr


def test_an_install_hint_where_matplotlib_is_missing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    result = run("string-length", "--from", folder, "--out", tmp_path)
    assert result.exit_code == 2
    assert "pip install '.[plot]'" in result.stderr
    assert not (tmp_path / "string-length.csv").exists()
    assert run("string-length", "--from", folder).exit_code == 0
