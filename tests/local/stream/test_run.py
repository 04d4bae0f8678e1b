"""Streams on one machine: the same matches as in a table, whatever they come from and go to."""

from __future__ import annotations

import datetime as dt
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import cepheid
from cepheid.engine.ingest import EventColumns
from cepheid.local.signals import Stop
from cepheid.local.stream.line_parser import LineParser, LinesError
from cepheid.local.stream.lines import Socket, read_lines
from cepheid.local.stream.queue import Chunk, EventQueue
from cepheid.local.stream.rejected import Rejected
from cepheid.local.stream.result import StreamResult
from cepheid.local.stream.runner import Runner
from cepheid.local.stream.sinks import Collect, ParquetFolder

PATTERN = "NAME up PATTERN SEQ(A a, NOT(C c), B b) WHERE a.x < b.x WITHIN 20 RETURN a.x AS low, b.x AS high"
EVENTS = pa.table(
    {
        "ts": list(range(3000)),
        "type": ["ABABBAABABC"[n * 7 % 11] for n in range(3000)],
        "x": [(n * 7919) % 101 for n in range(3000)],
    }
)
SCHEMA = EVENTS.schema


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.fixture(scope="module")
def expected() -> list[tuple[Any, ...]]:
    found = rows(cepheid.match(PATTERN, EVENTS))
    assert len(found) > 1000
    return found


def json_of(table: pa.Table) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in table.to_pylist())


# --- sources


@pytest.mark.parametrize(
    "source",
    [
        EVENTS,
        EVENTS.to_pylist(),
        cepheid.Replay(EVENTS, rate=30_000),
        cepheid.Replay(EVENTS, speed=30_000),
        cepheid.Replay(EVENTS.take(list(reversed(range(3000)))), speed=30_000),
    ],
    ids=["table", "list", "rate", "speed", "sorted by its times"],
)
def test_replayed(source: Any, expected: list[Any]) -> None:
    result = cepheid.run(PATTERN, source)
    assert rows(result.matches) == expected
    assert (result.events, result.found, result.late, result.stopped) == (3000, len(expected), 0, False)


def test_batches_from_an_iterable(expected: list[Any]) -> None:
    assert rows(cepheid.run(PATTERN, (EVENTS.slice(n, 100) for n in range(0, 3000, 100))).matches) == expected


def test_a_path(tmp_path: Path, expected: list[Any]) -> None:
    path = tmp_path / "events.parquet"
    pa.parquet.write_table(EVENTS, path)
    assert rows(cepheid.run(PATTERN, str(path)).matches) == expected


