"""A condition that is there twice is checked once."""

from __future__ import annotations

from cepheid.pattern.normal import Branch


def drop_repeats(branch: Branch) -> Branch:
    return branch.map_conditions(dict.fromkeys)
