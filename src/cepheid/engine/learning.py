"""What the shedding model learns of the tuples and matches of a push: which pairs they came of.

While pairs are dropped, only the control group shows what there would be: ``control``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from cepheid.engine.gate import in_control
from cepheid.engine.matches import Matches
from cepheid.engine.network import Network
from cepheid.engine.run import BranchRun
from cepheid.engine.store import RowStore
from cepheid.engine.survey import BINS, Survey
from cepheid.shed.model import Model

Key: TypeAlias = "tuple[str, int]"

COUNTS = 8
"""What the control group shows counts for so many that were seen before. It is a 64th of all: if it counted for what
it is, the model would be slow to follow a stream that changes; if it counted for all, it would forget much for
little."""
MATCHES, REMEMBERED, TUPLES = 1024, 64, 8
"""So many matches of a branch in a push are looked at, so many of all in a push are remembered; and so many tuples of
each join."""


def learn_tuples(
    model: Model, survey: Survey, network: Network, store: RowStore, *, control: bool, remember: bool
) -> None:
    """While the new tuples of joins are still there: count them, and ``remember`` how some of them came about."""
    for node in network.found:
        line = survey.line_of.get(node.number)
        if line is None:
            continue
        new = node.new
        if control:
            new = new.take(in_control(new.rows[:, survey.anchors[node.number]]))
        if len(new):
            places = survey.places[line].bin_of(new.lo, new.hi)
            model.born[line] += (COUNTS if control else 1) * np.bincount(places, minlength=BINS)
            if remember:
                some = new.rows[:: max(1, len(new) // TUPLES)][:TUPLES]
                model.tuples[line].add(survey.paths(node, some, store)[0], len(some))


def rooms(found: Mapping[Key, Matches]) -> dict[Key, int]:
    """Of how many matches of each branch it is remembered in a push how they came about.

    A pattern with ANY has many branches: if each had its own, one push would take the place of all before it.
    """
    every = sum(map(len, found.values()))
    return {key: max(1, REMEMBERED * len(matches) // every) for key, matches in found.items()}


def learn_matches(
    model: Model, survey: Survey, key: Key, run: BranchRun, matches: Matches, store: RowStore,
    weight: float, every: float, room: int,
) -> None:  # fmt: skip
    """Which pairs the matches of a run came of; each is worth ``weight``, and they stand for ``every``.

    ``room``: about so many of them are remembered.
    """
    if not len(matches):
        return
    step = -(-len(matches) // MATCHES)
    if step > 1:
        matches = matches.take(slice(None, None, step))
    paths, more = survey.match_paths(key, run, matches, store)
    for found in (paths, more):
        for line, bins in found.items():
            model.saw_completed(line, bins, weight, every / len(matches))
    if paths:  # a few of each push, so that those of many pushes are remembered
        step = -(-len(matches) // room)
        some = {line: bins[::step] for line, bins in paths.items()}
        count = len(range(0, len(matches), step))
        model.matches.add(some, count, weight * every / count, odd=model.odd)
        model.fresh += count