def test_time_stamps_of_their_own(expected: list[Any]) -> None:
    """An event each millisecond, five times as fast."""
    times = pa.array([n * 1000 for n in range(3000)], pa.timestamp("us"))
    result = cepheid.run(
        PATTERN.replace("WITHIN 20", "WITHIN 20 ms"), cepheid.Replay(EVENTS.set_column(0, "ts", times), speed=5)
    )
    assert result.found == len(expected)
    assert 0.59 < result.seconds < 60


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_a_socket(schema: pa.Schema | None, expected: list[Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            text = json_of(EVENTS)
            with connection:
                for start in range(0, len(text), 7_777):  # lines are cut anywhere
                    connection.sendall(text[start : start + 7_777])

        thread = threading.Thread(target=serve)
        thread.start()
        result = cepheid.run(PATTERN, f"tcp://127.0.0.1:{server.getsockname()[1]}", schema=schema)
        thread.join()
    assert rows(result.matches) == expected


def test_a_socket_that_listens(expected: list[Any]) -> None:
    def connect(port: int) -> None:
        threading.Thread(target=_send, args=(port, json_of(EVENTS)), daemon=True).start()

    result = cepheid.run(PATTERN, Socket("127.0.0.1", 0, listen=True, on_listening=connect))
    assert rows(result.matches) == expected


SCRIPT = """
import sys, cepheid
result = cepheid.run(sys.argv[1], "-", "-")
print(result.events, result.found, result.stopped, file=sys.stderr)
"""


def test_standard_input_to_standard_output(expected: list[Any]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, PATTERN], input=json_of(EVENTS), capture_output=True, check=True
    )
    assert sorted(tuple(json.loads(line).values()) for line in done.stdout.splitlines()) == expected
    assert done.stderr.split() == [b"3000", str(len(expected)).encode(), b"False"]


def test_a_signal_stops_a_stream_that_waits() -> None:
    """All that had come is matched and written; what waited for the end comes too."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, PATTERN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    some = EVENTS.slice(0, 500)
    process.stdin.write(json_of(some))
    process.stdin.flush()
    first = process.stdout.readline()  # it has begun
    process.send_signal(signal.SIGINT)
    out = first + process.stdout.read()
    said = process.stderr.read()
    assert process.wait() == 0, said
    assert len(out.splitlines()) == cepheid.match(PATTERN, some).num_rows
    assert said.split()[-1] == b"True"


def test_lines_that_are_no_events() -> None:
    for text, said in [
        (
            b'{"ts": 1, "type": "A", "x": 1}\n{"ts": 2, "type": "B", "x": 2, "y": 3}\nnonsense\n',
            "expected a JSON object",
        ),
        (b'{"ts": 1, "type": "A", "x": 1}\n{"ts": 2, "type": "B", "x": null}\n', None),
    ]:
        reader, writer = socket.socketpair()
        writer.sendall(text)
        writer.close()
        with reader, Stop() as stop:
            chunks = read_lines(reader.fileno(), LineParser("lines", None, "ts"), stop)
            if said is None:
                assert sum(len(chunk) for chunk in chunks) == 2
            else:
                with pytest.raises(LinesError, match=said):
                    list(chunks)


def test_a_field_that_comes_later_is_not_lost_silently() -> None:
    parser = LineParser("lines", None, "ts")
    parser.table(b'{"ts": 1, "type": "A"}')
    with pytest.raises(LinesError, match=r"lines, line 2: .*\n.*ts int64, type string.*schema"):
        parser.table(b'{"ts": 1, "type": "A", "x": 4}')


@pytest.mark.parametrize(
    "schema", ["ts int64, type string, x long", {"ts": "long", "type": pa.string(), "x": "int64"}, SCHEMA]
)
def test_a_schema_is_arrows_or_text_or_a_dictionary(schema: Any, expected: list[Any]) -> None:
    def connect(port: int) -> None:
        threading.Thread(target=_send, args=(port, json_of(EVENTS)), daemon=True).start()

    from cepheid.local.stream.schema import schema_of

    source = Socket("127.0.0.1", 0, listen=True, schema=schema_of(schema), on_listening=connect)
    assert rows(cepheid.run(PATTERN, source).matches) == expected


def _send(port: int, text: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(text)


def test_what_is_no_schema() -> None:
    with pytest.raises(ValueError, match=r"schema: expected names and types, such as .*; found 'x doubel'"):
        cepheid.run(PATTERN, "-", schema="ts timestamp, x doubel")
    with pytest.raises(TypeError, match=r"schema is a pyarrow.Schema, a dictionary, or text .*; got 3"):
        cepheid.run(PATTERN, "-", schema=3)


@pytest.mark.parametrize("source", [EVENTS, "events.parquet", cepheid.Replay(EVENTS), [EVENTS]])
def test_a_schema_is_not_for_events_that_have_one(source: Any) -> None:
    with pytest.raises(ValueError, match="schema is for events that come as JSON"):
        cepheid.run(PATTERN, source, schema=SCHEMA)


def test_a_column_without_a_value_needs_a_schema() -> None:
    said = "lines, line 1 to 2: the column 'x' has no value in these first lines.* such as 'ts int64, x double'"
    with pytest.raises(LinesError, match=said):
        LineParser("lines", None, "ts").table(b'{"ts": 1, "x": null}\n{"ts": 2, "x": null}')


# --- lines that are no events

BAD = [
    b"nonsense",
    b"5",
    b"null",
    b'{"ts": 3, "type": "A"',
    b'{"ts": "soon", "type": "A", "x": 1}',
    b'{"ts": 1, "y": 2}',
]


@pytest.mark.parametrize("line", BAD)
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_a_line_that_is_no_event_ends_the_stream(line: bytes, schema: pa.Schema | None) -> None:
    if schema is not None and b'"y"' in line:
        return  # a schema says which fields there are to be
    parser = LineParser("lines", schema, "ts")
    parser.table(b'{"ts": 1, "type": "A", "x": 4}')
    for text, where in [(line, "line 2: "), (b'{"ts": 2, "type": "B", "x": 4}\n' + line, "line 2 to 3: ")]:
        with pytest.raises(LinesError, match=f"lines, {where}expected a JSON object"):
            parser.table(text)


def test_null_alone_is_no_event() -> None:
    """Arrow itself would crash."""
    with pytest.raises(LinesError, match="null is no object"):
        LineParser("lines", None, "ts").table(b"null")


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_lines_that_are_no_events_may_be_left_out(schema: pa.Schema | None, expected: list[Any]) -> None:
    lines = json_of(EVENTS).splitlines(keepends=True)
    bad = [line + b"\n" for line in BAD[: 4 if schema is None else 5]]
    for place, line in enumerate([bad[0], *bad]):  # the first line of all is one
        lines.insert(place * 100, line)

    def connect(port: int) -> None:
        threading.Thread(target=_send, args=(port, b"".join(lines)), daemon=True).start()

    source = Socket("127.0.0.1", 0, listen=True, schema=schema, on_bad_line="skip", on_listening=connect)
    for _ in range(2):  # each run counts anew
        with pytest.warns(UserWarning, match=r"line 1: expected a JSON object, found 'nonsense' .*counted") as caught:
            result = cepheid.run(PATTERN, source)
        assert len(caught) == 1
        assert rows(result.matches) == expected
        assert (result.events, result.rejected) == (3000, len(bad) + 1)


def test_nothing_but_lines_that_are_no_events() -> None:
    def connect(port: int) -> None:
        threading.Thread(target=_send, args=(port, b"null\nnull\n\n[1]\n"), daemon=True).start()

    with pytest.warns(UserWarning, match="line 1: expected a JSON object, found 'null'"):
        result = cepheid.run(PATTERN, Socket("127.0.0.1", 0, listen=True, on_bad_line="skip", on_listening=connect))
    assert (result.events, result.rejected) == (0, 3)


def test_lines_that_cannot_be_of_one_table_need_a_schema() -> None:
    """Which of them is wrong is not known."""
    parser = LineParser("lines", None, "ts", Rejected())
    with pytest.raises(LinesError, match=r"changed from number to string.*\n.*with a schema: then it is known"):
        parser.table(b'{"ts": 1, "x": 1}\n{"ts": 2, "x": "one"}')


def test_on_bad_line_is_checked() -> None:
    with pytest.raises(ValueError, match=r"on_bad_line is .*fail or skip; got 'drop'"):
        cepheid.run(PATTERN, "-", on_bad_line="drop")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="on_bad_line is for events that come as JSON"):
        cepheid.run(PATTERN, EVENTS, on_bad_line="skip")


# --- sinks


def test_sinks(tmp_path: Path, expected: list[Any]) -> None:
    found: list[dict[str, Any]] = []
    cepheid.run(PATTERN, EVENTS, found)
    assert sorted(tuple(row.values()) for row in found) == expected
    tables: list[pa.Table] = []
    assert cepheid.run(PATTERN, EVENTS, tables.append).matches is None
    assert rows(pa.concat_tables(tables)) == expected
    cepheid.run(PATTERN, EVENTS, tmp_path / "found.jsonl")
    lines = (tmp_path / "found.jsonl").read_text().splitlines()
    assert sorted(tuple(json.loads(line).values()) for line in lines) == expected


def test_a_folder_of_parquet_files(tmp_path: Path, expected: list[Any]) -> None:
    folder = tmp_path / "found"
    for runs in (1, 2):  # the second adds to what is there
        cepheid.run(
            PATTERN,
            (EVENTS.slice(n, 100) for n in range(0, 3000, 100)),
            ParquetFolder(folder, rows=300),
            queue_size=100,
        )
        assert rows(pa.dataset.dataset(folder).to_table()) == sorted(expected * runs)
    assert len(list(folder.iterdir())) >= 4


def test_a_folder_that_is_there_may_be_called_like_a_file(tmp_path: Path, expected: list[Any]) -> None:
    folder = tmp_path / "found.parquet"
    folder.mkdir()
    cepheid.run(PATTERN, EVENTS, folder)
    assert rows(pa.dataset.dataset(folder).to_table()) == expected


def test_a_parquet_file_is_written_in_time_when_no_more_matches_come(tmp_path: Path) -> None:
    files: list[Path] = []

    def source() -> Iterator[pa.Table]:
        yield EVENTS.slice(0, 300)
        until = time.monotonic() + 20
        while not files and time.monotonic() < until:
            files.extend(tmp_path.glob("matches-*.parquet"))
            time.sleep(0.05)

    result = cepheid.run(PATTERN, source(), ParquetFolder(tmp_path, seconds=0.1))
    assert files
    assert result.found > 0


def test_no_match_is_an_empty_file(tmp_path: Path) -> None:
    cepheid.run("PATTERN D d WITHIN 5", EVENTS, tmp_path / "none.jsonl")
    assert (tmp_path / "none.jsonl").read_text() == ""


def test_earlier_matches_stay_until_there_are_events(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_text("earlier\n")
    with pytest.raises(cepheid.StreamError, match="the source failed after 0 events"):
        cepheid.run(PATTERN, "tcp://127.0.0.1:1", path)
    assert path.read_text() == "earlier\n"

    def source() -> Iterator[pa.Table]:
        yield EVENTS.slice(0, 1)
        raise BreaksError

    with pytest.raises(cepheid.StreamError, match="the source failed after 1 events"):
        cepheid.run(PATTERN, source(), path)
    assert path.read_text() == ""


def test_no_event_at_all_is_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_text("earlier\n")
    cepheid.run(PATTERN, EVENTS.slice(0, 0), path)
    assert path.read_text() == ""


def test_a_sink_that_cannot_be_written_to_is_refused_before_the_first_event(tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "file").touch()
    asked: list[bool] = []

    def source() -> Iterator[pa.Table]:
        asked.append(True)
        yield EVENTS

    for path, said in [
        (tmp_path / "nowhere" / "found.jsonl", "there is no folder .*nowhere: make it"),
        (tmp_path / "folder.jsonl", "expected the name of a file, found a folder"),
        (tmp_path / "file" / "found", "expected a folder, but .*file is a file"),
    ]:
        with pytest.raises(OSError, match=said):
            cepheid.run(PATTERN, source(), path)
    assert not asked
    assert {path.name for path in tmp_path.iterdir()} == {"folder.jsonl", "file"}


# --- lateness, back-pressure, stopping


def test_late_events_are_counted_or_waited_for(expected: list[Any]) -> None:
    shuffled = EVENTS.take([n + 9 - 2 * (n % 10) for n in range(3000)])  # each ten turned round
    pieces = [shuffled.slice(n, 5) for n in range(0, 3000, 5)]
    result = cepheid.run(PATTERN, cepheid.Replay(shuffled, rate=20_000), allowed_lateness=10)
    assert rows(result.matches) == expected
    assert result.late == 0
    strict = _run_pieces(pieces)
    assert strict.late > 0
    assert strict.found < len(expected)


def test_a_replay_out_of_order_is_warned_of() -> None:
    source = cepheid.Replay(EVENTS.take(list(reversed(range(3000)))), rate=30_000)
    with pytest.warns(UserWarning, match=r"of 3,000 events came too late .* not in the order of 'ts': sort them, or"):
        assert cepheid.run(PATTERN, source, queue_size=100).late > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cepheid.run(PATTERN, source, queue_size=100, allowed_lateness=0).late > 0  # who says so, wants it so
        assert cepheid.run(PATTERN, source, queue_size=100, allowed_lateness=3000).late == 0


def test_a_lateness_of_other_times_is_refused_before_the_first_event() -> None:
    times = pa.array([n * 1000 for n in range(3000)], pa.timestamp("us"))
    moments = EVENTS.set_column(0, "ts", times)
    asked: list[Any] = []
    cases: list[tuple[pa.Table, Any, str]] = [
        (EVENTS, "5 seconds", "the times in 'ts' are numbers, and so is allowed_lateness"),
        (moments, 5, "the times in 'ts' are time stamps, so allowed_lateness is text"),
        (moments, "soon", "allowed_lateness is text such as '10 seconds'"),
    ]
    for events, lateness, said in cases:
        with pytest.raises(ValueError, match=said):
            cepheid.run("PATTERN A a WITHIN 1 ms" if events is moments else PATTERN, events, asked.append,
                        allowed_lateness=lateness)  # fmt: skip
    assert not asked


def _run_pieces(pieces: list[pa.Table]) -> cepheid.StreamResult:
    """Each of them is a push: the next comes when it is over."""
    over = threading.Semaphore(1)

    class Session:
        def __init__(self, session: cepheid.Session) -> None:
            self._session = session

        def push(self, *args: Any, **more: Any) -> pa.Table:
            try:
                return self._session.push(*args, **more)
            finally:
                over.release()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._session, name)

    def source() -> Iterator[pa.Table]:
        for piece in pieces:
            over.acquire()
            yield piece

    from cepheid.local.stream.sources import Batches

    session = cepheid.Engine([cepheid.parse(PATTERN)]).open()
    return Runner(Session(session), Batches(source()), Collect(), EventColumns()).run()


def test_a_source_that_is_too_fast_waits() -> None:
    """The queue holds two batches; when a push begins, no more than that has been asked for in advance."""
    given: list[int] = []

    def source() -> Iterator[pa.Table]:
        for n in range(0, 3000, 100):
            given.append(n)
            yield EVENTS.slice(n, 100)

    ahead: list[int] = []
    seen = 0

    def slow(matches: pa.Table) -> None:
        nonlocal seen
        seen = int(matches["end"][-1].as_py())
        ahead.append(100 * len(given) - seen)

    result = cepheid.run("PATTERN A a WITHIN 5 RETURN a.x", source(), slow, queue_size=200)
    assert result.events == 3000
    assert result.dropped_from_queue == 0
    assert max(ahead) <= 700  # pushed, in the queue, in the hands of the source


def test_stopped_after_a_time() -> None:
    result = cepheid.run(PATTERN, cepheid.Replay(EVENTS, rate=100), run_for="300 ms")
    assert result.stopped
    assert 0 < result.events < 3000
    assert result.found == cepheid.match(PATTERN, EVENTS.slice(0, result.events)).num_rows


# --- errors


class BreaksError(Exception):
    pass


def test_a_source_that_fails_gives_what_had_come() -> None:
    def source() -> Iterator[pa.Table]:
        yield EVENTS.slice(0, 500)
        raise BreaksError("the wire is cut")

    found: list[dict[str, Any]] = []
    with pytest.raises(cepheid.StreamError, match=r"the source failed after 500 events .*the wire is cut") as caught:
        cepheid.run("PATTERN A a WITHIN 5", source(), found)
    assert isinstance(caught.value.__cause__, BreaksError)
    assert len(found) == caught.value.result.found == EVENTS.slice(0, 500)["type"].to_pylist().count("A")
    assert not _threads()


def test_a_broken_stream_does_not_end() -> None:
    """Whether a C comes is not known, so matches that wait for it are not given out."""

    def source() -> Iterator[pa.Table]:
        yield pa.table({"ts": [1], "type": ["A"]})
        raise BreaksError

    found: list[dict[str, Any]] = []
    with pytest.raises(cepheid.StreamError):
        cepheid.run("PATTERN SEQ(A a, NOT(C c)) WITHIN 5", source(), found)
    assert found == []


def test_a_sink_that_fails() -> None:
    def sink(matches: pa.Table) -> None:
        raise BreaksError("full")

    with pytest.raises(cepheid.StreamError, match=r"the sink failed .*full") as caught:
        cepheid.run(PATTERN, cepheid.Replay(EVENTS, rate=1000), sink)
    assert isinstance(caught.value.__cause__, BreaksError)
    assert not _threads()


def test_an_engine_that_fails(tmp_path: Path) -> None:
    """The matches of before are in the file; the error is the engine's own."""

    def source() -> Iterator[pa.Table]:
        for n in range(0, 3000, 10):
            yield EVENTS.slice(n, 10)
        yield pa.table({"ts": [1], "type": ["A"]})

    with pytest.raises((ValueError, pa.ArrowInvalid)):
        cepheid.run("PATTERN A a WITHIN 5 RETURN a.x", source(), tmp_path / "found.jsonl", queue_size=10)
    assert (tmp_path / "found.jsonl").read_text().count("\n") > 0
    assert not _threads()


class Bare:
    """A source without a preview, which gives tables."""

    def read(self, stop: Stop, columns: EventColumns) -> Iterator[pa.Table]:
        yield EVENTS


class Tables(Bare):
    def preview(self, columns: EventColumns) -> None: ...


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(cepheid.StreamError, match=r"a source gives chunks of events, .*; it gave a Table"):
        cepheid.run(PATTERN, Tables())
    with pytest.raises(TypeError, match="a Bare has no preview: it gives a table"):
        cepheid.run(PATTERN, Bare())
    assert cepheid.run("PATTERN A a WITHIN 1", pandas.DataFrame({"ts": [1], "type": ["A"], "read": [1]})).found == 1
    with pytest.raises(TypeError, match="got one dictionary"):
        cepheid.run(PATTERN, {})
    (tmp_path / "events.jsonl").write_bytes(json_of(EVENTS))
    with (tmp_path / "events.jsonl").open() as file, pytest.raises(TypeError, match="no open file: give its path"):
        cepheid.run(PATTERN, file)


def test_who_is_to_be_called_each_second_can_be() -> None:
    with pytest.raises(TypeError, match=r"each_second is a function .*; got 3"):
        cepheid.run(PATTERN, EVENTS, each_second=3)  # type: ignore[arg-type]


def test_mistakes() -> None:
    cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        (("udp://x:1",), {}, "expected one of tcp://, listen://, kafka://"),
        (("tcp://localhost",), {}, "expected tcp://HOST:PORT"),
        (("kafka://localhost:9092",), {}, "expected kafka://HOST:PORT/TOPIC"),
        ((EVENTS,), {"sink": "tcp://x:1"}, "matches cannot be sent to tcp://"),
        ((EVENTS,), {"sink": "x.parquet"}, r"a file such as x\.jsonl, or a folder such as x$"),
        ((EVENTS,), {"sink": Path("x.CSV")}, "lines of JSON"),
        ((EVENTS,), {"queue_size": 0}, "queue_size is 1 event or more, got 0"),
        ((EVENTS,), {"queue_size": "3"}, "queue_size is 1 event or more, got '3'"),
        ((EVENTS,), {"queue_size": 0, "shed": cepheid.HSpice()}, "queue_size is 1 event or more, got 0"),
        (
            (cepheid.Replay(EVENTS, rate=1000),),
            {"queue_size": 1, "shed": cepheid.HSpice()},
            "queue_size is for a stream that waits; with shed=, the bound says how many events may",
        ),
        ((EVENTS,), {"allowed_lateness": "5 seconds"}, "allowed_lateness"),
        ((EVENTS,), {"run_for": "5 events"}, "run_for"),
        ((EVENTS,), {"run_for": "soon"}, "run_for is a positive number of seconds, .*; got 'soon'"),
        ((EVENTS,), {"run_for": True}, "run_for"),
        ((EVENTS,), {"shed": cepheid.HSpice()}, "say how fast it comes"),
    ]
    for arguments, more, said in cases:
        with pytest.raises(ValueError, match=said):
            cepheid.run(PATTERN, *arguments, **more)
    with pytest.raises(ValueError, match="not both"):
        cepheid.Replay(EVENTS, rate=1, speed=1)
    with pytest.raises(ValueError, match="rate is a positive number, got '3'"):
        cepheid.Replay(EVENTS, rate="3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a sink is"):
        cepheid.run(PATTERN, EVENTS, 5)
    with pytest.raises(cepheid.PatternError, match="unknown attribute"):
        cepheid.run("PATTERN A a WHERE a.y = 1 WITHIN 5", EVENTS)


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "cepheid source"]


