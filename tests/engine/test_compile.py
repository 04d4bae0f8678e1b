"""Compiling: said when it happens, and not needed for what kernels mean."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine import turns
from cepheid.engine.kernels import join, kleene, tuples

KERNELS = (join, kleene, tuples)

ROOT = Path(__file__).parents[2]
MATCH = """
import cepheid
events = [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]
for _ in range(2):
    print(cepheid.match("PATTERN SEQ(A a, B b) WITHIN 5", events).num_rows)
"""


def run(arguments: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )  # fmt: skip


def test_the_first_run_on_a_machine_says_that_it_compiles_and_the_second_does_not(tmp_path: Path) -> None:
    cold, warm = (run(["-c", MATCH], NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert (cold.stdout, warm.stdout) == ("1\n1\n", "1\n1\n"), cold.stderr
    assert cold.stderr.count("compiling the engine, once on this machine") == 1
    assert warm.stderr == ""


def test_of_several_processes_one_compiles_and_the_others_find_it(tmp_path: Path) -> None:
    counting = """
from cepheid.engine.kernels.tuples import join_tuples
print(join_tuples.stats.cache_misses.total(), join_tuples.stats.cache_hits.total())
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", MATCH + counting], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]  # fmt: skip
    said = [process.communicate()[0].split() for process in processes]
    assert [lines[:2] for lines in said] == [["1", "1"], ["1", "1"]]
    (one, two) = ([int(word) for word in lines[2:]] for lines in said)
    assert one[0] + two[0] == sum(one) == sum(two)


def test_a_process_that_waits_for_too_long_compiles_out_of_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.2)
    holding = "import fcntl, sys; file = open(sys.argv[1], 'wb'); fcntl.lockf(file, fcntl.LOCK_EX); print(flush=True); input()"
    lock = tmp_path / "compiling.lock"
    with subprocess.Popen(
        [sys.executable, "-c", holding, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with turns._turn(lock):
            pass
        other.kill()


def test_a_change_in_any_file_of_kernels_makes_compiled_code_stale(tmp_path: Path) -> None:
    package = shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    where = {"PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    keyed = (
        MATCH.replace("WITHIN", "WHERE a.x = b.x WITHIN").replace('"A"', '"A", "x": 1').replace('"B"', '"B", "x": 1')
    )
    keyed = keyed.replace('5", events', '5", events, planner="dynamic"')
    assert run(["-c", keyed], **where).stdout == "1\n1\n"
    kernels = package / "cepheid/engine/kernels/join.py"
    changed = kernels.read_text("utf-8").replace(">> 20) & (buckets - 1)", ">> 19) & (buckets - 1)")
    kernels.write_text(changed, "utf-8")
    again = run(["-c", keyed], **where)
    assert (again.stdout, again.stderr.count("compiling")) == ("1\n1\n", 1)


def test_under_overload_nothing_is_compiled_that_was_not_before() -> None:
    """To compile takes longer than a latency bound. Arrays that are not in one piece would need kernels of their own."""
    rng = np.random.default_rng(1)
    count = 6_000
    events = pa.table({"ts": np.arange(count), "type": rng.choice(list("ABCD"), count), "x": rng.random(count)})
    pattern = cepheid.parse(
        "PATTERN SEQ(A a, NOT(D d), B b, KL(C c)) WHERE a.x < b.x AND d.x > 0.5 AND c.x > 0.7 WITHIN 60"
    )
    for strategy in (cepheid.HSpice(), cepheid.ESpice(), cepheid.PSpice(), cepheid.WeightedSampling()):
        session = cepheid.Engine([pattern], shed=strategy).open()
        for start in range(0, count, 500):
            session.overload(0.3 if start >= 3_000 else 0.0)
            session.push(events.slice(start, 500), watermark=start)
        assert session.shedding()["matches"] > 0
    kernels = [f for module in KERNELS for f in vars(module).values() if hasattr(f, "signatures")]
    arrays = [
        part for kernel in kernels for signature in kernel.signatures for part in signature if hasattr(part, "layout")
    ]
    assert len(arrays) > 20
    assert {array.layout for array in arrays} == {"C"}


def test_kernels_mean_the_same_uncompiled() -> None:
    tests = ["tests/contracts", "tests/engine/test_kleene.py"]
    found = run(["-m", "pytest", "-q", *tests], NUMBA_DISABLE_JIT="1", HYPOTHESIS_PROFILE="few")
    assert found.returncode == 0, found.stdout
