"""What shedding has cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ENOUGH = 128
"""So many independent groups of matches of the control group count as much as the model."""


@dataclass
class Lost:
    """What was dropped, and what that is expected to have cost.

    Of dropped pairs there are two estimates. ``foregone`` is the model's: there from the start, but too low, since
    what is dropped is what the model thinks little of. ``would_be`` is what the control group stands for: right on
    average, and worth little until it has matches from many ``groups``.
    """

    events: int = 0
    pairs: int = 0
    partial_matches: int = 0
    every: int = 0  # matches that were found so far, whether anything was dropped or not, by patterns that may be shed
    matches: int = 0  # … and those of them that were found in the meantime
    thinned: float = 0.0  # matches that are missing because events were dropped at random
    both: float = 0.0  # the same where pairs were dropped as well, for the matches that were found
    chances: float = 0.0  # that a match is found nevertheless, one after the other …
    thinnings: int = 0  # … and how many these are
    foregone: float = 0.0  # matches that dropped pairs would have come to
    would_be: float = 0.0  # all matches, found or not, while pairs were dropped …
    beside: int = 0  # … and those of them that were found
    groups: float = 0.0  # that these came of, if all had as many
    doubtful: int = 0  # matches that were found while negated events of their patterns were dropped …
    struck_once: float = 0.0  # … and those that were rejected because of one event that was left, …
    struck_twice: float = 0.0  # … of two,
    odds: float = 0.0  # and the odds, for each that was rejected because of one, that the event would have been dropped

    def add(self, other: Lost) -> None:
        for name, value in vars(other).items():
            if value:
                setattr(self, name, getattr(self, name) + value)

    @property
    def missed(self) -> float:
        """Matches that were not found, if those that were are all right."""
        by_control = max(self.would_be - self.beside, 0.0)
        missed = (self.groups * by_control + ENOUGH * self.foregone) / (self.groups + ENOUGH)
        return missed + self.thinned + self.both * (1.0 + missed / max(self.beside, 1))

    @property
    def false_positives(self) -> float:
        """Matches whose negated events were all dropped.

        If λ events strike a match on average, and so rλ = λ(1 - p) of those that are left where p are dropped, one is
        left for e^-rλ·rλ, two for half of that times rλ, and none of one or more for e^-rλ·(1 - e^-pλ).
        """
        if not self.struck_once:
            return 0.0
        left = max(2.0 * self.struck_twice / self.struck_once, 1e-9)
        each = -np.expm1(-left * self.odds / self.struck_once) / left
        return float(min(self.struck_once * each, self.doubtful))

    @property
    def false_negatives(self) -> float:
        """Of the missing matches, as many would be none as of those that were found."""
        return self.missed * (1.0 - self.false_positives / max(self.matches, 1))

    def report(self) -> dict[str, float]:
        missed = self.missed
        unknown = self.chances / self.thinnings if self.thinnings else 1.0  # where there was no match to tell by
        return {
            "events dropped": self.events,
            "pairs dropped": self.pairs,
            "partial matches dropped": self.partial_matches,
            "matches": self.matches,
            "estimated false negatives": self.false_negatives,
            "estimated false positives": self.false_positives,
            "estimated recall": self.matches / (self.matches + missed) if self.matches + missed > 0 else unknown,
            "estimated recall so far": self.every / (self.every + missed) if self.every + missed > 0 else unknown,
        }