# --- metrics


def test_metrics(tmp_path: Path) -> None:
    seconds: list[Any] = []
    result = cepheid.run(PATTERN, cepheid.Replay(EVENTS, rate=2_500), each_second=seconds.append)
    assert result.metrics.num_rows == len(seconds) >= 2
    totals = {name: sum(result.metrics[name].to_pylist()) for name in ("events_in", "events_out", "matches")}
    assert totals == {"events_in": 3000, "events_out": 3000, "matches": result.found}
    assert result.latency["max"] == max(
        found for found in result.metrics["latency_max"].to_pylist() if found is not None
    )
    assert sorted(map(float, result.latency.values())) == list(result.latency.values())  # type: ignore[arg-type]
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    result.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


# --- shedding


@dataclass(frozen=True)
class Shed:
    seconds: float = 0.5
    safety: float = 0.8


class Server:
    """A session that takes ``each`` seconds for an event; less when it is told to drop."""

    def __init__(self, each: float, obeys: bool = True) -> None:
        self.each, self.obeys = each, obeys
        self.ratios = [0.0]
        self.events = 0
        self.types: set[str] = set()

    def prepare(self, schema: pa.Schema) -> None: ...

    def push_size(self, most: int) -> int:
        return most

    def push(self, events: pa.Table, watermark: Any = None) -> pa.Table:
        self.events += events.num_rows
        self.types |= set(events["type"].to_pylist())
        threading.Event().wait(self.each * events.num_rows * (1 - self.ratios[-1] * self.obeys))
        return events.slice(0, 0)

    def overload(self, ratio: float) -> None:
        self.ratios.append(ratio)

    def close(self) -> pa.Table:
        return EVENTS.slice(0, 0)

    def late_events(self) -> None: ...

    def shedding(self) -> dict[str, Any]:
        return {"pairs dropped": 10 * self.events, "estimated recall so far": 0.5, "estimated false positives": 3.0}

    def report(self) -> dict[str, Any]:
        return {"shedding": self.shedding()}


