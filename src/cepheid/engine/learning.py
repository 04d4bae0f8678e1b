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
from cepheid.shed.model import Model, Numbers

Key: TypeAlias = "tuple[str, int]"

COUNTS = 8
"""What the control group shows counts for so many that were seen before. It is a 64th of all: if it counted for what
it is, the model would be slow to follow a stream that changes; if it counted for all, it would forget much for
little."""
MATCHES, REMEMBERED, TUPLES = 1024, 64, 8
"""So many matches of a branch in a push are looked at, so many of all in a push are remembered; and so many tuples of
each join."""
SPREAD = 2654435761
"""A part of 2**32, the golden one: its multiples are spread evenly over it."""


def some_of(count: int, most: int, turn: int) -> slice:
    """About so many of a row of things, evenly, but not the same places each time.

    The first one, where a single one is taken each time, would not be like the others: matches come in an order.

    >>> [list(range(6))[some_of(6, 2, turn)] for turn in range(3)]
    [[0, 3], [1, 4], [0, 3]]
    """
    step = max(1, -(-count // most))
    return slice(turn * SPREAD % 2**32 * step >> 32, None, step)


def learn_tuples(
    model: Model, survey: Survey, network: Network, store: RowStore, left: Numbers, *, control: bool, remember: bool
) -> None:
    """While the new tuples of joins are still there: count them, and ``remember`` how some of them came about.

    ``left``: of each line, the part of the tuples that is there although events are dropped at random.
    """
    for node in network.found:
        line = survey.line_of.get(node.number)
        if line is None:
            continue
        new = node.new
        if control:
            new = new.take(in_control(new.rows[:, survey.anchors[node.number]]))
        if len(new):
            places = survey.places[line].bin_of(new.lo, new.hi)
            model.born[line] += (COUNTS if control else 1) / left[line] * np.bincount(places, minlength=BINS)
            if remember:
                some = new.rows[some_of(len(new), TUPLES, model.tuples[line].next)]
                model.tuples[line].add(survey.paths(node, some, store)[0], len(some))


def rooms(found: Mapping[Key, Matches]) -> dict[Key, int]:
    """Of how many matches of each branch it is remembered in a push how they came about.

    A pattern with ANY has many branches: if each had its own, one push would take the place of all before it.
    """
    every = sum(map(len, found.values()))
    return {key: max(1, REMEMBERED * len(matches) // every) for key, matches in found.items()}


def learn_matches(
    model: Model, survey: Survey, key: Key, run: BranchRun, matches: Matches, store: RowStore,
    weight: float, every: float, counts: float, room: int,
) -> None:  # fmt: skip
    """Which pairs the matches of a run came of; each is worth ``weight``, and they stand for ``every``.

    ``counts``: for which part of them they are counted, as the pairs of this push are. ``room``: about so many are
    remembered, and each of them for all that it stands for: a push is a push, whether all of it was seen or not.
    """
    if not len(matches):
        return
    turn = model.matches.next
    if len(matches) > MATCHES:
        matches = matches.take(some_of(len(matches), MATCHES, turn))
    paths, more = survey.match_paths(key, run, matches, store)
    for found in (paths, more):
        for line, bins in found.items():
            model.saw_completed(line, bins, weight, counts * every / len(matches))
    if paths:  # a few of each push, so that those of many pushes are remembered
        places = some_of(len(matches), room, turn)
        some = {line: bins[places] for line, bins in paths.items()}
        count = len(range(*places.indices(len(matches))))
        model.matches.add(some, count, weight * every / count, odd=model.odd)
        model.fresh += count
