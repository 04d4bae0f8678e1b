"""The tables of the parser, kept on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from lark import Lark

from cepheid.language import grammar as g

STAMP = "of these rules"
TEXT = "WHERE a.x < 3 AND (b.name LIKE 'x%' OR NOT c.y BETWEEN -1 AND 2.5e3) AND d[i-1].v IS NOT NULL"


def _built(kept: Path) -> Lark:
    return g._build(g._RULES.read_text(encoding="utf-8"), kept, STAMP)


def test_a_kept_parser_reads_as_the_one_that_was_built(tmp_path: Path) -> None:
    kept = tmp_path / "grammar.json"
    built = _built(kept)
    loaded = g._load(kept, STAMP)
    assert loaded is not None
    assert [(x.type, x, x.start_pos) for x in loaded.lex(TEXT)] == [(x.type, x, x.start_pos) for x in built.lex(TEXT)]
    for rule in g.START_RULES:
        assert loaded.parse_interactive(start=rule).accepts() == built.parse_interactive(start=rule).accepts()
    assert loaded.parse("3 + a.x * 2", start="expression") == built.parse("3 + a.x * 2", start="expression")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"stamp": "of these rules", "data": {}, "memo": {}}'])
def test_a_kept_parser_that_is_broken_is_built_again(tmp_path: Path, text: str) -> None:
    kept = tmp_path / "grammar.json"
    kept.write_text(text)
    assert g._load(kept, STAMP) is None


def test_a_kept_parser_of_other_rules_is_built_again(tmp_path: Path) -> None:
    kept = tmp_path / "grammar.json"
    _built(kept)
    assert g._load(kept, "of other rules") is None


def test_a_folder_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    parser = _built(tmp_path / "file" / "grammar.json")
    assert parser.parse("a.x", start="expression")
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]
