"""The engine: patterns in, a session that takes batches of events and gives matches."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from cepheid.adapt.adapting import Adapting, Migration, checked_migration
from cepheid.adapt.every import CheckEvery, Every
from cepheid.adapt.follower import Follower
from cepheid.adapt.policies import Policy, policy_of
from cepheid.engine.ingest import EventColumns
from cepheid.engine.planning import AS_WRITTEN, Planning, Share, checked_share
from cepheid.engine.session import Session
from cepheid.engine.snapshot import SnapshotError, plan_from_json, unpack
from cepheid.language import syntax as s
from cepheid.language.pattern import Pattern, with_names
from cepheid.pattern.normal import Branch, NormalForm
from cepheid.pattern.normalise import normalise
from cepheid.plan.planner import PLANNERS, UNASKED
from cepheid.shed.strategies import checked_strategy
from cepheid.stats.estimates import Estimates

NEGATIONS = ("auto", "first_chance", "post")


@dataclass(frozen=True)
class Engine:
    """Patterns and how to run them: an immutable description. :meth:`open` starts a session.

    >>> import cepheid, pyarrow
    >>> engine = Engine([cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 10")])
    >>> session = engine.open()
    >>> events = pyarrow.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [5, 7, 3]})
    >>> session.push(events).select(["start", "end"]).to_pylist()
    [{'start': 1, 'end': 2}]
    """

    patterns: Sequence[Pattern]
    columns: EventColumns = field(default_factory=EventColumns)
    planner: str = "auto"
    order: Sequence[str] | None = None
    estimates: Mapping[Branch, Estimates] = field(default_factory=dict)
    max_partial_matches: int = 100_000_000
    negation: str = "auto"
    adapt: Policy | bool | str | None = None
    check_every: CheckEvery = None
    migrate: Migration = "rebuild"
    share: Share = None
    shed: Any = None
    """A strategy, or the word for one; once the engine is made, a strategy or None."""

    def __post_init__(self) -> None:
        checked_share(self.share)
        policy = policy_of(self.adapt)
        Every.of(self.check_every)  # also where nothing follows the data: it would by adapt= alone
        checked_migration(self.migrate)
        named = self._named()
        if policy is not None and (stays := self._never_changes(len(named))):
            warnings.warn(stays, stacklevel=3)
        if self.shed is not None:
            object.__setattr__(self, "shed", checked_strategy(self.shed, [str(pattern.name) for pattern in named]))
        if self.negation not in NEGATIONS:
            raise ValueError(f"negation is one of {', '.join(NEGATIONS)}; got {self.negation!r}")
        if self.planner != "auto" and self.planner not in PLANNERS:
            raise ValueError(f"planner is 'auto' or one of {', '.join(PLANNERS)}; got {self.planner!r}")

    def _never_changes(self, patterns: int) -> str | None:
        """Why plans could not follow the data, and what to do."""
        if self.share == AS_WRITTEN and patterns > 1:
            return (
                f"with share={AS_WRITTEN!r}, plans are as the patterns are written, and adapt= never changes them: "
                "leave share= out, or take share='prefix' or a cepheid.Sharing"
            )
        if self.order is not None:
            return "with order=, the plan is the chain that it names, and adapt= never changes it: leave order= out"
        planning = self._planning()
        if self.planner in UNASKED and (planning.each_alone or not planning.shares):
            return (
                f"with planner={self.planner!r}, the plan is the same whatever comes, and adapt= never changes it: "
                "leave planner= out, or name another one"
            )
        return None

    def open(self) -> Session:
        """A session without events yet."""
        normals, planning = self._normals(), self._planning()
        planning.start(normals)
        return self._session(normals, planning)

    def restore(self, blob: bytes) -> Session:
        """The session of a snapshot, which must be of the same patterns and columns. It goes on with the plans it had.

        >>> import cepheid, pyarrow
        >>> engine = Engine([cepheid.parse("PATTERN SEQ(A a, B b) WITHIN 10")])
        >>> session = engine.open()
        >>> session.push(pyarrow.table({"ts": [1], "type": ["A"]})).num_rows
        0
        >>> session = engine.restore(session.snapshot())
        >>> session.push(pyarrow.table({"ts": [2], "type": ["B"]})).num_rows
        1
        """
        arrays, meta = unpack(blob)
        ours = {
            "patterns": [str(pattern) for pattern in self._named()],
            "columns": [self.columns.time, self.columns.type, self.columns.tie_breaker],
        }
        for what, expected in ours.items():
            if meta[what] != expected:
                raise SnapshotError(f"the {what} of this snapshot are others: expected {expected}, found {meta[what]}")
        normals = self._normals()
        branches = [branch for normal in normals for branch in normal.branches]
        planning = self._planning()
        planning.resume(dict(zip(branches, map(plan_from_json, meta["plans"]), strict=True)))
        session = self._session(normals, planning)
        session.load(arrays, meta)
        return session

    def output_schema(self, events: pa.Schema) -> pa.Schema:
        """The columns of the matches in events of a schema, known without running.

        >>> import cepheid, pyarrow
        >>> engine = Engine([cepheid.parse("PATTERN SEQ(A a, B b) WITHIN 10 RETURN a.x + b.x AS total")])
        >>> engine.output_schema(pyarrow.schema({"ts": "int64", "type": "string", "x": "int32"})).names
        ['pattern', 'start', 'end', 'total']
        """
        unplanned = replace(self, planner="rate", order=None, share="none", shed=None)
        return unplanned.open().prepare(events)

    def needed_columns(self, events: pa.Schema) -> list[str]:
        """The columns of the events that the patterns look at or give out; the others may be left away.

        >>> import cepheid, pyarrow
        >>> engine = Engine([cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 10 RETURN a.y")])
        >>> engine.needed_columns(pyarrow.schema({n: "int64" for n in ("ts", "type", "x", "y", "z")}))
        ['ts', 'type', 'x', 'y']
        """
        if any(pattern.output is None for pattern in self.patterns):
            return list(events.names)
        # As written: what is simplified away must still be there when the pattern is checked.
        expressions = [
            *(pattern.condition for pattern in self.patterns if pattern.condition is not None),
            *(item.expression for pattern in self.patterns for item in pattern.output or ()),
        ]
        nodes = [node for expression in expressions for node in s.walk(expression)]
        if any(isinstance(node, s.EventRef) for node in nodes):
            return list(events.names)
        named = {node.name for node in nodes if isinstance(node, (s.Attribute, s.Neighbour))}
        named |= {column.name for pattern in self.patterns for column in pattern.partition}
        named |= {self.columns.time, self.columns.type or "", self.columns.tie_breaker or ""}
        return [name for name in events.names if name in named]

    def limited_to(self, patterns: Sequence[Pattern]) -> Engine:
        """The same with some of its patterns, which have names."""
        shed = None if self.shed is None else self.shed.for_patterns([str(pattern.name) for pattern in patterns])
        return replace(self, patterns=tuple(patterns), shed=shed)

    def _normals(self) -> tuple[NormalForm, ...]:
        return tuple(normalise(pattern) for pattern in self._named())

    def _named(self) -> tuple[Pattern, ...]:
        if isinstance(self.patterns, (str, Pattern)) or not all(isinstance(one, Pattern) for one in self.patterns):
            raise TypeError(
                f"an engine takes a list of patterns; got {self.patterns!r:.80}. Read text with "
                "cepheid.parse_all(text), and put a single pattern into a list"
            )
        named = with_names(self.patterns)
        if not named:
            raise ValueError("there are no patterns; give one or more")
        for place, pattern in enumerate(named):
            if any(pattern.name == earlier.name for earlier in named[:place]):
                raise ValueError(f"two patterns are called {pattern.name!r}: give one of them another NAME")
        return named

    def _planning(self) -> Planning:
        return Planning(self.planner, self.order, self.estimates, self.share)

    def _session(self, normals: tuple[NormalForm, ...], planning: Planning) -> Session:
        return Session(
            self._named(), normals, planning, self.columns, limit=self.max_partial_matches, negation=self.negation,
            follower=self._follower(), shed=self.shed,
        )  # fmt: skip

    def _follower(self) -> Follower | None:
        policy = policy_of(self.adapt)
        if policy is None or self._never_changes(len(self._named())) is not None:
            return None
        return Follower(Adapting(policy, self.planner, self.check_every, self.migrate, self.estimates))
