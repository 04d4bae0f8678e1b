"""The loop of a stream: a source in a thread of its own, a queue, the engine, a sink."""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import pyarrow as pa

from cepheid.engine.ingest import EventColumns
from cepheid.language.problems import CepheidError
from cepheid.local.match import BATCH
from cepheid.local.signals import Stop
from cepheid.local.stream.lines import JsonEvents
from cepheid.local.stream.metrics import Meter, Second
from cepheid.local.stream.queue import Chunk, EventQueue
from cepheid.local.stream.relief import LastResort
from cepheid.local.stream.result import StreamResult
from cepheid.local.stream.sinks import Collect, Keeping, Prepared, Sink
from cepheid.local.stream.sources import Source
from cepheid.local.stream.watermark import Lateness, Watermarks
from cepheid.shed.batching import SLICE, BatchSize
from cepheid.shed.detector import OverloadDetector

PATIENCE = 5.0
"""Seconds for a source to end after an error; one that does not hear is left behind."""


class StreamError(CepheidError):
    """A source or a sink that failed; what it failed with is the cause. ``result`` is what had come of the run."""

    def __init__(self, message: str, result: StreamResult) -> None:
        super().__init__(message)
        self.result = result


class Strategy(Protocol):
    """What the runner needs to know of a shedding strategy; the engine knows the rest."""

    @property
    def seconds(self) -> float:
        """The latency bound."""

    @property
    def safety(self) -> float: ...