def many(rate: float, seconds: float) -> cepheid.Replay:
    count = int(rate * seconds)
    return cepheid.Replay(pa.table({"ts": range(count), "type": [("A", "B")[n % 2] for n in range(count)]}), rate=rate)


def test_the_detector_is_asked_and_the_session_told() -> None:
    server = Server(1 / 2000)
    result = Runner(server, many(4000, 3), Collect(), EventColumns(), shed=Shed()).run()
    assert max(server.ratios) > 0.3
    assert result.dropped_from_queue < 0.05 * result.events
    assert sum(result.metrics["dropped_pairs"].to_pylist()) == 10 * server.events
    assert 0.4 < result.metrics["estimated_recall"].to_pylist()[-1] <= 0.5
    assert result.metrics["estimated_false_positives"].to_pylist()[-1] == 3.0
    assert result.latency_bound == 0.5


def test_where_shedding_does_not_help_events_are_left_out() -> None:
    server = Server(1 / 2000, obeys=False)
    result = Runner(server, many(4000, 3), Collect(), EventColumns(), shed=Shed()).run()
    assert result.dropped_from_queue > 0.1 * result.events
    assert result.events == result.dropped_from_queue + server.events
    assert sum(result.metrics["dropped_from_queue"].to_pylist()) == result.dropped_from_queue


