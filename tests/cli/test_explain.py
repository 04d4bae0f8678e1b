"""``cepheid explain`` and ``cepheid why``, as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from cepheid.cli.main import app


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    patterns = tmp_path / "rules.cep"
    patterns.write_text("NAME up PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5", encoding="utf-8")
    events = tmp_path / "events.parquet"
    pa.parquet.write_table(pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [1, 5, 7]}), events)
    return patterns, events


def run(*arguments: object, input: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], input=input)


def test_a_plan_without_events(files: tuple[Path, Path]) -> None:
    result = run("explain", "-p", files[0])
    assert result.exit_code == 0, result.output
    assert "per window" in result.stdout
    assert "a.x < b.x" in result.stdout


def test_a_plan_with_events_and_a_drawing(files: tuple[Path, Path], tmp_path: Path) -> None:
    patterns, events = files
    drawing = tmp_path / "plan.svg"
    result = run("explain", "-p", patterns, events, "--planner", "pattern_order", "--svg", drawing)
    assert result.exit_code == 0, result.output
    assert "up: 2 matches in 3 events" in result.stdout
    assert "planner pattern_order: (a ⋈ b)" in result.stdout
    assert f"drawn to {drawing}" in result.stdout
    assert drawing.read_text(encoding="utf-8").startswith("<svg")


def test_what_patterns_share_is_drawn(files: tuple[Path, Path], tmp_path: Path) -> None:
    patterns, _ = files
    text = patterns.read_text(encoding="utf-8").replace("B b)", "B b, C c)")
    patterns.write_text(f"{text};\n{text.replace('NAME up', 'NAME far').replace('C c', 'D d')}", encoding="utf-8")
    drawing = tmp_path / "plan.svg"
    result = run("explain", "-p", patterns, "--svg", drawing)
    assert result.exit_code == 0, result.output
    assert "a, b of up = a, b of far" in result.stdout
    assert "What is shared" in drawing.read_text(encoding="utf-8")
    assert "Shared" not in run("explain", "-p", patterns, "--share", "none").stdout


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_timeline(files: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    pytest.importorskip("matplotlib")
    drawing = tmp_path / f"timeline.{kind}"
    result = run("explain", "-p", *files, "--timeline", drawing)
    assert result.exit_code == 0, result.output
    assert "0 changes of plan" in result.stdout
    assert f"drawn to {drawing}" in result.stdout
    assert drawing.read_bytes()[:5] == (b"\x89PNG\r" if kind == "png" else b"<?xml")


def test_a_timeline_needs_events_and_a_kind_of_picture(files: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("explain", "-p", *files, "--timeline", tmp_path / "timeline.png", "--share", "sum")
    assert result.exit_code == 2
    assert "share is" in result.stderr
    result = run("explain", "-p", files[0], "--timeline", tmp_path / "timeline.png")
    assert result.exit_code == 2
    assert "--timeline needs events" in result.stderr
    result = run("explain", "-p", *files, "--timeline", tmp_path / "timeline.doc")
    assert result.exit_code == 2
    assert "doc" in result.stderr


def test_brackets_are_not_taken_for_markup(files: tuple[Path, Path]) -> None:
    result = run("explain", "-p", "-", files[1], input="PATTERN KL(B b) WHERE b[i].x > b[i-1].x WITHIN 5")
    assert "b[i].x > b[i-1].x" in result.stdout


def test_why_there_is_no_match(files: tuple[Path, Path]) -> None:
    result = run("why", "-p", "-", files[1], input="PATTERN SEQ(A a, B b) WHERE b.x > 9 WITHIN 5")
    assert result.exit_code == 0, result.output
    assert "b: of 2 B events none satisfies b.x > 9: the largest b.x is 7." in result.stdout


def test_match_without_matches_points_to_why(files: tuple[Path, Path]) -> None:
    patterns, events = files
    hint = "run cepheid why with the same patterns and events"
    assert hint in run("match", "-p", "-", events, input="PATTERN C c WITHIN 5").stdout
    assert hint not in run("match", "-p", patterns, events).stdout


def test_mistakes_are_plain(files: tuple[Path, Path], tmp_path: Path) -> None:
    patterns, events = files
    for arguments, said in [
        (["explain", "-p", patterns, tmp_path / "none.parquet"], "there is no such file"),
        (["explain", "-p", patterns, "--planner", "best"], "planner is 'auto' or one of"),
        (["explain", "-p", patterns, "--share", "all"], "share is one of 'none', "),
        (["why", "-p", tmp_path / "none.cep", events], "there is no such file"),
        (["why", "-p", patterns, events, "--time", "when"], "time='when'"),
    ]:
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert said in result.stderr
        assert "Traceback" not in result.stderr
