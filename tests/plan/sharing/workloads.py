"""Small workloads in which much is shared, and what is known of their stream."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

import cepheid
from cepheid.pattern.normal import Branch
from cepheid.plan.sharing.identity import SubPattern, sub_pattern
from cepheid.stats.estimates import Estimates

RATES = {"A": 3.0, "B": 0.5, "C": 1.0, "D": 0.2}


def branch_of(pattern: str) -> Branch:
    return cepheid.normalise(cepheid.parse(f"PATTERN {pattern}")).branches[0]


@st.composite
def workloads(draw: st.DrawFn, *, most: int = 5, size: int = 4) -> list[Branch]:
    """Branches over few types, some of them twice in a pattern; most have the same window."""
    found = []
    for place in range(draw(st.integers(1, most))):
        names = [f"v{place}_{i}" for i in range(draw(st.integers(1, size)))]
        types = draw(st.lists(st.sampled_from("AABCD"), min_size=len(names), max_size=len(names)))
        events = [f"{type_} {name}" for type_, name in zip(types, names, strict=True)]
        if len(names) > 2 and draw(st.integers(0, 4)) == 0:
            events[1] = draw(st.sampled_from([f"KL({events[1]})", f"NOT({events[1]})"]))
        structure = f"{draw(st.sampled_from(['SEQ', 'AND']))}({', '.join(events)})"
        pairs = [(a, b) for i, a in enumerate(names) for b in names[:i] if "(" not in events[names.index(a)]]
        pairs = [(a, b) for a, b in pairs if "(" not in events[names.index(b)]]
        chosen = draw(st.lists(st.sampled_from(pairs), max_size=2)) if pairs else []
        where = " AND ".join(f"{b}.x < {a}.x" for a, b in chosen)
        window = draw(st.sampled_from([4, 4, 4, 8]))
        branch = branch_of(f"{structure}{' WHERE ' + where if where else ''} WITHIN {window}")
        found.append(replace(branch, never=None))
    return found


def known(branches: list[Branch]) -> dict[Branch, Estimates]:
    """The same stream for all."""
    return {
        branch: Estimates({v.name: RATES[v.type] * branch.window.size for v in branch.variables}) for branch in branches
    }


def meaning(branch: Branch, names: frozenset[str]) -> SubPattern | None:
    """What partial matches mean to others: nothing, once a negated event has struck some of them out."""
    sets = any(v.is_kleene for v in branch.variables)
    single = {v.name for v in branch.variables if not v.is_kleene}
    for negation in branch.negations:
        around = {*negation.after, *negation.before}
        if negation.after and negation.before and around <= names and (sets or around != single):
            return None
    return sub_pattern(branch, names)
