"""Lines that are no events and were left out, where a user would rather lose them than the stream."""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias, get_args

OnBadLine: TypeAlias = Literal["fail", "skip"]
"""What to do with a line that is no event."""
SHOWN = 80
"""Characters of the first one."""


class Rejected:
    """How many there were. The first is told of at once, since all may be like it."""

    def __init__(self) -> None:
        self.count = 0

    def clear(self) -> None:
        self.count = 0

    def add(self, where: str, line: bytes, error: str) -> None:
        self.count += 1
        if self.count > 1:
            return
        text = line.decode(errors="replace").strip()
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
        warnings.warn(
            f"{where}: expected a JSON object, found {shown!r} ({error}). It is left out, and so are "
            "later ones that are no events: they are counted",
            stacklevel=2,
        )


def checked_on_bad_line(given: object) -> None:
    if given not in get_args(OnBadLine):
        words = " or ".join(get_args(OnBadLine))
        raise ValueError(f"on_bad_line is {words}; got {given!r}")
