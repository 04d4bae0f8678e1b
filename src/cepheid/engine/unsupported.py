"""What the engine cannot run yet, said before it tries."""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.language.problems import CepheidError
from cepheid.pattern.normal import NormalForm


class UnsupportedError(CepheidError, NotImplementedError):
    """A pattern that the language has and the engine does not run yet."""


def refuse_unsupported(normal: NormalForm) -> None:
    missing = []
    if normal.branches[0].window.kind is s.WindowKind.EVENTS:
        missing.append("windows of a number of events")
    if missing:
        raise UnsupportedError(f"{normal.name}: the engine does not run {', '.join(missing)} yet")