def test_without_overload_nothing_is_dropped() -> None:
    server = Server(1 / 10_000)
    result = Runner(server, many(2000, 1), Collect(), EventColumns(), shed=Shed(seconds=5.0)).run()
    assert server.ratios == [0.0]
    assert (result.dropped_from_queue, server.events) == (0, 2000)


class Ticks:
    """A clock that stands still but when it is told to go on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Due(EventQueue):
    """Events of ten milliseconds at a time, when their time has come."""

    def __init__(self, clock: Ticks, rate: int, seconds: int) -> None:
        super().__init__(None)
        self._clock, self._next, self._last, self._rate = clock, 0, 100 * seconds, rate

    @property
    def arrived(self) -> int:
        while self._next < self._last and (self._next + 1) / 100 <= self._clock.now:
            count = self._rate // 100
            events = pa.table({"ts": range(self._next * count, (self._next + 1) * count), "type": ["A"] * count})
            self.put(Chunk(events, came=self._next / 100))
            self._next += 1
        if self._next == self._last:
            self.end()
        return super().arrived

    def wait(self, seconds: float) -> bool:
        if not self.events and self._next < self._last:
            self._clock.now = min((self._next + 1) / 100, self._clock.now + seconds)
        return self.arrived > 0 and super().wait(0.0)


class Worker(Server):
    """Moves a clock on instead of taking time; the first push takes longer."""

    def __init__(self, each: float, first: float = 0.0) -> None:
        super().__init__(each)
        self.clock, self.first = Ticks(), first

    def push(self, events: pa.Table, watermark: Any = None) -> pa.Table:
        self.events += events.num_rows
        self.clock.now += self.first + self.each * events.num_rows * (1 - self.ratios[-1])
        self.first = 0.0
        return events.slice(0, 0)

    def run(self, rate: int, seconds: int) -> StreamResult:
        queue = Due(self.clock, rate, seconds)
        runner = Runner(self, many(1, 1), Collect(), EventColumns(), shed=Shed(), clock=self.clock, queue=queue)
        runner.begin()
        while runner.turn():
            pass
        return runner.finish()


def test_a_first_push_that_takes_long_is_no_overload() -> None:
    server = Worker(1 / 200_000, first=0.05)
    result = server.run(120_000, 5)
    assert server.ratios == [0.0]
    assert result.events == server.events == 600_000


@pytest.mark.parametrize("load", [0.9, 1.2, 2.0, 3.0])
def test_a_bound_is_kept_on_a_clock_of_its_own(load: float) -> None:
    server, rate = Worker(1 / 20_000), int(load * 20_000)
    result = server.run(rate, 20)
    assert result.events == 20 * rate == server.events
    assert (result.latency["max"] or 0.0) <= Shed.seconds
    assert result.dropped_from_queue == 0
    assert (max(server.ratios) > 0) == (load > 1)
    later = result.metrics["ratio"].to_pylist()[5:-1]
    assert max(later) - min(later) < 0.1, "the share does not swing"
    assert abs(sum(later) / len(later) - max(0.0, 1 - 1 / load)) < 0.02


def test_the_last_resort_spares_what_must_not_be_shed() -> None:
    from cepheid.local.stream.relief import LastResort

    def queue() -> EventQueue:
        made = EventQueue(None)
        for n in range(10):
            made.put(Chunk(pa.table({"ts": range(100), "type": ["A", "B"] * 50}), came=n / 10))
        return made

    one = queue()
    assert LastResort(1.0, 0.8).relieve(one, 0.9, 500) == 0  # none is about to be late
    assert (
        LastResort(1.0, 0.8).relieve(one, 1.0, 500) == 1000 - 900 * 0.2
    )  # the first would be; 0.4 s · 500 of 1000 stay
    two = queue()
    LastResort(1.0, 0.8, "type", ["B"]).relieve(two, 1.0, 500)
    left = pa.concat_tables(chunk.events for chunk in two.take(1000))["type"].to_pylist()
    assert left.count("B") == 500
    assert left.count("A") == 90
    assert LastResort(1.0, 0.8, None, ["B"]).relieve(queue(), 1.0, 500) == 0


TWICE = """
import sys, cepheid

