"""What shedding has cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Lost:
    """What was dropped, and what that is expected to have cost."""

    events: int = 0
    pairs: int = 0
    partial_matches: int = 0
    matches: int = 0  # that were found in the meantime, by patterns that may be shed
    false_negatives: float = 0.0
    false_positives: float = 0.0

    def add(self, other: Lost) -> None:
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)

    def report(self) -> dict[str, float]:
        right = max(self.matches - self.false_positives, 0.0)
        true = right + self.false_negatives
        return {
            "events dropped": self.events,
            "pairs dropped": self.pairs,
            "partial matches dropped": self.partial_matches,
            "matches": self.matches,
            "estimated false negatives": self.false_negatives,
            "estimated false positives": self.false_positives,
            "estimated recall": right / true if true > 0 else 1.0,
        }
