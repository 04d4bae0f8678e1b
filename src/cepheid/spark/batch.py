"""Matching a whole DataFrame: rows to shards by key, or to slices of time, one engine session for each.

rows → Sender (Python) → parcels, by their part of the work → Receiver (Python) → matches
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from cepheid.engine.engine import Engine
from cepheid.pattern.normalise import normalise
from cepheid.spark.columns import arrow_schema, needed_columns, spark_schema
from cepheid.spark.entrance import entered
from cepheid.spark.groups import grouped
from cepheid.spark.plain_errors import plainly
from cepheid.spark.pushdown import any_of, wanted_rows
from cepheid.spark.routes import EVERYTHING, Key, Route, key_of
from cepheid.spark.sender import PARCELS, Lane, Sender
from cepheid.spark.sizing import about, crowds, parallelism
from cepheid.spark.slices import can_be_sliced, cut, reach_of
from cepheid.spark.spread import spread
from cepheid.spark.task import Receiver, Task, functions_in
from cepheid.spark.type_numbers import can_be_stamped, number_of, stamp, types_by_number

FEWEST = 50_000
"""Fewer rows than these are not worth a part of their own."""
LARGE = 2_000_000
"""More rows than these are too many for one."""
HANDY, FEW_PARTS = 750_000, 64
"""What an engine keeps of so many rows fits into the caches, whatever the number of keys. Worth it up to so many parts:
each has a parcel from every million rows."""


def match_batch(engine: Engine, df: DataFrame, *, shards: int | None = None, estimate: bool = True) -> DataFrame:
    """The matches of an engine's patterns, which have names and fit the columns, in all rows of a DataFrame.

    ``estimate``: choose plans by the events that a task sees first.
    """
    job = _Job(engine, df, shards, estimate)
    return job.matched(list(job.parts()))


@dataclass(frozen=True)
class _Part:
    """Patterns, by their places, whose events take the same route."""

    places: Sequence[int]
    key: Key | None
    route: Route


@dataclass
class _Crossing:
    """The columns that cross into Python, and the places among them of those of the events.

    ``types``: the texts that the numbers of the types stand for, if they cross as numbers; ``stamped``: in one column
    with the time.
    """

    columns: list[Column]
    place_of: dict[str, int]
    types: tuple[str, ...]
    stamped: bool

    def also(self, column: Column) -> int:
        """One more, and its place."""
        self.columns.append(column)
        return len(self.columns) - 1


class _Job:
    def __init__(self, engine: Engine, df: DataFrame, shards: int | None, estimate: bool) -> None:
        self._engine = engine
        self._shards = shards
        self._estimate = estimate
        self._events = arrow_schema(df.schema)
        self._matches = spark_schema(engine.output_schema(self._events))
        self._normals = [normalise(pattern) for pattern in engine.patterns]
        self._frame, self._named = entered(df)
        self._time = self._named[engine.columns.time]
        self._type = engine.columns.type

    # --- which way the rows go

    def parts(self) -> Iterator[_Part]:
        """Those patterns that can be sliced where that helps, and the others, whose events stay together."""
        hands = self._shards or self._hands()
        for group in grouped(self._normals, self._events.names):
            key = key_of(group.keys, self._named, self._events)
            sliceable = [place for place in group.places if can_be_sliced(self._normals[place])]
            route = Route(bool(key), hands if key else 1)
            # With one core, rows are torn apart for the caches alone, which only keys allow.
            if (key and not self._shards) or (sliceable and hands > 1):
                route = self._sized(sliceable, group.places, key, route, hands)
            if not route.slices:
                yield _Part(group.places, key, route)
                continue
            yield _Part(sliceable, key, route)
            if rest := [place for place in group.places if place not in sliceable]:
                yield _Part(rest, key, replace(route, slices={}))

    def _hands(self) -> int:
        """As many parts as keep everyone busy to the end."""
        cores = parallelism(self._frame.sparkSession)
        return 2 * cores if cores > 1 else 1

    def _sized(
        self, sliceable: Sequence[int], places: Sequence[int], key: Key | None, route: Route, hands: int
    ) -> Route:
        """With as many shards as there are rows for; and where several tasks run at once, with slices of patterns for
        which these can be: for all rows, if there are no keys, or for those of the keys that have too many."""
        wanted = self._wanted(sliceable or places)
        wanted = F.lit(True) if wanted is None else wanted
        if not sliceable or hands == 1:
            return replace(route, shards=_enough(hands, about(self._frame, wanted), keyed=True))
        reach = reach_of(self._normals[place] for place in sliceable)
        number = key.number if key else F.lit(EVERYTHING)
        total, crowded = crowds(self._frame, wanted, number, self._time, hands, FEWEST if key else 0)
        parts = self._shards or _enough(hands, total, bool(key))
        if key:
            cuts = {n: cut(crowd.times, -(-crowd.count * hands // total), 2, reach) for n, crowd in crowded.items()}
        else:
            cuts = {n: cut(crowd.times, parts, max(parts // 2, 1), reach) for n, crowd in crowded.items()}
        sliced = {n: slices for n, slices in cuts.items() if len(slices) > 1}
        return replace(route, shards=parts if key else 1, slices=sliced)

    def _wanted(self, places: Sequence[int]) -> Column | None:
        normals = [self._normals[place] for place in places]
        return wanted_rows(normals, self._engine.columns, self._events, self._named)

    # --- what is done with them

    def matched(self, parts: Sequence[_Part]) -> DataFrame:
        sender, rows = self._sender(parts)
        parcels = rows.mapInArrow(plainly(sender.run), PARCELS)
        addresses = [address for lane in sender.lanes for address in lane.addresses]
        parcels = parcels.repartition(len(addresses), F.col("part")).sortWithinPartitions("first")
        return parcels.mapInArrow(plainly(self._receiver(parts, sender).run), self._matches)

    def _sender(self, parts: Sequence[_Part]) -> tuple[Sender, DataFrame]:
        """What packs the rows, and the rows with what it needs to know of them."""
        wanted = [self._wanted(part.places) for part in parts]
        needed = [self._needed(part) for part in parts]
        crossing = self._crossing([name for name in self._events.names if any(name in some for some in needed)])
        unused = iter(spread(sum(len(part.route.spans) for part in parts)))
        lanes = []
        for part, condition, names in zip(parts, wanted, needed, strict=True):
            addresses = tuple(next(unused) for _ in part.route.spans)
            # The rows that no part wants stay where they are; so with one part, all that cross are wanted.
            lanes.append(self._lane(part, names, condition if len(parts) > 1 else None, addresses, crossing))
        rows = self._frame
        if all(condition is not None for condition in wanted):
            rows = rows.filter(any_of([condition for condition in wanted if condition is not None]))
        columns = [column.alias(f"r{place}") for place, column in enumerate(crossing.columns)]
        return Sender(tuple(lanes)), rows.select(*columns)

    def _crossing(self, names: Sequence[str]) -> _Crossing:
        """The columns of the events that are needed, types as numbers and in one with the time if that can be."""
        time, type_, sent = self._engine.columns.time, self._type or "", dict(self._named)
        types = types_by_number(self._engine, self._normals, self._events)
        stamped = bool(types) and can_be_stamped(self._engine.columns, self._events)
        if types:
            sent[type_] = number_of(sent[type_], types)
        if stamped:
            sent[time] = stamp(sent[time], sent[type_])
        alone = [name for name in names if not (stamped and name == type_)]
        place_of = {name: place for place, name in enumerate(alone)}
        if stamped:
            place_of[type_] = place_of[time]
        return _Crossing([sent[name] for name in alone], place_of, types, stamped)

    def _lane(
        self, part: _Part, names: list[str], wanted: Column | None, addresses: tuple[int, ...], crossing: _Crossing
    ) -> Lane:
        """The way of the events of a part, which has columns with these names."""
        keyed = None
        if part.key is not None:
            name = part.key.name
            keyed = crossing.place_of[name] if name in names else crossing.also(part.key.number)
        use = None if wanted is None else crossing.also(F.coalesce(wanted, F.lit(False)))
        places = tuple(crossing.place_of[name] for name in names)
        schema = pa.schema([self._events.field(name) for name in names])
        time = names.index(self._engine.columns.time)
        lane = Lane(places, schema, time, keyed, use, part.route, addresses)
        if not crossing.types:
            return lane
        return lane.with_types(names.index(self._type or ""), crossing.types, crossing.stamped)

    def _needed(self, part: _Part) -> list[str]:
        normals = [self._normals[place] for place in part.places]
        return needed_columns(self._engine_of(part), normals, self._events)

    def _engine_of(self, part: _Part) -> Engine:
        return replace(self._engine, patterns=tuple(self._engine.patterns[place] for place in part.places))

    def _receiver(self, parts: Sequence[_Part], sender: Sender) -> Receiver:
        matches = arrow_schema(self._matches)
        tasks = {}
        for part, lane in zip(parts, sender.lanes, strict=True):
            functions = functions_in([self._normals[place] for place in part.places])
            task = Task(self._engine_of(part), lane.events, matches, self._estimate, functions)
            tasks.update({a: (task, span) for a, span in zip(lane.addresses, part.route.spans, strict=True)})
        return Receiver(tasks)


def _enough(hands: int, rows: int, keyed: bool) -> int:
    """How many parts to make of so many rows."""
    handy = min(-(-rows // HANDY), FEW_PARTS) if keyed else 1
    return min(max(hands, handy, -(-rows // LARGE)), max(rows // FEWEST, 1))