def source():
    yield [{"ts": 1, "type": "A"}]
    print("begun", flush=True)
    sys.stdin.read()  # does not hear

cepheid.run("PATTERN A a WITHIN 1", source())
"""


def test_who_is_stopped_twice_is_interrupted() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", TWICE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)  # once is a request
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert said.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("pace", [{"rate": 10.0}, {"speed": 2.0}, {}])
def test_no_events_at_all(pace: dict[str, Any]) -> None:
    result = cepheid.run("PATTERN A a WITHIN 1", cepheid.Replay(EVENTS.slice(0, 0), **pace))
    assert (result.events, result.found) == (0, 0)


def test_no_match_has_the_columns_of_one() -> None:
    pattern = "PATTERN A a WHERE a.ts < 0 WITHIN 1 RETURN a.ts AS at"
    result = cepheid.run(pattern, EVENTS)
    assert result.matches is not None
    assert result.matches.schema == cepheid.match(pattern, EVENTS).schema


def test_other_columns_do_not_take_those_before_with_them() -> None:
    found: list[Any] = []
    good = pa.table({"ts": [1, 2], "type": ["A", "A"]})
    with pytest.raises(ValueError, match="the columns of this batch differ"):
        cepheid.run("PATTERN A a WITHIN 1", iter([good, pa.table({"when": [3], "type": ["A"]})]), found)
    assert len(found) == 2


@pytest.mark.parametrize("pace", [{"rate": 10.0}, {"speed": 2.0}, {}])
def test_dates_are_no_times_of_a_stream(pace: dict[str, Any]) -> None:
    events = pa.table({"ts": [dt.date(2024, 1, 1)], "type": ["A"]})
    with pytest.raises(cepheid.CepheidError, match="'ts' are dates"):
        cepheid.run("PATTERN A a WITHIN 1 day", cepheid.Replay(events, **pace))
