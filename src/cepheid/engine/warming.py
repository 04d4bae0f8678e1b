"""Before the first event: load the compiled kernels, which takes longer than many a bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine import gate
from cepheid.engine.engine import Engine
from cepheid.engine.ingest import EventColumns
from cepheid.engine.joiner import LimitError
from cepheid.language import syntax as s
from cepheid.language.functions import SCALARS
from cepheid.language.pattern import Pattern
from cepheid.language.problems import CepheidError
from cepheid.pattern.normalise import normalise

WARM_UP = 2_048
"""Events of a preview that a session is warmed up with."""
GUESSES = (pa.float64(), pa.string())
"""What attributes may be, where nobody has said it."""


def warm_up(engine: Engine, patterns: Sequence[Pattern], preview: pa.Table | None, columns: EventColumns) -> None:
    """Push the preview, or some made-up events, into a session that nobody sees."""
    if preview is not None and preview.num_rows:
        _push(engine, preview.slice(0, WARM_UP), columns.time)
        return
    if any(isinstance(node, s.Call) and node.function not in SCALARS for p in patterns for node in _expressions(p)):
        return  # a function of the caller's is for real events
    schemas = [_guessed(patterns, columns, guess) for guess in GUESSES] if preview is None else [preview.schema]
    for schema in schemas:
        try:
            _push(engine, made_up(patterns, schema, columns), columns.time)
        except (CepheidError, pa.ArrowException):
            continue  # a guess that is wrong, or a column that nothing can be made up for: the first push takes longer
        return


def _push(engine: Engine, events: pa.Table, time: str) -> None:
    if engine.shed is not None:
        gate.warm_up()
    session = engine.open()
    times = events[time]
    in_order = pc.all(pc.less_equal(times[:-1], times[1:])).as_py() is not False
    size = -(-events.num_rows // 4)
    with suppress(LimitError):  # for the first events of a stream to run into, not for those that nobody sees
        for place in range(0, events.num_rows, size):
            session.push(events.slice(place, size), watermark=times[place] if in_order else None)
        session.close()


def made_up(patterns: Sequence[Pattern], schema: pa.Schema, columns: EventColumns) -> pa.Table:
    """Two events of each type that the patterns name, one tick after the other; no more, since all may match.

    >>> import cepheid
    >>> pattern = cepheid.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 10")
    >>> made_up([pattern], pa.schema({"ts": "int64", "type": "string", "x": "float64"}), EventColumns()).to_pylist()[2:]
    [{'ts': 2, 'type': 'A', 'x': 1.0}, {'ts': 3, 'type': 'B', 'x': 1.0}]
    """
    types = list(dict.fromkeys(types_of(patterns)))
    count = 2 * len(types)
    table = {}
    for field in schema:
        kind = field.type
        if field.name == columns.type:
            values = pa.array(2 * types)
        elif field.name in (columns.time, columns.tie_breaker):
            values = pa.array(range(count), pa.int64())
        else:
            values = pa.array([int(n >= len(types)) for n in range(count)], pa.int64())
        table[field.name] = values.cast(kind)
    return pa.table(table)


def types_of(patterns: Iterable[Pattern]) -> list[str]:
    """The types of the events that patterns look at."""
    branches = [branch for pattern in patterns for branch in normalise(pattern).branches]
    return [v.type for b in branches for v in b.variables] + [n.type for b in branches for n in b.negations]


def _guessed(patterns: Sequence[Pattern], columns: EventColumns, attributes: pa.DataType) -> pa.Schema:
    names = dict.fromkeys((name for pattern in patterns for name in _attributes(pattern)), attributes)
    if columns.type is not None:
        names[columns.type] = pa.string()
    if columns.tie_breaker is not None:
        names[columns.tie_breaker] = pa.int64()
    in_time = any(p.window is not None and p.window.kind is s.WindowKind.TIME for p in patterns)
    return pa.schema({**names, columns.time: pa.timestamp("us") if in_time else pa.int64()})


def _attributes(pattern: Pattern) -> Iterator[str]:
    """The names of the columns that a pattern reads."""
    yield from (column.name for column in pattern.partition)
    yield from (node.name for node in _expressions(pattern) if isinstance(node, (s.Attribute, s.Neighbour)))


def _expressions(pattern: Pattern) -> Iterator[s.Expression]:
    for part in (pattern.condition, *(item.expression for item in pattern.output or ())):
        if part is not None:
            yield from s.walk(part)