@dataclass
class Runner:
    """One run of a stream. It can be stopped from another thread, with ``runner.stop.ask()``."""

    session: Any
    source: Source
    sink: Sink
    columns: EventColumns
    shed: Strategy | None = None
    critical: Sequence[str] | None = ()
    match_size: float = 1.0
    allowed_lateness: Lateness = 0
    queue_size: int = 4 * BATCH
    run_for: float | None = None
    each_second: Callable[[Second], object] | None = None
    clock: Callable[[], float] = perf_counter
    queue: EventQueue | None = None
    """Where events wait, if somebody else fills it."""

    def __post_init__(self) -> None:
        self.stop = Stop()
        self._queue = self.queue or EventQueue(self.queue_size if self.shed is None else None)
        self._watermarks = Watermarks(self.columns.time, self.allowed_lateness)
        self._detector: OverloadDetector | None = None
        self._relief: LastResort | None = None
        most = float("inf")
        if self.shed is not None:
            bound, safety = self.shed.seconds, self.shed.safety
            self._detector = OverloadDetector(bound, safety)
            self._relief = LastResort(bound, safety, self.columns.type, self.critical)
            most = SLICE * (1 - safety) * bound
        self._size = BatchSize(most, self.session.push_size(BATCH))
        self._seen = 0  # events that had come when the detector was last asked
        self._ready = self._over = False
        self._nothing = pa.table({})  # no matches, with their columns
        self._keeping = self.sink if isinstance(self.sink, Keeping) else None
        self._told = False  # whether the session has ever been told to drop anything

    def run(self) -> StreamResult:
        thread = threading.Thread(target=self._feed, name="cepheid source", daemon=True)
        with _few_pauses(self.shed is not None), self.stop:
            self.begin()
            thread.start()
            try:
                while self.turn():
                    pass
                thread.join()
                return self.finish()
            except BaseException as error:
                self.stop.ask()
                self._queue.abort()
                thread.join(PATIENCE)
                if isinstance(error, StreamError):
                    raise
                with contextlib.suppress(Exception):  # the first error is the one to tell of
                    self.sink.close()
                if isinstance(error, _SinkFailedError) and error.__cause__ is not None:
                    raise self._failed("sink", error.__cause__) from error.__cause__
                raise

    def _feed(self) -> None:
        """In the thread of the source."""
        try:
            for chunk in self.source.read(self.stop, self.columns):
                if not isinstance(chunk, Chunk):
                    raise TypeError(
                        "a source gives chunks of events, such as Chunk(table, came=perf_counter()) with Chunk of "
                        f"cepheid.local.stream.queue; it gave a {type(chunk).__name__}"
                    )
                if len(chunk) and not self._queue.put(chunk):
                    break
        except BaseException as error:
            self._queue.end(error)
        else:
            self._queue.end()

    def begin(self) -> None:
        """The clock runs from now on."""
        now = self.clock()
        self._meter = Meter(now, self.each_second, self._shedding, self.match_size)
        self._deadline = float("inf") if self.run_for is None else now + self.run_for

    def turn(self) -> bool:
        """Wait for events, and push them. False if the source has ended and all its events are matched."""
        meter, queue, now = self._meter, self._queue, self.clock()
        if now >= self._deadline:
            self._deadline = float("inf")
            self.stop.ask()
        meter.tick(now, queue.arrived, queue.events, self._ratio)
        self._remind()
        if not queue.wait(min(meter.left, self._deadline) - now):
            return True
        if queue.exhausted:
            return False
        if self._relief is not None:
            meter.dropped_from_queue += self._relief.relieve(queue, self.clock(), self._size.rate)
        most = self._size.events
        full = not self._size.growing
        chunks = queue.take(most)
        enough = full and sum(map(len, chunks)) >= most
        for _, alike in itertools.groupby(chunks, lambda chunk: chunk.events.schema):
            self._push(list(alike), enough)
        return True

    def _push(self, chunks: list[Chunk], full: bool) -> None:
        """``full``: whether more would have taken too long."""
        began = self.clock()
        events = pa.concat_tables([chunk.events for chunk in chunks])
        if not self._ready:
            self.session.prepare(events.schema)  # says what is wrong with the columns
            self._begin_sink()
            self._ready = True
        self._hand_over(self.session.push(events, watermark=self._watermarks.after(events)), events.num_rows)
        self.session.late_events()  # they are counted; nobody asks for them
        done = self.clock()
        for chunk in chunks:
            self._meter.latency(done - chunk.came, len(chunk))
        self._size.took(events.num_rows, done - began)
        if self._relief is not None:
            self._relief.took(done - began)
        if self._detector is not None:
            arrived, before = self._queue.arrived, self._detector.ratio
            ratio = self._detector.after_push(
                done, arrived=arrived - self._seen, served=events.num_rows, seconds=done - began,
                queued=self._queue.events, waited=self._queue.waited(done),
                capacity=None if full else self._size.rate,
            )  # fmt: skip
            self._seen = arrived
            if ratio != before:
                self._told = True
                self.session.overload(ratio)

    def _remind(self) -> None:
        if self._keeping is not None:
            try:
                self._keeping.write_due()
            except Exception as error:
                raise _SinkFailedError from error

    def _begin_sink(self) -> None:
        if isinstance(self.sink, Prepared):
            try:
                self.sink.begin()
            except Exception as error:
                raise _SinkFailedError from error

    def _hand_over(self, matches: pa.Table, events: int = 0) -> None:
        self._nothing = matches.slice(0, 0)
        if matches.num_rows:
            try:
                self.sink.write(matches)
            except Exception as error:
                raise _SinkFailedError from error
        self._meter.pushed(events, matches.num_rows)

    @property
    def _ratio(self) -> float:
        return 0.0 if self._detector is None else self._detector.ratio

    def _shedding(self) -> Mapping[str, Any]:
        if not self._told:
            return {} if self.shed is None else {"estimated recall so far": 1.0, "estimated false positives": 0.0}
        found: Mapping[str, Any] = self.session.shedding()
        return found

    def finish(self) -> StreamResult:
        """After the last event: the sink has all there is, or it is said that it has not."""
        if self._queue.error is None:  # what a broken stream was still waiting for is not known
            self._hand_over(self.session.close())
            if not self._ready:
                self._begin_sink()
        try:
            self.sink.close()
        except Exception as error:
            raise self._failed("sink", error) from error
        broken = self._queue.error
        if broken is not None:
            raise self._failed("source", broken) from broken
        return self._result()

    def _failed(self, what: str, error: BaseException) -> StreamError:
        result = self._result()
        return StreamError(
            f"the {what} failed after {result.events:,} events and {result.found:,} matches: "
            f"{error if isinstance(error, CepheidError) else f'{type(error).__name__}: {error}'}",
            result,
        )

    def _result(self) -> StreamResult:
        meter = self._meter
        now = self.clock()
        if not self._over:
            meter.tick(now, self._queue.arrived, self._queue.events, self._ratio, last=True)
            self._over = True
        report = self.session.report()
        return StreamResult(
            events=meter.events_in, found=meter.matches,
            matches=(self.sink.matches or self._nothing) if isinstance(self.sink, Collect) else None,
            late=report.get("late events", 0),
            rejected=self.source.rejected.count if isinstance(self.source, JsonEvents) else 0,
            dropped_from_queue=meter.dropped_from_queue,
            latency={"p50": meter.all.quantile(0.5), "p99": meter.all.quantile(0.99), "max": meter.all.quantile(1.0)},
            seconds=now - meter.start, stopped=self.stop.asked,
            latency_bound=None if self.shed is None else self.shed.seconds, metrics=meter.table(), report=report,
        )  # fmt: skip


class _SinkFailedError(Exception):
    """The cause is what it failed with."""


@contextmanager
def _few_pauses(wanted: bool) -> Iterator[None]:
    """What exists already is not looked at by the garbage collector while the stream runs: the pauses stay short."""
    if not wanted or gc.get_freeze_count():  # somebody else has frozen something, and would find it thawed
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
