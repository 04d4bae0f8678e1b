"""One fixture a rewrite, a line a case: conditions before => conditions after.

The conditions stand on AND(A a, B b, KL(C c, 2, 3), NOT(N n)); those of the negation are written ``n: …``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import cepheid
from cepheid.pattern.normal import Branch, Rewrite
from cepheid.pattern.normalise import REWRITES, normalise
from cepheid.pattern.rewrites.contradictions import find_contradictions

FIXTURES = Path(__file__).parent / "rewrites"
STRUCTURE = "PATTERN AND(A a, B b, KL(C c, 2, 3), NOT(N n))"
SHOW_CONDITIONS = {rewrite.__name__: rewrite for rewrite in REWRITES if rewrite.__name__ != "find_contradictions"}


def cases(name: str) -> list[tuple[str, str]]:
    lines = (FIXTURES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [(before.strip(), after.strip()) for before, after in (line.split("=>") for line in lines)]


def branch_of(conditions: str, rewrite: Rewrite) -> Branch:
    (branch,) = normalise(cepheid.parse(f"{STRUCTURE} WHERE {conditions} WITHIN 5"), (rewrite,)).branches
    return branch


def show(branch: Branch) -> Iterator[str]:
    owned = [("", branch.conditions), *((f"{n.name}: ", n.conditions) for n in branch.negations)]
    for owner, conditions in owned:
        for condition in conditions:
            yield f"{owner}{condition}{' (derived)' if condition.derived else ''}"


@pytest.mark.parametrize(
    ("rewrite", "before", "after"),
    [(rewrite, *case) for name, rewrite in SHOW_CONDITIONS.items() for case in cases(name)],
)
def test_conditions_before_and_after(rewrite: Rewrite, before: str, after: str) -> None:
    assert "; ".join(show(branch_of(before, rewrite))) == after


@pytest.mark.parametrize(("before", "after"), cases("find_contradictions"))
def test_contradictions(before: str, after: str) -> None:
    branch = branch_of(before, find_contradictions)
    assert (branch.never is not None) == (after == "never"), branch.never
    assert (branch.negations == ()) == (after == "no negation")


def test_every_rewrite_has_a_fixture() -> None:
    assert {rewrite.__name__ for rewrite in REWRITES} == {path.stem for path in FIXTURES.glob("*.txt")}
