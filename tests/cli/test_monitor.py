"""``cepheid monitor``, as a user runs it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner, Result

from cepheid.cli.main import app
from cepheid.monitor.streams import drift_set


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["monitor", *(str(a) for a in arguments)])


@pytest.fixture
def observations(tmp_path: Path) -> Path:
    x, y = drift_set(2, 400, nodes=3, dimension=2, sigma=1.0)
    rounds, nodes, _ = x.shape
    columns = {
        "ts": np.repeat(np.arange(rounds), nodes),
        "node": np.tile(["a", "b", "c"], rounds),
        "speed": x[:, :, 0].ravel(),
        "load": x[:, :, 1].ravel(),
        "y": y.ravel(),
    }
    file = tmp_path / "observations.csv"
    pyarrow.csv.write_csv(pa.table(columns), file)
    return file


def test_a_model(observations: Path) -> None:
    result = run(observations, "--epsilon", 0.5, "--window", 100)
    assert result.exit_code == 0, result.output
    assert "model in force: speed" in result.stdout
    assert "2,400 observations of 3 nodes" in result.stdout
    assert "messages per observation since the first model" in result.stdout


def test_a_model_of_some_columns_with_a_constant(observations: Path) -> None:
    result = run(observations, "--epsilon", 0.5, "--window", 100, "--features", "load", "--intercept")
    assert result.exit_code == 0, result.output
    assert "model in force: load" in result.stdout
    assert "constant" in result.stdout


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib")
def test_a_plot(observations: Path, tmp_path: Path) -> None:
    result = run(observations, "--epsilon", 0.5, "--window", 100, "--plot", tmp_path / "run.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_an_average(tmp_path: Path) -> None:
    file = tmp_path / "speeds.csv"
    lines = [f"2014-11-01T08:{m:02}:00,S{s},{80 - 2 * m + s},{10 + s}\n" for m in range(30) for s in range(3)]
    file.write_text("".join(lines), encoding="utf-8")
    result = run(file, "--threshold", 50)
    assert result.exit_code == 0, result.output
    assert "2014-11-01T08:16:00.000000: the average is 49, below 50" in result.stdout
    assert "90 readings of 3 sensors" in result.stdout


def test_data_that_make_no_model_are_said_to(tmp_path: Path) -> None:
    file = tmp_path / "constant.csv"
    file.write_text("node,x,z,y\n" + "a,1,1,2\nb,2,2,4\n" * 50, encoding="utf-8")
    result = run(file, "--epsilon", 0.5, "--window", 10)
    assert result.exit_code == 0, result.output
    assert "determine 1 of 2 coefficients" in result.stderr
    assert "no model in force" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say either --epsilon, for a regression model, or --threshold, for an average"),
        (["--epsilon", 0.5, "--response", "sped"], "there is no column 'sped'"),
        (["--epsilon", 0.5, "--features", "ts,spead"], "did you mean 'speed'?"),
        (["--epsilon", 0.5, "--zone", "round"], "zone is 'residual' or 'paper', got 'round'"),
        (["--epsilon", -1], "epsilon is a number above 0"),
        (["--threshold", 5], "expected lines of time, sensor, velocity, number of vehicles"),
    ],
)
def test_what_cannot_be_run_is_said(observations: Path, arguments: list[object], said: str) -> None:
    result = run(observations, *arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
