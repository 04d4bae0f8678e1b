"""Starting the streaming job of :mod:`tests.spark.stream_job`, and killing its processes."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import cepheid
from tests.contracts.test_engine_is_exact import canonical
from tests.spark.stream_job import PATTERNS
from tests.spark.test_stream import SCHEMA, Row, aware, flush, made_events, shuffled

ROOT = Path(__file__).parents[2]
PATIENCE = 300.0


class Workload:
    """Events in files, and the matches in them."""

    def __init__(self, folder: Path, files: int, rows: int, lateness: Any) -> None:
        self.files = folder / "in"
        self.files.mkdir()
        events = made_events(files * rows)
        last = flush(dt.timedelta(days=1))
        arrived = [*shuffled(events, lateness), last]
        for number in range(files + 1):
            batch = arrived[number * rows : (number + 1) * rows]
            path = self.files / f"{number:04}.parquet"
            pq.write_table(pa.Table.from_pylist(batch, SCHEMA), path)
            os.utime(path, (1_600_000_000 + number,) * 2)  # the order in which they are read
        self.all = folder / "all.parquet"
        numbered = pa.Table.from_pylist(arrived, SCHEMA).append_column("arrival", pa.array(range(len(arrived))))
        pq.write_table(numbered, self.all)
        found = cepheid.match(PATTERNS, pa.Table.from_pylist([*events, last], SCHEMA), tie_breaker="seq")
        self.matches = plain(found.to_pylist())


def plain(rows: list[Row]) -> list[str]:
    """Rows to compare: which events were matched by which pattern."""
    return canonical([{k: aware(v) for k, v in row.items() if v is not None} for row in rows])


class JobProcess:
    """A run of the job: its processes are the driver, the JVM, Spark's Python workers, and those that keep shards."""

    def __init__(self, settings: Path, log: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.stream_job", settings],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, cwd=ROOT, env=environment,
        )  # fmt: skip
        self._seen: dict[int, str] = {}

    def lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield line.decode().strip()

    def kill(self, what: str, rng: random.Random) -> bool:
        """Kill the driver, the JVM or a Python worker, be it Spark's or one that keeps shards. False: there is none."""
        family = self._family()
        found = sorted(pid for pid, kind in family.items() if kind == what)
        if not found:
            return False
        os.kill(rng.choice(found), signal.SIGKILL)
        return True

    def end(self) -> int:
        """Wait for all of it to end, and see to it that it does."""
        self._family()
        code = self._process.wait()
        if code:  # the JVM notices that its driver is gone, but may take its time
            for pid, kind in self._seen.items():
                if kind == "jvm":
                    _signal(pid, signal.SIGKILL)
        for pid in self._seen:
            _wait_for_end(pid)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()
        return code

    def _family(self) -> dict[int, str]:
        """The processes that there are now, and what they are."""
        driver = self._process.pid
        parents, commands = _processes()
        found = {driver: "driver"} if driver in commands else {}
        jvms = [pid for pid, parent in parents.items() if parent == driver and "java" in commands[pid]]
        found |= dict.fromkeys(jvms, "jvm")
        daemons = [pid for pid, parent in parents.items() if parent in jvms and "pyspark.daemon" in commands[pid]]
        found |= dict.fromkeys(daemons, "daemon")
        for pid, command in commands.items():
            if parents[pid] in daemons or any(
                f"cepheid.spark.host cepheid/{os.getuid()}/{d}-" in command for d in daemons
            ):
                found[pid] = "worker"
        self._seen |= found  # who is whose child is forgotten when the parent ends
        return found


@contextmanager
def started(settings: dict[str, Any], folder: Path) -> Iterator[JobProcess]:
    path = folder / "settings.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    job = JobProcess(path, folder / "job.log")
    try:
        yield job
    finally:
        for what in ("driver", "jvm"):
            job.kill(what, random.Random(0))
        job.end()


def _processes() -> tuple[dict[int, int], dict[int, str]]:
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # it has just ended
                continue
            if status[0] != "Z":
                parents[int(entry.name)], commands[int(entry.name)] = int(status[1]), command
    return parents, commands


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _wait_for_end(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        started = time.monotonic()
        ready, _, _ = select.select([handle], [], [], PATIENCE)
        assert ready, f"process {pid} still runs after {time.monotonic() - started:.0f} seconds"
    finally:
        os.close(handle)
