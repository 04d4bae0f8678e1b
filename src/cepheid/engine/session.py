"""A session: the state of running patterns."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from numbers import Real
from operator import is_
from time import perf_counter
from typing import Any

import pyarrow as pa

from cepheid.adapt.adapting import checked_migration
from cepheid.adapt.follower import Follower
from cepheid.engine.batches import in_one, nothing
from cepheid.engine.clock import END, Watermark, unit_of
from cepheid.engine.functions import bound
from cepheid.engine.ingest import Batch, EventColumns, EventTypes, InputError, without_views
from cepheid.engine.joiner import FOREVER
from cepheid.engine.looks import dump_looks, load_looks
from cepheid.engine.negation import REJECTED
from cepheid.engine.output import Output
from cepheid.engine.planning import Planning
from cepheid.engine.program import BranchProgram
from cepheid.engine.run import BranchRun
from cepheid.engine.snapshot import Arrays, below, from_array, pack, prefixed, to_array, unpack
from cepheid.engine.state import State
from cepheid.engine.tally import CANDIDATES, Tally
from cepheid.engine.vector import MICROSECONDS
from cepheid.language import syntax as s
from cepheid.language.functions import Function
from cepheid.language.pattern import Pattern
from cepheid.language.values import Timestamp
from cepheid.pattern.check import check
from cepheid.pattern.normal import Branch, NormalForm
from cepheid.pattern.normalise import normalise
from cepheid.pattern.read import parse
from cepheid.pattern.schema import columns_of
from cepheid.plan.sharing.apart import in_common
from cepheid.plan.sharing.plan import SharedPlan
from cepheid.plan.tree import Plan, as_lists
from cepheid.shed.lost import Lost
from cepheid.shed.strategies import Strategy
from cepheid.stats.estimates import Estimates


class Session:
    """Takes batches of events, in any order, and gives the matches that each of them decides. Made by an Engine."""

    def __init__(
        self,
        patterns: tuple[Pattern, ...],
        normals: tuple[NormalForm, ...],
        planning: Planning,
        columns: EventColumns,
        *,
        limit: int,
        negation: str,
        follower: Follower | None = None,
        shed: Strategy | None = None,
    ) -> None:
        self._shed = shed
        self._overload = 0.0
        self._planning = planning
        self._follower = follower
        self._patterns = patterns
        self._normals = normals
        self._plans = dict(planning.plans)
        self._columns = columns
        self._limit = limit
        self._negation = negation
        self._unit = MICROSECONDS
        branches = [branch for normal in normals for branch in normal.branches]
        self._types = EventTypes(_types(branches))
        self._functions: dict[str, Function | None] = {}  # of the caller's, as they were when they were first needed
        self._given: pa.Schema | None = None  # the columns of the events …
        self._schema: pa.Schema | None = None  # … and as they are kept
        self._states: list[State] = []
        self._nothing: pa.Table | None = None  # no matches of all patterns, once it was asked for
        self._watermark: int | None = None
        self._closed = False
        self._broken = False
        self._late: list[pa.RecordBatch] = []
        self.now = -FOREVER  # the time of the newest event; asked for by those who follow the data
        self.counts: Counter[str] = Counter()

    def push(self, events: pa.Table | pa.RecordBatch, watermark: Any = None) -> pa.Table:
        """Add events; the matches that are decided by them.

        ``watermark`` says that, after this batch, no event with an earlier time will come. It must not go back. What
        can still match is kept until then, and patterns with NOT wait for it.
        """
        self._refuse_if_over()
        if isinstance(events, pa.Table):
            parts = in_one(events)
            events = parts.pop()
            if parts:
                found = [self.push(part) for part in parts]
                return pa.concat_tables([*found, self.push(events, watermark)])
        started = 0.0 if self._follower is None else perf_counter()
        if self._given is None or not events.schema.equals(self._given):
            self.prepare(events.schema)
        if self._schema is not self._given:
            events = events.cast(self._schema)
        batch, late = self._without_late(self._batch(events))
        reached = self._advanced(watermark)
        found = self._push(batch, None if reached is None else Watermark(reached))
        self._watermark = reached
        self.counts["events"] += len(batch)
        if late is not None:
            self.counts["late events"] += late.num_rows
            self._late.append(late)
        if self._follower is not None and len(batch):
            self.now = max(self.now, batch.span[1])
            self._broken = True  # if it fails: nobody gets the matches of this push, and a plan may be half changed
            self._follower.after_push(self, started)
            self._broken = False
        return found

    def push_size(self, most: int) -> int:
        """How many events to push at once, so many at most: looks, where plans follow the data, are between pushes."""
        return most if self._follower is None else self._follower.push_size(most)

    def look(self) -> int:
        """Look at the statistics now, whatever ``check_every`` says, as when something is known to have changed.

        Plans change if that pays off: how many did. Without ``adapt`` none.
        """
        self._refuse_if_over()
        if self._follower is None or self._schema is None:
            return 0
        before = self._follower.changed
        self._broken = True
        self._follower.look(self)
        self._broken = False
        return self._follower.changed - before

    def _refuse_if_over(self) -> None:
        if self._closed:
            raise ValueError("this session is closed; open another one")
        if self._broken:
            raise ValueError("a push failed half-way, so what is kept cannot be trusted; restore a snapshot")

    def close(self) -> pa.Table:
        """No more events: the matches that were still waiting. Without any event there is no schema, and so nothing."""
        self._closed = True
        if self._schema is None:
            return pa.table({})
        return self._push(self._batch(nothing(self._schema)), Watermark(END))

    def overload(self, ratio: float) -> None:
        """From now on, drop this share of the work as the session's strategy says; 0: drop nothing.

        >>> import cepheid, pyarrow
        >>> engine = cepheid.Engine([cepheid.parse("PATTERN SEQ(A a, B b) WITHIN 10")], shed=cepheid.HSpice())
        >>> session = engine.open()
        >>> session.overload(0.5)
        >>> events = pyarrow.table({"ts": range(1000), "type": ["A", "B"] * 500})
        >>> session.push(events).num_rows < 2490
        True
        >>> session.report()["shedding"]["ready"]  # there was no time to learn: events were dropped at random
        False
        """
        if self._shed is None:
            raise ValueError(
                "this session has no strategy to drop work by: open it with Engine(…, shed=cepheid.HSpice())"
            )
        if not isinstance(ratio, Real) or not 0 <= ratio < 1:
            raise ValueError(f"the share of the work to drop is a number from 0 up to, not including, 1; got {ratio!r}")
        self._overload = float(ratio)
        for state in self._states:
            state.overload(self._overload)

    def late_events(self) -> pa.Table | None:
        """The events that came behind the watermark since they were last asked for."""
        late, self._late = self._late, []
        return pa.Table.from_batches(late) if late else None

    def report(self) -> dict[str, Any]:
        """What was done. The papers' metrics over all patterns, and under ``patterns`` each part of each plan.

        A part's ``steps`` are its funnel: how many candidates there were, how many were in order and in the window,
        how many satisfied each condition after the other. ``kept`` partial matches wait for more events now, ``peak``
        is the most there were after a push. Events that were put aside, as they complete no match, are pushed first.
        """
        self._catch_up()
        patterns = [
            {"pattern": normal.name, "branches": [[tally.report() for tally in branch] for branch in found]}
            for normal, found in self.tallies()
        ]
        tallies = [tally for state in self._states for tally in state.all_tallies]
        return {
            "events": self.counts["events"],
            "late events": self.counts["late events"],
            "matches": self.counts["matches"],
            "candidates": sum(tally.steps.get(CANDIDATES, 0) for tally in tallies),
            "condition evaluations": sum(tally.evaluations for tally in tallies),
            "rejected by negation": sum(tally.steps.get(REJECTED, 0) for tally in tallies),
            "partial matches": sum(state.partial_matches for state in self._states),
            "peak partial matches": self.counts["peak partial matches"],
            "buffered events": sum(state.buffered.kept for state in self._states),
            "peak buffered events": sum(state.buffered.peak for state in self._states),
            **({} if self._follower is None else {"adaptation": self._follower.report()}),
            **({} if self._shed is None else {"shedding": self.shedding()}),
            "patterns": patterns,
        }

    def shedding(self) -> dict[str, Any]:
        """What was dropped and what that cost: ``report()["shedding"]`` without the rest, for who asks often.

        Empty in a session without a strategy. Events that were put aside, as they complete no match, are left
        so: to ask changes nothing of what is dropped.
        """
        if self._shed is None:
            return {}
        shedders = [state.shedder for state in self._states if state.shedder is not None]
        lost = Lost()
        for shedder in shedders:
            lost.add(shedder.reckoned())
        return {
            "strategy": type(self._shed).__name__,
            "ratio": self._overload,
            "ready": bool(shedders) and all(shedder.model.ready for shedder in shedders),
            "drops": sorted({shedder.kind for shedder in shedders}),
            **lost.report(),
        }

    def shedding_model(self) -> bytes | None:
        """What was learned for shedding, apart from the rest of the state; None as long as there is no model.

        It is for sessions that are made again by pushing their events again: :meth:`resume_shedding` takes it.
        """
        shedders = [state.shedder for state in self._states if state.shedder is not None]
        if not any(shedder.model.ready for shedder in shedders):
            return None
        arrays: Arrays = {}
        for place, shedder in enumerate(shedders):
            arrays |= prefixed(f"shedding {place}", shedder.dump())
        return pack(arrays, {**self._what(), "shedding": [shedder.meta() for shedder in shedders]})

    def resume_shedding(self, model: bytes) -> bool:
        """Go on with what another session had learned; False, and nothing happens, if its plans were others.

        >>> import cepheid, pyarrow
        >>> strategy = cepheid.HSpice(observations=100)
        >>> engine = cepheid.Engine([cepheid.parse("PATTERN SEQ(A a, B b) WITHIN 10")], shed=strategy)
        >>> events = pyarrow.table({"ts": range(1000), "type": ["A", "B"] * 500})
        >>> session = engine.open()
        >>> pushed = [session.push(events.slice(start, 500)).num_rows for start in (0, 500)]
        >>> model = session.shedding_model()
        >>> other = engine.open()
        >>> schema = other.prepare(events.schema)
        >>> other.shedding()["ready"], other.resume_shedding(model), other.shedding()["ready"]
        (False, True, True)
        """
        arrays, meta = unpack(model)
        states = [state for state in self._states if state.shedder is not None]
        if any(meta[name] != found for name, found in self._what().items()) or len(states) != len(meta["shedding"]):
            return False
        self._catch_up()
        for place, (state, found) in enumerate(zip(states, meta["shedding"], strict=True)):
            state.resume_shedding(below(f"shedding {place}", arrays), found)
        return True

    @property
    def events(self) -> int:
        """How many events came in time."""
        return self.counts["events"]

    @property
    def work(self) -> dict[Branch, int]:
        """For each branch, how many candidates its plan has looked at and conditions it has evaluated."""
        self._catch_up()
        return {run.program.branch: run.work for run in self._runs}

    def work_of(self, branches: Collection[Branch]) -> int:
        """That of the plans of some branches together; what several of them have in common was done once."""
        self._catch_up()
        worked = {id(tally): tally for run in self._runs if run.program.branch in branches for tally in run.worked}
        return sum(tally.work for tally in worked.values())

    @property
    def pattern_names(self) -> dict[Branch, str]:
        """Of each branch; of one that several patterns have, all of theirs."""
        found: dict[Branch, list[str]] = {}
        for normal in self._normals:
            for branch in dict.fromkeys(normal.branches):
                found.setdefault(branch, []).append(normal.name)
        return {branch: ", ".join(names) for branch, names in found.items()}

    @property
    def _runs(self) -> Iterator[BranchRun]:
        return (run for state in self._states for run in state.runs.values())

    def ticks_of(self, nanoseconds: int) -> int:
        """A length of time on the clock of the events."""
        return max(1, nanoseconds // self._unit.nanoseconds)

    def moment(self, ticks: int) -> int | str:
        """A time of the events' clock as a reader knows it."""
        return str(Timestamp(ticks * self._unit.nanoseconds)) if self._keeps_time(self._schema) else ticks

    def _keeps_time(self, schema: pa.Schema | None) -> bool:
        return schema is not None and not pa.types.is_integer(schema.field(self._columns.time).type)

    def estimates(self, tried: int = 200) -> dict[Branch, Estimates]:
        """Arrival rates and selectivities of the last window, for each branch: what a new plan could be made with.

        Rates come from exponential histograms, selectivities from combinations of the events that are kept; where
        partitions count their own events, rates do so, too. ``tried``: so many of each variable are tried together; the
        more there are, the surer is what is found.
        """
        self._catch_up()
        return {branch: found for state in self._states for branch, found in state.estimates(tried).items()}

    def tallies(self) -> list[tuple[NormalForm, list[list[Tally]]]]:
        """For each pattern and branch what the parts of its plan have counted; nothing before the first event."""
        self._catch_up()
        return [
            (normal, [branch for state in self._states for branch in state.tallies(normal.name)])
            for normal in self._normals
        ]

    @property
    def plans(self) -> dict[Branch, Plan | None]:
        """The plan of each branch; None where there is no single event to plan for."""
        return dict(self._plans)

    @property
    def shares(self) -> bool:
        """Whether several patterns share work."""
        return self._planning.shares and len(self._plans) > 1

    @property
    def plans_together(self) -> bool:
        """Whether there is one plan for several patterns."""
        return self.shares and not self._planning.each_alone

    @property
    def together(self) -> frozenset[Branch]:
        """The branches whose plans are judged together, as they have work in common or could have."""
        if not self.shares or self.plans_together:
            return frozenset(self._plans if self.shares else ())
        return in_common(self._plans) - {run.program.branch for run in self._runs if not run.program.shares}

    def shared_plan(self) -> SharedPlan | None:
        """What the plans of several patterns share, and what that saves."""
        return self._planning.together() if self.shares else None

    @property
    def changing(self) -> frozenset[Branch]:
        """Those whose old plan still goes on beside the new one."""
        return frozenset(run.program.branch for run in self._runs if run.is_changing)

    def search_again(self, estimates: Mapping[Branch, Estimates]) -> tuple[Mapping[Branch, Plan], float]:
        """Plans for all branches that share work, and which part of the work of the present ones they save."""
        return self._planning.search_again(estimates)

    def change_plans(self, plans: Mapping[Branch, Plan], migrate: str = "rebuild") -> list[Branch]:
        """Go on with other plans for some branches; those for which it was done. No match is lost or doubled.

        ``migrate``: ``"rebuild"`` makes the new plan's partial matches of the events that are kept; ``"parallel"`` lets
        the old plan finish the matches that have an event from before the change, for one window.
        """
        checked_migration(migrate)
        done = [b for state in self._states for b in state.change(plans, rebuild=migrate == "rebuild")]
        self._plans = {**self._plans, **{branch: plans[branch] for branch in done}}
        self._planning.resume(self._plans)
        return list(dict.fromkeys(done))  # several patterns may have the same branch

    def programs(self) -> dict[str, list[BranchProgram]]:
        """For each pattern the programs of its branches, as in :meth:`tallies`; nothing before the first event."""
        return {
            normal.name: [r.program for state in self._states for key, r in state.runs.items() if key[0] == normal.name]
            for normal in self._normals
        }

    def add(self, pattern: Pattern | str) -> None:
        """One more pattern: it sees the events that come from now on. The others lose and repeat nothing.

        >>> import cepheid, pyarrow
        >>> session = cepheid.Engine([cepheid.parse("NAME one PATTERN SEQ(A a, B b) WITHIN 10")]).open()
        >>> def push(ts, kind):
        ...     found = session.push(pyarrow.table({"ts": [ts], "type": [kind]}))
        ...     return sorted(found["pattern"].to_pylist())
        >>> push(1, "A")
        []
        >>> session.add("NAME two PATTERN SEQ(A a, B b) WITHIN 20")
        >>> push(2, "B"), push(3, "A"), push(4, "B")
        (['one'], [], ['one', 'one', 'two'])
        >>> session.remove("one")
        >>> push(5, "B")
        ['two']
        """
        if isinstance(pattern, str):
            pattern = parse(pattern)
        taken = {normal.name for normal in self._normals}
        if pattern.name is None:
            free = next(n for n in itertools.count(len(taken) + 1) if f"pattern_{n}" not in taken)
            pattern = pattern.named(f"pattern_{free}")
        if pattern.name in taken:
            raise ValueError(f"there is a pattern called {pattern.name!r}: give this one another NAME")
        normal = normalise(pattern)
        if self._schema is not None:
            self._check((pattern,), self._schema)
            normal = bound(normal, self._functions)
            if unit_of((*self._normals, normal), self._schema) != self._unit:
                raise ValueError(
                    f"the pattern {pattern.name!r} has times in nanoseconds, and this session counts microseconds: "
                    "open another one with all patterns"
                )
            known = columns_of(self._schema, **self._names())
            new = Output(normal, self._schema, self._columns.time, known, self._unit, None).schema
            schemas = {name: found for state in self._states for name, found in state.schemas.items()}
            _refuse_clashes((*self._normals, normal), [*(schemas[n.name] for n in self._normals), new])
        plans = self._planning.add(normal)
        self._types.add(_types(normal.branches))
        self._patterns, self._normals, self._nothing = (*self._patterns, pattern), (*self._normals, normal), None
        self._plans |= plans
        if self._schema is None:
            return
        clock = _clock_of(normal)
        for state in self._states:
            if clock is None and _clock_of(state.normals[0]) is None:
                state.add(normal, plans)
                return
        # Where events are counted, those that wait for their number came before the pattern did.
        self._states.append(self._state((normal,)))

    def remove(self, name: str) -> None:
        """One pattern less. Its matches that wait for the watermark are not reported."""
        gone = next((normal for normal in self._normals if normal.name == name), None)
        if gone is None:
            raise ValueError(
                f"there is no pattern called {name!r}; there are {', '.join(n.name for n in self._normals)}"
            )
        if len(self._normals) == 1:
            raise ValueError(f"{name!r} is the last pattern: close the session instead")
        left = {branch for normal in self._normals if normal is not gone for branch in normal.branches}
        unused = [branch for branch in gone.branches if branch not in left]  # equal branches have one plan
        self._planning.remove(unused)
        self._patterns = tuple(pattern for pattern in self._patterns if pattern.name != name)
        self._normals = tuple(normal for normal in self._normals if normal.name != name)
        self._nothing = None
        self._plans = {branch: plan for branch, plan in self._plans.items() if branch not in unused}
        for state in self._states:
            if any(normal.name == name for normal in state.normals):
                state.remove(name)
        self._states = [state for state in self._states if state.normals]

    def snapshot(self) -> bytes:
        """The state as bytes; :meth:`Engine.restore` goes on exactly there."""
        meta = {
            **self._what(),
            "columns": [self._columns.time, self._columns.type, self._columns.tie_breaker],
            "watermark": self._watermark,
            "closed": self._closed,
            "counts": dict(self.counts),
            "states": [state.meta() for state in self._states],
            "overload": self._overload,
        }
        arrays: Arrays = {}
        if self._follower is not None:
            followed, looks = self._follower.dump(self._branches)
            known, found = dump_looks(looks, self._branches)
            meta["follower"] = [self.now, followed, known]
            arrays |= prefixed("looks", found)
        if self._schema is not None:
            arrays["schema"] = to_array(self._schema)
        for place, state in enumerate(self._states):
            arrays |= prefixed(f"state {place}", state.dump())
        for place, late in enumerate(self._late):
            arrays[f"late {place}"] = to_array(late.schema, [late])
        return pack(arrays, meta)

    @property
    def _branches(self) -> list[Branch]:
        """Each once, in the order of the patterns."""
        return list(dict.fromkeys(branch for normal in self._normals for branch in normal.branches))

    def _what(self) -> dict[str, Any]:
        return {
            "patterns": [str(pattern) for pattern in self._patterns],
            "plans": [as_lists(self._plans[b]) for n in self._normals for b in n.branches],
        }

    def load(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        """Take the state of a snapshot of the same patterns."""
        self._watermark, self._closed = meta["watermark"], meta["closed"]
        self.counts = Counter(meta["counts"])
        self._overload = 0.0 if self._shed is None else meta.get("overload", 0.0)
        if self._follower is not None and meta.get("follower") is not None:
            self.now, followed, known = meta["follower"]
            self._follower.load(self._branches, followed, load_looks(self._branches, known, below("looks", arrays)))
        late = (array for name, array in arrays.items() if name.startswith("late "))
        self._late = [batch for array in late for batch in from_array(array).to_batches()]
        if "schema" in arrays:
            self._prepared(from_array(arrays["schema"]).schema, meta["states"])
            for place, (state, found) in enumerate(zip(self._states, meta["states"], strict=True)):
                state.load(below(f"state {place}", arrays), found)

    def prepare(self, schema: pa.Schema) -> pa.Schema:
        """Get ready for events with these columns; the columns of the matches. The first push does it too.

        >>> import cepheid, pyarrow
        >>> session = cepheid.Engine([cepheid.parse("PATTERN A a WITHIN 10 RETURN a.x")]).open()
        >>> session.prepare(pyarrow.schema({"ts": "int64", "type": "string", "x": "double"})).names
        ['pattern', 'start', 'end', 'x']
        """
        return self._prepared(schema)

    def _prepared(self, schema: pa.Schema, states: list[dict[str, Any]] | None = None) -> pa.Schema:
        """``states``: those of a snapshot."""
        given, schema = schema, without_views(schema)
        if self._schema is None:
            self._check(self._patterns, schema)
            self._normals = tuple(bound(normal, self._functions) for normal in self._normals)
            if self._follower is not None and self._follower.looks_by_time and not self._keeps_time(schema):
                raise InputError(
                    f"check_every is a length of time, and the time column {self._columns.time!r} holds numbers: "
                    "give a number of events"
                )
            self._unit = unit_of(self._normals, schema)
            groups: list[tuple[tuple[NormalForm, ...], Any]] = [(group, None) for group in _by_clock(self._normals)]
            if states is not None:
                by_name = {normal.name: normal for normal in self._normals}
                groups = [(tuple(by_name[name] for name in found["patterns"]), found["runs"]) for found in states]
            self._given, self._schema = given, given if schema.equals(given) else schema
            self._states = [self._state(group, runs) for group, runs in groups]
        elif not schema.equals(self._schema):
            raise InputError(
                f"the columns of this batch differ from those of the first: expected\n{self._schema}\ngot\n{schema}"
            )
        schemas = {name: found for state in self._states for name, found in state.schemas.items()}
        in_turn = [schemas[normal.name] for normal in self._normals]
        _refuse_clashes(self._normals, in_turn)
        return pa.unify_schemas(in_turn)

    def _names(self) -> dict[str, Any]:
        return {"time": self._columns.time, "type": self._columns.type, "tie_breaker": self._columns.tie_breaker}

    def _check(self, patterns: tuple[Pattern, ...], schema: pa.Schema) -> None:
        check(patterns, schema, **self._names())

    def _state(self, normals: tuple[NormalForm, ...], runs: Any = None) -> State:
        assert self._schema is not None
        state = State(
            normals, self._plans, self._columns, self._schema, self._unit, self._types,
            limit=self._limit, negation=self._negation, share=self._planning.shares, shed=self._shed, runs=runs,
        )  # fmt: skip
        state.overload(self._overload)
        return state

    def _catch_up(self) -> None:
        for state in self._states:
            state.catch_up()

    def _batch(self, events: pa.RecordBatch) -> Batch:
        return Batch(events, self._columns, self._unit, self._types)

    def _ticks(self, time: Any) -> int:
        """A time as the caller writes it, on the engine's clock."""
        if isinstance(time, int):
            return time
        scalar = time if isinstance(time, pa.Scalar) else pa.scalar(time)
        if pa.types.is_integer(scalar.type):
            return int(scalar.as_py())
        keeps_time = self._keeps_time(self._schema)
        if not keeps_time or not (pa.types.is_timestamp(scalar.type) or pa.types.is_date(scalar.type)):
            kind = "a time" if keeps_time else "a whole number"
            raise InputError(f"the watermark is {kind}, as the column {self._columns.time!r} holds; got {time!r}")
        zone = scalar.type.tz if pa.types.is_timestamp(scalar.type) else None
        return int(scalar.cast(pa.timestamp(self._unit.name, zone)).value)

    def _push(self, batch: Batch, watermark: Watermark | None) -> pa.Table:
        numbered = []
        for state in self._states:
            numbered.append(state.number(batch, watermark))  # may find that events are in no definite order
            self._broken = self._broken or len(self._states) > 1
        self._broken = True
        parts = [state.push(part, reached) for state, (part, reached) in zip(self._states, numbered, strict=True)]
        self._broken = False
        if self._nothing is not None and all(map(is_, parts, [state.nothing for state in self._states])):
            return self._nothing  # the events were put aside
        found = parts[0] if len(parts) == 1 else {name: table for part in parts for name, table in part.items()}
        tables = [found[normal.name] for normal in self._normals]
        self.counts["matches"] += sum([table.num_rows for table in tables])
        partial = sum([state.partial_matches for state in self._states])
        if partial > self.counts["peak partial matches"]:
            self.counts["peak partial matches"] = partial
        return self._joined(tables)

    def _joined(self, tables: list[pa.Table]) -> pa.Table:
        """The matches of several patterns, with the columns of all; most patterns have none in a push."""
        if self._nothing is None:
            self._nothing = pa.concat_tables(tables, promote_options="permissive").slice(0, 0)
        if len(tables) == 1:
            return tables[0]
        some = [table for table in tables if table.num_rows]
        return pa.concat_tables([self._nothing, *some], promote_options="permissive") if some else self._nothing

    def _without_late(self, batch: Batch) -> tuple[Batch, pa.RecordBatch | None]:
        """The events that came in time, and those that did not. What is wrong with them is said here."""
        if not len(batch):
            return batch, None
        times = batch.times(self._columns.time, "time")
        if self._columns.tie_breaker is not None:
            batch.times(self._columns.tie_breaker, "tie-breaker")
        if self._watermark is None or batch.span[0] >= self._watermark:
            return batch, None
        late = times < self._watermark
        return self._batch(batch.events.filter(pa.array(~late))), batch.events.filter(pa.array(late))

    def _advanced(self, watermark: Any) -> int | None:
        """The watermark after a push."""
        if watermark is None:
            return self._watermark
        ticks = self._ticks(watermark)
        if self._watermark is not None and ticks < self._watermark:
            raise ValueError(f"the watermark went back, from {self._watermark} to {ticks}")
        return ticks


def _by_clock(normals: tuple[NormalForm, ...]) -> list[tuple[NormalForm, ...]]:
    """The patterns whose windows are of time; and, by partition, those that count events."""
    groups: dict[tuple[str, ...] | None, list[NormalForm]] = {}
    for normal in normals:
        groups.setdefault(_clock_of(normal), []).append(normal)
    return [tuple(group) for group in groups.values()]


def _clock_of(normal: NormalForm) -> tuple[str, ...] | None:
    """None for time; where events are counted, the partition in which they are."""
    branch = normal.branches[0]
    return branch.partition if branch.window.kind is s.WindowKind.EVENTS else None


def _types(branches: Iterable[Branch]) -> list[str]:
    return [name for b in branches for name in (*(v.type for v in b.variables), *(n.type for n in b.negations))]


def _refuse_clashes(normals: tuple[NormalForm, ...], schemas: list[pa.Schema]) -> None:
    """Patterns that are matched together share a table, so a column has one type in all of them."""
    seen: dict[str, tuple[str, pa.DataType]] = {}
    for normal, schema in zip(normals, schemas, strict=True):
        for field in schema:
            owner, type_ = seen.setdefault(field.name, (normal.name, field.type))
            if type_ != field.type:
                raise InputError(
                    f"the column {field.name!r} is {type_} in {owner} and {field.type} in {normal.name}. "
                    "Give one of them another name, or match the patterns apart."
                )
