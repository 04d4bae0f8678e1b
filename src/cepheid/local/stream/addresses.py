"""Sources and sinks by their addresses: ``-``, ``tcp://host:port``, ``listen://host:port``, ``kafka://servers/topic``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa

from cepheid.language.problems import closest
from cepheid.local.events import FORMATS
from cepheid.local.stream.lines import Socket, StandardInput
from cepheid.local.stream.rejected import OnBadLine
from cepheid.local.stream.sinks import JsonLinesSink, ParquetFolder

if TYPE_CHECKING:
    from cepheid.local.stream.sinks import Sink
    from cepheid.local.stream.sources import Source

SCHEMES = ("tcp", "listen", "kafka")
LINES = (".jsonl", ".ndjson", ".json")
FILES = {*FORMATS, ".ipc", ".pq", ".orc", ".avro", ".tsv", ".txt", ".xlsx", ".gz", ".zip"}
"""Who gives one of these endings wants a file."""


def source_at(address: str, schema: pa.Schema | None, on_bad_line: OnBadLine = "fail") -> Source | None:
    """The source at an address; None if it is none, but the path of a file."""
    if address == "-":
        return StandardInput(schema=schema, on_bad_line=on_bad_line)
    scheme, host, port, path = _parts(address)
    match scheme:
        case None:
            return None
        case "tcp" | "listen":
            if port is None or path:
                raise ValueError(f"expected {scheme}://HOST:PORT, found {address!r}")
            return Socket(host, port, listen=scheme == "listen", schema=schema, on_bad_line=on_bad_line)
        case _:
            from cepheid.local.stream.kafka import KafkaSource

            return KafkaSource(*_servers_and_topic(address), schema=schema, on_bad_line=on_bad_line)


def sink_at(address: str | Path) -> Sink:
    """A file of JSON lines, ``-`` for standard output, a topic of Kafka, or a folder of Parquet files."""
    if str(address) == "-":
        return JsonLinesSink(None)
    if isinstance(address, str):
        scheme, *_ = _parts(address)
        if scheme == "kafka":
            from cepheid.local.stream.kafka import KafkaSink

            return KafkaSink(*_servers_and_topic(address))
        if scheme is not None:
            raise ValueError(f"matches cannot be sent to {scheme}://: expected a path, - or kafka://SERVERS/TOPIC")
    path = Path(address)
    if path.suffix.lower() in LINES:
        return JsonLinesSink(path)
    if path.suffix.lower() in FILES and not path.is_dir():
        file, folder = path.with_suffix(".jsonl"), path.with_suffix("")
        raise ValueError(
            f"{path}: matches of a stream go to a file with lines of JSON, which ends in .jsonl, or to a folder of "
            f"Parquet files: name a file such as {file}, or a folder such as {folder}"
        )
    return ParquetFolder(path)


def _parts(address: str) -> tuple[str | None, str, int | None, str]:
    if "://" not in address:
        return None, "", None, ""
    scheme = address.partition("://")[0]
    if scheme not in SCHEMES:
        hint = closest(scheme, SCHEMES)
        raise ValueError(
            f"{address!r}: expected one of {', '.join(f'{s}://' for s in SCHEMES)}, or a path; found {scheme}://."
            + (f" Hint: {hint}" if hint else "")
        )
    if scheme == "kafka":  # may name several servers
        return scheme, "", None, ""
    try:
        found = urlsplit(address)
        return scheme, found.hostname or "", found.port, found.path.strip("/")
    except ValueError as error:
        raise ValueError(f"expected {scheme}://HOST:PORT, found {address!r}: {error}") from None


def _servers_and_topic(address: str) -> tuple[str, str]:
    servers, _, topic = address.removeprefix("kafka://").partition("/")
    if not servers or not topic or "/" in topic:
        raise ValueError(f"expected kafka://HOST:PORT/TOPIC, found {address!r}")
    return servers, topic
