"""Which tests take long."""

from __future__ import annotations

import os

import pytest

ALL = os.environ.get("CEPHEID_SPARK_TESTS") == "all"
long = pytest.mark.skipif(not ALL, reason="runs Spark for long: set CEPHEID_SPARK_TESTS=all")
