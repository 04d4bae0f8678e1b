"""How much memory Spark gets on this machine, where nobody has said it."""

from __future__ import annotations

import os
from pathlib import Path

SHARE = 4
"""The engine, in Python, needs memory too: Spark gets one part of so many."""
LEAST, MOST = 1024, 31 * 1024
"""Megabytes: what Spark takes by itself, and the most with which Java still gets along with short addresses."""
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def driver_memory() -> str | None:
    """What to set ``spark.driver.memory`` to before Java starts; None if it is set already, or nothing is known.

    Spark itself takes 1 GB, whatever there is.
    """
    if "SPARK_DRIVER_MEMORY" in os.environ or "memory" in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        return None
    if "spark.driver.memory" in _spark_defaults():
        return None
    total = _memory()
    return None if total is None else f"{max(LEAST, min(total // SHARE // 2**20, MOST))}m"


def _memory() -> int | None:
    """The bytes of this machine, or of the container that this runs in."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    limit = _text(_CONTAINER).strip()
    return min(found, int(limit)) if limit.isdigit() else found


def _spark_defaults() -> str:
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
    return _text(Path(folder, "spark-defaults.conf"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
