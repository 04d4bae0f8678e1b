"""``cepheid run``, as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from cepheid.cli.main import app
from tests.job.test_run import made_events

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

JOB = """
name: a trial
source: {format: parquet, path: events.parquet}
patterns: rules.cep
sink: {format: parquet, path: out}
spark: {master: "local[1]"}
"""


@pytest.fixture
def job(patterns: Path) -> Path:
    pa.parquet.write_table(made_events(), patterns.parent / "events.parquet")
    path = patterns.parent / "job.yaml"
    path.write_text(JOB, encoding="utf-8")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["run", *(str(a) for a in arguments)])


@pytest.mark.usefixtures("spark")
def test_matches_plan_summary_and_report(job: Path, tmp_path: Path) -> None:
    report = tmp_path / "made" / "report.html"
    result = run(job, "--report", report, "--plan", "--show", 5)
    assert result.exit_code == 0, result.output
    for text in ("pair, 2024-05-17: the first matches", "planner auto", "matches in 200 events", f"report: {report}"):
        assert text in result.stdout
    assert "a trial" in report.read_text(encoding="utf-8")
    assert "matching" in result.stderr  # no terminal: a line for each phase


@pytest.mark.usefixtures("spark")
def test_a_run_that_fails(job: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    result = run(job, "--report", tmp_path / "report.html")
    assert result.exit_code == 2
    assert "already exists" in result.stderr
    assert "what is known until then" in result.stdout
    assert "already exists" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Traceback" not in result.stderr


def test_only_check(job: Path) -> None:
    result = run(job, "--check")
    assert result.exit_code == 0, result.output
    assert "a trial, a batch from parquet to parquet, can be run" in result.stdout


def test_a_job_that_is_wrong(job: Path) -> None:
    job.write_text(JOB.replace("format: parquet, path: out", "format: parqet") + "mod: stream\n", encoding="utf-8")
    result = run(job)
    assert result.exit_code == 1, result.output
    assert "did you mean 'parquet'?" in result.stderr
    assert "did you mean 'mode'?" in result.stderr
    assert "2 problems found" in result.stderr


def test_all_mistakes_of_the_patterns_count(job: Path) -> None:
    pattern = "PATTERN SEQ(A a, B b) WHERE c.x = 1 AND d.x = 2 WITHIN 5"
    (job.parent / "rules.cep").write_text(pattern, encoding="utf-8")
    result = run(job)
    assert result.exit_code == 1, result.output
    assert "2 problems found" in result.stderr


def test_a_report_that_cannot_be_written_is_said_before_the_run(job: Path, tmp_path: Path) -> None:
    for place in (tmp_path, job / "report.html"):
        result = run(job, "--report", place)
        assert result.exit_code == 2, result.output
        assert "expected" in result.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("spark")
def test_a_report_that_could_not_be_written_in_the_end(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("cepheid.cli.running.write_report", full)
    result = run(job, "--report", job.parent / "report.html")
    assert result.exit_code == 2, result.output
    assert "matches in 200 events" in result.stdout
    assert "no space left" in result.stderr


def test_a_traceback_would_show_no_values() -> None:
    """Secrets would be among them."""
    assert not app.pretty_exceptions_show_locals


def test_an_install_hint(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith("cepheid.job") or name == "cepheid.cli.running"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run(job)
    assert result.exit_code == 2
    assert "pip install '.[spark]'" in result.stderr
