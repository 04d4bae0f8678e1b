"""The parser of the language. Its tables are worked out once and kept beside the compiled Python files."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

START_RULES = (
    "name_clause", "pattern_clause", "using_clause", "where_clause", "partition_clause", "within_clause",
    "return_clause", "never_clause", "return_items", "return_item", "structure", "expression", "length", "unreadable",
)  # fmt: skip

_RULES = Path(__file__).with_name("grammar.lark")


@cache
def grammar() -> Lark:
    text = _RULES.read_text(encoding="utf-8")
    stamp = hashlib.sha256("\n".join((lark.__version__, *START_RULES, text)).encode()).hexdigest()
    kept = Path(cache_from_source(str(_RULES))).with_suffix(".json")
    return _load(kept, stamp) or _build(text, kept, stamp)


def _build(text: str, kept: Path, stamp: str) -> Lark:
    parser = Lark(
        text,
        parser="lalr",
        lexer="basic",
        start=list(START_RULES),
        propagate_positions=True,
        maybe_placeholders=True,
    )
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    _keep(kept, json.dumps({"stamp": stamp, "data": data, "memo": memo}))
    return parser


def _load(kept: Path, stamp: str) -> Lark | None:
    """The parser as it was kept; None if there is none, or it is of other rules or unreadable."""
    try:
        found = json.loads(kept.read_text(encoding="utf-8"), object_hook=_numbered)
        if found["stamp"] != stamp:
            return None
        loaded: Lark = Lark._load_from_dict(found["data"], found["memo"])  # type: ignore[no-untyped-call]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError):
        return None
    return loaded


def _numbered(found: dict[str, Any]) -> dict[Any, Any]:
    """States and rules are numbers, which JSON makes text of where they are keys."""
    return {int(key) if key.isdecimal() else key: value for key, value in found.items()}


def _keep(kept: Path, text: str) -> None:
    """All or nothing: others may be reading. Where it cannot be written the next process works the tables out again."""
    try:
        kept.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=kept.parent, delete=False) as file:
            file.write(text)
        os.replace(file.name, kept)
    except OSError:
        return
