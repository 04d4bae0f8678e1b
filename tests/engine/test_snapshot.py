"""Snapshots: what they hold, and what is no snapshot."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.snapshot import MAGIC, VERSION, SnapshotError

PATTERN = cepheid.parse("PATTERN SEQ(A a, KL(B b), NOT(C c)) WHERE a.k = b.k PARTITION BY p WITHIN 10")


def events(start: int) -> pa.Table:
    n = 20
    return pa.table(
        {
            "ts": range(start, start + n),
            "type": ["ABC"[i % 2] for i in range(n)],
            "k": ["x" if i % 3 else "y" for i in range(n)],
            "p": [i % 2 if i % 5 else None for i in range(n)],
        }
    )


def test_a_restored_session_goes_on_where_it_was() -> None:
    engine = cepheid.Engine([PATTERN])
    straight, broken = engine.open(), engine.open()
    for start in range(0, 200, 20):
        broken = engine.restore(broken.snapshot())
        late = start - 5 if start == 100 else start
        one, other = (session.push(events(late), watermark=start + 20) for session in (straight, broken))
        assert one.equals(other)
    assert straight.report() == broken.report()
    assert straight.report()["late events"] == 5
    restored = engine.restore(broken.snapshot())
    late_events = [session.late_events() for session in (restored, straight)]
    assert late_events[0] == late_events[1]
    assert late_events[0] is not None
    assert restored.close().equals(straight.close())


def test_a_session_without_events_can_be_restored() -> None:
    engine = cepheid.Engine([PATTERN])
    session = engine.restore(engine.open().snapshot())
    assert session.push(events(0), watermark=100).equals(engine.open().push(events(0), watermark=100))


def test_the_same_state_is_the_same_bytes() -> None:
    engine = cepheid.Engine([PATTERN])
    session = engine.open()
    session.push(events(0), watermark=5)
    blob = session.snapshot()
    assert engine.restore(blob).snapshot() == blob


def test_what_cannot_be_restored() -> None:
    engine = cepheid.Engine([PATTERN])
    session = engine.open()
    session.push(events(0))
    blob = session.snapshot()
    with pytest.raises(SnapshotError, match="no snapshot"):
        engine.restore(b"something else")
    with pytest.raises(SnapshotError, match=rf"format '99'.*reads format {VERSION}"):
        engine.restore(MAGIC + b"99\n" + blob[len(MAGIC) + 2 :])
    for damaged in (blob[:-100], blob[: len(MAGIC) + 50], MAGIC + f"{VERSION}\n".encode()):
        with pytest.raises(SnapshotError, match="damaged"):
            engine.restore(damaged)
    with pytest.raises(SnapshotError, match="patterns of this snapshot are others"):
        cepheid.Engine([cepheid.parse("PATTERN A a WITHIN 5")]).restore(blob)
