"""A model over streams of Spark: nodes and coordinator in two processes, with folders and with a real broker between them.

Both are killed and started again. Whenever nothing is on its way, the model is within ε of that of all observations.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install '.[spark]'")

from tests.monitor.reference import Reference
from tests.spark.kafka_broker import NoBrokerError, connector, running_broker
from tests.spark.long import long

pytestmark = [long, pytest.mark.xdist_group("spark")]

ROOT = Path(__file__).parents[2]
NAMES = ("a", "b", "c")
EPSILON, WINDOW = 0.5, 60
PATIENCE = 180.0
QUIET = 12.0
"""Seconds without a new model after which nothing is on its way: many times what a message takes."""


class Process:
    def __init__(self, role: str, settings: Path, log: Path) -> None:
        command = [sys.executable, "-m", "tests.monitor_spark.monitor_job", role, str(settings)]
        self.log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """With its JVM and its workers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def runs(self) -> bool:
        return self._process.poll() is None


@contextmanager
def processes(settings: Path, folder: Path) -> Iterator[dict[str, Process]]:
    running = {role: Process(role, settings, folder / f"{role}.log") for role in ("coordinator", "nodes")}
    try:
        yield running
    finally:
        for process in running.values():
            if process.runs():
                process.kill()


def models(folder: Path) -> list[list[float]]:
    lines = (folder / "coordinator.log").read_text(encoding="utf-8", errors="replace").splitlines()
    return [json.loads(line)["model"] for line in lines if line.startswith("{")]


class Feed:
    """Writes observations for the nodes to read, and knows the model that they make."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.reference = Reference(3, WINDOW, 0.0, None)
        self._rng = np.random.default_rng(1)
        self._files = self._at = 0

    def give(self, rounds: int, beta: list[float]) -> None:
        x = self._rng.normal(size=(rounds, 3, 2))
        y = x @ beta + 0.3 * self._rng.normal(size=(rounds, 3))
        at = np.repeat(np.arange(self._at, self._at + rounds), 3)
        self._at += rounds
        for place in range(rounds):
            for node in range(3):
                self.reference.observe(node, x[place, node], y[place, node])
        table = pa.table(
            {"at": at, "node": list(NAMES) * rounds, "x0": x[:, :, 0].ravel(), "x1": x[:, :, 1].ravel(), "y": y.ravel()}
        )
        hidden = self.folder / f".{self._files}"
        pq.write_table(table, hidden)
        hidden.rename(self.folder / f"{self._files:05}.parquet")
        self._files += 1


def wait_until_close(folder: Path, feed: Feed, running: dict[str, Process]) -> None:
    """Until the last model has been the same for a while; it is close then."""
    deadline = time.monotonic() + PATIENCE
    last, since = None, time.monotonic()
    while time.monotonic() < deadline:
        for role, process in running.items():
            assert process.runs(), (folder / f"{role}.log").read_text(encoding="utf-8", errors="replace")[-3000:]
        found = models(folder)
        if found != last:
            last, since = found, time.monotonic()
        close = bool(found) and np.linalg.norm(np.array(found[-1]) - feed.reference.beta()) <= EPSILON
        if close and time.monotonic() - since > QUIET:
            return
        select.select([], [], [], 0.5)  # the log of another process has no event to wait for
    error = np.linalg.norm(np.array(last[-1]) - feed.reference.beta()) if last else None
    raise AssertionError(f"after {PATIENCE:.0f} s the model is {error} away, and there were {len(last or [])} models")


def scenario(tmp_path: Path, settings: dict[str, Any]) -> None:
    feed = Feed(tmp_path / "observations")
    settings |= {"observations": str(feed.folder), "checkpoint": str(tmp_path / "checkpoint")}
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    with processes(file, tmp_path) as running:
        feed.give(80, [1.0, -2.0])
        wait_until_close(tmp_path, feed, running)
        feed.give(100, [3.0, 0.0])
        wait_until_close(tmp_path, feed, running)
        first = len(models(tmp_path))

        running["nodes"].kill()
        feed.give(100, [0.0, 4.0])
        running["nodes"] = Process("nodes", file, tmp_path / "nodes.log")
        wait_until_close(tmp_path, feed, running)
        assert len(models(tmp_path)) > first

        running["coordinator"].kill()
        feed.give(100, [-3.0, 1.0])
        running["coordinator"] = Process("coordinator", file, tmp_path / "coordinator.log")
        wait_until_close(tmp_path, feed, running)

        feed.give(60, [-3.0, 1.0])  # the same model again: there is little to say
        wait_until_close(tmp_path, feed, running)


def test_folders(tmp_path: Path) -> None:
    scenario(tmp_path, {"folder": str(tmp_path / "channel")})


def test_a_real_broker(tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    try:
        with running_broker(tmp_path / "broker") as address:
            scenario(tmp_path, {"kafka": address, "spark": {"spark.jars": connector()}})
    except NoBrokerError as error:
        pytest.skip(str(error))
