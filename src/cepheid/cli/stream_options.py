"""What is said about a stream on the command line, as ``cepheid.run`` takes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from cepheid.language import syntax as s
from cepheid.language.problems import CepheidError
from cepheid.language.reader import read_length
from cepheid.local.stream.addresses import source_at
from cepheid.local.stream.kafka import KafkaSource
from cepheid.local.stream.rejected import OnBadLine
from cepheid.local.stream.schema import schema_of
from cepheid.local.stream.sources import Replay, Source
from cepheid.local.stream.watermark import seconds_of
from cepheid.shed.strategies import Strategy, strategy_called


def source_from(
    text: str,
    rate: float | None,
    speed: float | None,
    schema: str | None,
    earliest: bool,
    on_bad_line: str = "fail",
) -> Source:
    """What is named on the command line."""
    if on_bad_line not in get_args(OnBadLine):
        raise ValueError(f"--on-bad-line is {' or '.join(get_args(OnBadLine))}; got {on_bad_line!r}")
    found = source_at(text, None if schema is None else schema_of(schema, "--schema"), cast(OnBadLine, on_bad_line))
    if earliest and not isinstance(found, KafkaSource):
        raise ValueError(f"--earliest is for Kafka; {text} comes from its beginning, or from now on")
    if found is None:
        if schema is not None:
            raise ValueError(f"--schema is for events that come as JSON; {text} says itself which columns it has")
        if on_bad_line != "fail":
            raise ValueError(f"--on-bad-line is for lines of JSON as they come; {text} is read as a whole")
        return Replay(Path(text), rate=rate, speed=speed)
    if rate is not None or speed is not None:
        raise ValueError(f"--rate and --speed are for files; {text} says itself when events come")
    if isinstance(found, KafkaSource) and earliest:
        return replace(found, start="earliest")
    return found


def strategy_from(
    name: str | None, bound: str | None, safety: float | None, weights: list[str] | None, source: Source
) -> Strategy | None:
    if name is None:
        for option, given in (("--latency-bound", bound), ("--safety", safety), ("--weight", weights or None)):
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
        weights=dict(map(_weight, weights or [])),
    )


def _weight(text: str) -> tuple[str, float]:
    """
    >>> _weight("fraud=10")
    ('fraud', 10.0)
    """
    name, _, number = text.rpartition("=")
    try:
        return name.strip(), float(number)
    except ValueError:
        raise ValueError(
            f"--weight is the name of a pattern and what a match of it is worth, such as fraud=10; got {text!r}"
        ) from None


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
