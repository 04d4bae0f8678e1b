"""What is said about a stream on the command line, as ``cepheid.run`` takes it."""

from __future__ import annotations

from pathlib import Path

from cepheid.language import syntax as s
from cepheid.language.problems import CepheidError
from cepheid.language.reader import read_length
from cepheid.local.stream.addresses import source_at
from cepheid.local.stream.kafka import KafkaSource
from cepheid.local.stream.schema import schema_of
from cepheid.local.stream.sources import Replay, Source
from cepheid.local.stream.watermark import seconds_of
from cepheid.shed.strategies import Strategy, strategy_called


def source_from(text: str, rate: float | None, speed: float | None, schema: str | None, earliest: bool) -> Source:
    """What is named on the command line."""
    found = source_at(text, None if schema is None else schema_of(schema, "--schema"))
    if earliest and not isinstance(found, KafkaSource):
        raise ValueError(f"--earliest is for Kafka; {text} comes from its beginning, or from now on")
    if found is None:
        if schema is not None:
            raise ValueError(f"--schema is for events that come as JSON; {text} says itself which columns it has")
        return Replay(Path(text), rate=rate, speed=speed)
    if rate is not None or speed is not None:
        raise ValueError(f"--rate and --speed are for files; {text} says itself when events come")
    if isinstance(found, KafkaSource) and earliest:
        return KafkaSource(found.servers, found.topic, start="earliest", schema=found.schema)
    return found


def strategy_from(name: str | None, bound: str | None, safety: float | None, source: Source) -> Strategy | None:
    if name is None:
        for option, given in (("--latency-bound", bound), ("--safety", safety)):
            if given is not None:
                raise ValueError(f"{option} is for a stream that drops work: say how, such as --shed cost")
        return None
    if isinstance(source, Replay) and not source.paced:
        raise ValueError(
            "--shed is for events that come too fast, and those of a file come as fast as they are taken: say how fast "
            "they are to come, with --rate 10000 (events a second) or --speed 1 (at their own times)"
        )
    try:
        kind = strategy_called(name)
    except ValueError as error:
        raise ValueError(f"--shed is {error}") from None
    return kind(
        latency_bound=kind.latency_bound if bound is None else seconds_of(bound, "--latency-bound"),
        safety=kind.safety if safety is None else safety,
    )


def lateness_from(text: str) -> str | int:
    """
    >>> lateness_from("20"), lateness_from("10 seconds")
    (20, '10 seconds')
    """
    try:
        length = read_length(text)
    except CepheidError:
        length = None
    if length is None or length.kind is s.WindowKind.EVENTS:
        raise ValueError(
            f"--lateness is a length of time such as '10 seconds' or, where times are numbers, a number; got {text!r}"
        )
    return text if length.kind is s.WindowKind.TIME else length.size
