"""``cepheid check``, as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from cepheid.cli.main import app

GOOD = "NAME up PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5"


def run(*arguments: object, input: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], input=input)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.cep"
    path.write_text(GOOD, encoding="utf-8")
    return path


def test_good_patterns_are_shown_in_their_normal_form(good: Path) -> None:
    result = run("check", good)
    assert result.exit_code == 0
    assert result.stdout == (
        "up: 1 branch\n  events      A a, B b\n  order       a < b\n  comparison  a.x < b.x\n  within 5\n\n1 pattern can be run\n"
    )


def test_all_four_mistakes_of_a_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.cep"
    path.write_text(
        "PATTERN SEQ(A a, NOT(B n))\nWHERE x.y = 1\nWITHIN 5 hurs;\nPATTERN A a WHERE COUNT(a) > 1 WITHIN 5;\nPATTERN A a",
        encoding="utf-8",
    )
    result = run("check", path)
    assert result.exit_code == 1
    for place in (
        "2:7: unknown variable 'x'",
        "3:10: unknown unit",
        "4:19: COUNT looks at a set",
        "5:1: this pattern has no window",
    ):
        assert f"{path}:{place}" in result.stderr
    assert "4 problems found" in result.stderr


def test_a_good_file_is_shown_even_if_another_is_bad(good: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.cep"
    bad.write_text("PATTERN", encoding="utf-8")
    result = run("check", bad, good)
    assert result.exit_code == 1
    assert "up: 1 branch" in result.stdout
    assert "bad.cep:1:8: the text ends too early" in result.stderr


def test_standard_input() -> None:
    assert run("check", "-", input=GOOD).exit_code == 0
    assert "<stdin>:1:1" in run("check", "-", input="nonsense").stderr


def test_quiet_says_nothing_of_good_patterns(good: Path) -> None:
    result = run("check", "-q", good)
    assert (result.exit_code, result.output) == (0, "")


def test_a_pattern_that_never_matches_is_a_warning() -> None:
    result = run("check", "-q", "-", input="PATTERN A a WHERE a.x > 2 AND a.x < 1 WITHIN 5")
    assert result.exit_code == 0
    assert "warning: <stdin>: pattern_1 never matches: a.x > 2 and a.x < 1 can never hold together" in result.stderr


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_the_columns_of_a_file_of_events(good: Path, tmp_path: Path, ending: str) -> None:
    events = tmp_path / f"events.{ending}"
    table = pa.table({"ts": [1], "type": ["A"], "y": [1]})
    write = {"parquet": pa.parquet.write_table, "csv": pa.csv.write_csv, "arrow": pa.feather.write_feather}[ending]
    write(table, events)
    result = run("check", "--events", events, good)
    assert result.exit_code == 1
    assert "unknown attribute 'x'" in result.stderr
    assert run("check", "--events", events, "--time", "when", good).exit_code == 2


def test_functions_of_the_user_can_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_functions.py").write_text(
        "import cepheid\ncepheid.register_function('near', lambda x, y: abs(x - y) < 1, returns='boolean')\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    text = "PATTERN AND(A a, B b) WHERE near(a.x, b.x) WITHIN 5"
    assert run("check", "-", input=text).exit_code == 1
    assert run("check", "--import", "my_functions", "-", input=text).exit_code == 0
    assert "--import nothing_there" in run("check", "--import", "nothing_there", "-", input=text).stderr


def test_modules_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "boom.py").write_text("x = 1\n1 / 0\n", encoding="utf-8")
    (tmp_path / "garbled.py").write_text("def\n", encoding="utf-8")
    (tmp_path / "leaves.py").write_text("raise SystemExit(7)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for module, said in [
        ("boom", "ZeroDivisionError: division by zero (boom.py, line 2)"),
        ("garbled", "SyntaxError: "),
        ("leaves", "SystemExit: 7"),
        ("", "ValueError: Empty module name"),
    ]:
        result = run("check", "--import", module, "-", input="PATTERN A a WITHIN 5")
        assert result.exit_code == 2, result.output
        assert f"--import {module}: {said}" in result.stderr


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "binary.cep"
    binary.write_bytes(b"\xff\xfe\x00")
    odd = tmp_path / "events.xlsx"
    odd.write_bytes(b"")
    broken = tmp_path / "events.parquet"
    broken.write_bytes(b"not parquet")
    cases: list[tuple[list[object], str]] = [
        ([tmp_path / "missing.cep"], "there is no such file"),
        ([tmp_path], "is a folder"),
        ([binary], "text in UTF-8"),
        (["--events", odd, "-"], "ends in .parquet"),
        (["--events", broken, "-"], "events.parquet"),
        (["--events", tmp_path / "missing.csv", "-"], "there is no such file"),
    ]
    for arguments, said in cases:
        result = run("check", *arguments, input=GOOD)
        assert result.exit_code == 2, result.output
        assert said in result.stderr
        assert "Traceback" not in result.stderr


def test_version_and_help() -> None:
    version = run("--version")
    assert version.exit_code == 0
    assert version.stdout.startswith("cepheid 0.")
    assert "pyspark" in version.stdout
    assert "check" in run("--help").stdout
    assert "exit code" in run("check", "--help").stdout
