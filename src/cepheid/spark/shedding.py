"""What the sessions of a shard drop, and what of that is kept for a session that is made again."""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.engine.session import Session

DROPPED = ("dropped events", "dropped pairs", "dropped partial matches", "lost matches")
"""The last one is an estimate."""
_REPORTED = ("events dropped", "pairs dropped", "partial matches dropped", "estimated false negatives")


class Losses:
    """Tells what sessions have dropped since it was last asked, in whole numbers of which no part is forgotten."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._sessions = sessions
        self._told = self._totals()

    def news(self) -> dict[str, int]:
        before = self._told
        # An estimate may go back a little as more is learned.
        self._told = {name: max(total, before[name]) for name, total in self._totals().items()}
        return {name: total - before[name] for name, total in self._told.items()}

    def _totals(self) -> dict[str, int]:
        reports = [session.shedding() for session in self._sessions]
        names = zip(DROPPED, _REPORTED, strict=True)
        return {name: round(sum(report[reported] for report in reports)) for name, reported in names}
