"""Streams like those of the paper's queries, made up: small, and the same every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
from cepheid.shed.strategies import Strategy

LEARNED = 0.5
"""This part of a stream is there to learn from; then comes the overload."""


def cascades(count: int = 5000, *, types: int = 5, seed: int = 1) -> pa.Table:
    """Quotes of C1, C2, …: most are noise, but now and then a change runs through all of them, one soon after the other."""
    rng = np.random.default_rng(seed)
    times = [rng.uniform(0, 10 * count, count)]
    kinds, changes = [rng.integers(0, types, count)], [rng.uniform(0, 10, count)]
    for _ in range(count // 40):
        times.append(rng.uniform(0, 10 * count) + np.cumsum(rng.uniform(5, 60, types)))
        kinds.append(np.arange(types))
        changes.append(rng.uniform(0, 6) + np.cumsum(rng.uniform(0, 0.35, types)))
    order = np.argsort(np.concatenate(times))
    return pa.table(
        {
            "ts": np.arange(len(order), dtype=np.int64) + (np.concatenate(times)[order] * 10).astype(np.int64),
            "type": [f"C{kind + 1}" for kind in np.concatenate(kinds)[order]],
            "change": np.concatenate(changes)[order],
        }
    )


def sequence(types: int = 5, window: int = 60_000, slide: str = "") -> cepheid.Pattern:
    """Like Q1: all rise, one after the other, each a little more than the one before."""
    events = ", ".join(f"C{n} c{n}" for n in range(1, types + 1))
    near = " AND ".join(
        f"c{n + 1}.change > c{n}.change AND c{n + 1}.change < c{n}.change + 0.35" for n in range(1, types)
    )
    columns = ", ".join(f"c{n}.ts AS t{n}" for n in range(1, types + 1))
    return cepheid.parse(f"PATTERN SEQ({events}) WHERE {near} WITHIN {window} {slide} RETURN {columns}")


def players(count: int = 2000, *, defenders: int = 4, seed: int = 2) -> pa.Table:
    """Positions of a striker S, now and then in possession of the ball, and of defenders."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, defenders + 1, count)
    walk = np.cumsum(rng.normal(0, 0.5, (count, 2)), axis=0) % 60
    return pa.table(
        {
            "ts": np.arange(count, dtype=np.int64) * 100,
            "type": ["S" if kind == 0 else f"D{kind}" for kind in kinds],
            "x": np.where(kinds == 0, walk[:, 0], rng.uniform(0, 60, count)),
            "ball": rng.random(count) < 0.3,
        }
    )


def any_three(defenders: int = 4, window: int = 8000) -> cepheid.Pattern:
    """Like Q4: three defenders are near the striker soon after he has the ball."""
    events = ", ".join(f"D{n} d{n}" for n in range(1, defenders + 1))
    columns = ", ".join(f"d{n}.ts AS t{n}" for n in range(1, defenders + 1))
    near = " AND ".join(f"ABS(s.x - d{n}.x) < 12" for n in range(1, defenders + 1))
    return cepheid.parse(
        f"PATTERN SEQ(S s, ANY(3, {events})) WHERE s.ball AND {near} WITHIN {window} RETURN s.ts AS t, {columns}"
    )


def matches_after(
    pattern: cepheid.Pattern, events: pa.Table, shed: Strategy | None, ratio: float, batch: int = 200, **options: Any
) -> tuple[set[Any], dict[str, Any], int]:
    """The matches of the second half, in which ``ratio`` of the work is dropped; the report; and the work of that half.

    Work is pairs that were looked at, conditions that were evaluated, tuples that were made, and taking events in.
    """
    session = cepheid.Engine([pattern], shed=shed, **options).open()
    half, work, found = int(LEARNED * events.num_rows) // batch * batch, 0, []
    for start in range(0, events.num_rows, batch):
        if start == half:
            work = work_of(session)
            if shed is not None:
                session.overload(ratio)
        part = events.slice(start, batch)
        matches = session.push(part, watermark=part["ts"][0])
        if start >= half:
            found.append(matches)
    found.append(session.close())
    work = work_of(session) - work
    rows = zip(*(column.to_pylist() for column in pa.concat_tables(found).columns), strict=True)
    return set(rows), session.report(), work


def work_of(session: cepheid.Session) -> int:
    report = session.report()
    dropped = report.get("shedding", {}).get("events dropped", 0)
    tuples = sum(list(tally.steps.values())[-1] for state in session._states for tally in state._network.tallies)
    pairs = report["candidates"] + report["condition evaluations"] // 2
    return int(pairs + 20 * tuples + 100 * (report["events"] - dropped))


def recall_at(
    target: float, pattern: cepheid.Pattern, events: pa.Table, shed: Strategy, truth: tuple[set[Any], Any, int],
    **options: Any,
) -> tuple[float, float]:  # fmt: skip
    """Which part of the matches is found when so much of the work is done; and how much it was.

    ``truth``: what :func:`matches_after` says if nothing is dropped.

    Strategies keep to what they are asked more or less well, so they are asked until they do: as a detector of overload
    would.
    """
    full, _, all_work = truth
    low, high, best = 0.0, 1.0, (0.0, 0.0)
    for _ in range(5):
        ratio = (low + high) / 2
        found, _, work = matches_after(pattern, events, shed, ratio, **options)
        low, high = (ratio, high) if work > target * all_work else (low, ratio)
        if work <= target * all_work * 1.02:
            best = max(best, (len(found & full) / len(full), work / all_work), key=lambda found: found[0])
    return best
