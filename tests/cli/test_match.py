"""``cepheid match``, as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from cepheid.cli.main import app
from cepheid.cli.matching import WRITERS


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    patterns = tmp_path / "rules.cep"
    patterns.write_text("NAME up PATTERN SEQ(A a, KL(B b)) WHERE b.x > a.x WITHIN 5", encoding="utf-8")
    events = tmp_path / "events.parquet"
    table = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [1, 5, 7]})
    pa.parquet.write_table(table, events)
    return patterns, events


def run(*arguments: object, input: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], input=input)


def test_matches_are_shown_and_written(files: tuple[Path, Path], tmp_path: Path) -> None:
    patterns, events = files
    output = tmp_path / "matches.parquet"
    result = run("match", "-p", patterns, events, "-o", output)
    assert result.exit_code == 0, result.output
    assert "3 matches in 3 events" in result.stdout
    assert "2 B 5 … 1 more" in result.stdout
    written = pa.parquet.read_table(output)
    assert written.num_rows == 3
    assert written.column_names == ["pattern", "start", "end", "a", "b"]


@pytest.mark.parametrize(
    ("ending", "first"),
    [
        ("jsonl", '{"pattern": "up", "start": 1, "end": 2, "a": {"ts": 1, "type": "A", "x": 1}, "b": [{"ts": 2, "type": "B", "x": 5}]}'),
        ("csv", '"up",1,2,"{""ts"": 1, ""type"": ""A"", ""x"": 1}","[{""ts"": 2, ""type"": ""B"", ""x"": 5}]"'),
    ],
)  # fmt: skip
def test_the_ending_says_how_matches_are_written(
    files: tuple[Path, Path], tmp_path: Path, ending: str, first: str
) -> None:
    output = tmp_path / f"matches.{ending}"
    assert run("match", "-p", files[0], files[1], "-o", output).exit_code == 0
    lines = output.read_text(encoding="utf-8").splitlines()
    assert first in lines
    assert len(lines) == 3 + (ending == "csv")


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([b"\xff\x00"]), "ff00"),
        (pa.array([b"\xff\x00"], pa.binary(2)), "ff00"),
        (pa.array([b"\xff\x00"], pa.binary_view()), "ff00"),
        (pa.array(["up"], pa.string_view()), "up"),
        (pa.array([pa.MonthDayNano([1, 2, 3])]), "[1, 2, 3]"),
    ],
)
def test_types_that_arrow_writes_to_no_csv(tmp_path: Path, column: pa.Array, text: str) -> None:
    WRITERS[".csv"](pa.table({"x": column}), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text(encoding="utf-8") == f'"x"\n"{text}"\n'


@pytest.mark.parametrize("command", ["match", "explain", "timeline"])
def test_what_cannot_be_written_is_said_before_the_work(
    files: tuple[Path, Path], tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("match", "explain", "timeline"):
        monkeypatch.setattr(f"cepheid.cli.{'matching' if name == 'match' else 'explaining'}.{name}", None)
    option = {"match": "-o", "explain": "--svg", "timeline": "--timeline"}[command]
    for place, said in [
        (tmp_path, "expected"),
        (tmp_path / "x.xlsx", "expected a name that ends in"),
        (tmp_path / "none" / f"x.{'parquet' if command == 'match' else 'svg'}", "there is no folder"),
    ]:
        result = run("match" if command == "match" else "explain", "-p", *files, option, place)
        assert result.exit_code == 2, result.output
        assert f"{option}: " in result.stderr
        assert said in result.stderr


@pytest.mark.filterwarnings("default")
def test_a_warning_is_a_line(files: tuple[Path, Path]) -> None:
    result = run("match", "-p", *files, "--adapt", "true", "--planner", "pattern_order")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("warning: ")
    assert ".py" not in result.stderr


def test_no_match_need_be_shown(files: tuple[Path, Path]) -> None:
    assert "2 B 5" not in run("match", "-p", *files, "--show", 0).stdout
    assert run("match", "-p", *files, "--show", -1).exit_code == 2


def test_patterns_from_standard_input_and_no_match(files: tuple[Path, Path]) -> None:
    result = run("match", "-p", "-", files[1], input="PATTERN C c WITHIN 5")
    assert result.exit_code == 0
    assert "0 matches in 3 events" in result.stdout


def test_mistakes_are_plain(files: tuple[Path, Path], tmp_path: Path) -> None:
    patterns, events = files
    for arguments, code, said in [
        (["-p", patterns, tmp_path / "none.parquet"], 2, "there is no such file"),
        (["-p", tmp_path / "none.cep", events], 2, "there is no such file"),
        (["-p", patterns, events, "--time", "when"], 2, "time='when'"),
        (["-p", patterns, events, "--planner", "best"], 2, "planner is 'auto' or one of"),
    ]:
        result = run("match", *arguments)
        assert result.exit_code == code, result.output
        assert said in result.stderr
        assert "Traceback" not in result.stderr
    result = run("match", "-p", "-", events, input="PATTERN A a WHERE a.y = 1 WITHIN 5")
    assert result.exit_code == 1
    assert "unknown attribute 'y'" in result.stderr
