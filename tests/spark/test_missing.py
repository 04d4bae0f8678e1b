"""Without PySpark, Cepheid works but for its Spark part, which says how to get it."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest


def test_an_install_hint_where_pyspark_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("cepheid.spark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[spark\]'"):
        importlib.import_module("cepheid.spark")


def test_cepheid_does_not_import_what_is_not_asked_for() -> None:
    code = "import sys, cepheid; print(sorted({'numba', 'pyspark', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
