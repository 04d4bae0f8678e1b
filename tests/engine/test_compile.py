"""Compiling: said when it happens, and not needed for what kernels mean."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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


def test_kernels_mean_the_same_uncompiled() -> None:
    tests = ["tests/contracts", "tests/engine/test_kleene.py"]
    found = run(["-m", "pytest", "-q", *tests], NUMBA_DISABLE_JIT="1", HYPOTHESIS_PROFILE="few")
    assert found.returncode == 0, found.stdout
