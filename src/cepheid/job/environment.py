"""Secrets: a description names environment variables as ``${NAME}``, and only Spark is told their values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

VARIABLE = re.compile(r"\$\{([^${}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SENSITIVE = re.compile(
    r"passw|passphrase|pwd|pass$|secret|token|credential|jaas|private|signature|(^|[._-])sas([._-]|$)|"
    r"(access|account|api|shared)[._-]?key|(?<=.)keys?$",
    re.IGNORECASE,
)
_OWN = ("record_key",)
"""Fields of a description that sound like it, and name columns."""
_IN_AN_ADDRESS = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")
HIDDEN = "(hidden)"
_SHORTEST = 4
"""Values shorter than this are no secrets; looking for them would tear up messages."""


def names_in(text: str) -> list[str]:
    """The variables that a text mentions.

    >>> names_in("user=${KAFKA_USER} password=${KAFKA_PASSWORD}")
    ['KAFKA_USER', 'KAFKA_PASSWORD']
    """
    return VARIABLE.findall(text)


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def is_known(text: str) -> bool:
    """Whether all variables that a text mentions are set.

    >>> is_known("/data/events"), is_known("${CEPHEID_NOT_SET}/events")
    (True, False)
    """
    return all(is_name(name) and name in os.environ for name in names_in(text))


def resolved(text: str) -> str:
    """With the values of the variables, which must be set. What comes back is not to be shown to anyone.

    >>> import os
    >>> os.environ["CEPHEID_DOC"] = "topsecret"
    >>> resolved("password=${CEPHEID_DOC}")
    'password=topsecret'
    """
    return VARIABLE.sub(lambda found: os.environ[found.group(1)], text)


def is_sensitive(name: str) -> bool:
    """Whether a setting of this name holds something that is nobody's business.

    >>> [is_sensitive(name) for name in ("kafka.ssl.keystore.password", "kafka.ssl.keystore.key", "topic")]
    [True, True, False]
    """
    return name not in _OWN and _SENSITIVE.search(name) is not None


def shown(name: str, value: object) -> str:
    """The value of a setting as it may be shown: ``${NAME}`` stays as it was written, what looks secret is hidden.

    >>> shown("password", "hunter22"), shown("password", "${PASSWORD}"), shown("url", "jdbc://me:hunter22@host")
    ('(hidden)', '${PASSWORD}', 'jdbc://(hidden)@host')
    """
    text = str(value)
    if is_sensitive(name) and VARIABLE.sub("", text).strip():
        return HIDDEN
    return _IN_AN_ADDRESS.sub(HIDDEN, text)


def hidden(value: Any, name: str = "") -> Any:
    """A description's values, in mappings and lists, as they may be shown."""
    match value:
        case Mapping():
            return {key: hidden(item, str(key)) for key, item in value.items()}
        case list() | tuple():
            return [hidden(item, name) for item in value]
        case str():
            return shown(name, value)
        case int() | float() if is_sensitive(name) and not isinstance(value, bool):
            return HIDDEN
    return value


def scrubbed(message: str, description: Any) -> str:
    """A message of somebody else's without the secrets of a description, should it repeat them."""
    for value, instead in sorted(set(_secrets(description, "")), key=lambda pair: -len(pair[0])):
        if len(value) >= _SHORTEST:
            message = message.replace(value, instead)
    return _IN_AN_ADDRESS.sub(HIDDEN, message)


def _secrets(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Each value that must not be shown, and what is shown in its place."""
    match value:
        case Mapping():
            for key, item in value.items():
                yield from _secrets(item, str(key))
        case list() | tuple():
            for item in value:
                yield from _secrets(item, name)
        case str():
            for variable in names_in(value):
                yield os.environ.get(variable, ""), f"${{{variable}}}"
            if shown(name, value) == HIDDEN:
                yield value, HIDDEN
