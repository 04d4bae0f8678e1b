"""The multi-pattern graph (MPG): which patterns have which sub-patterns in common.

In the compact form of the paper's appendix A: no edge is stored. One table leads from a sub-pattern to the patterns
that have it (Γ), another from a pattern to its sub-patterns. A sub-pattern can only be common if all parts of it are,
so larger ones are looked at only where smaller ones are common; most subsets of variables are never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from cepheid.plan.sharing.local import Mask, bits
from cepheid.plan.sharing.members import Member, Number


class MultiPatternGraph:
    """Common sub-patterns of two variables or more. A single variable is shared in any plan, so it is no reason."""

    def __init__(self) -> None:
        self.widest: int | None = None  # larger sub-patterns are not looked for
        self._having: dict[Number, dict[Member, list[Mask]]] = {}  # the paper's hash table MP → Γ
        self._parts: dict[Member, dict[Mask, Number]] = {}

    @property
    def members(self) -> list[Member]:
        return list(self._parts)

    def having(self, number: Number) -> dict[Member, list[Mask]]:
        """The patterns that have a sub-pattern (Γ_P), and over which of their variables: there may be several ways."""
        return self._having.get(number, {})

    def is_common(self, number: Number) -> bool:
        return len(self._having.get(number, ())) > 1

    def common(self, member: Member) -> list[tuple[Mask, Number]]:
        """All sub-patterns of two variables or more that a pattern has in common with another."""
        return [(m, n) for m, n in self._parts[member].items() if m.bit_count() > 1 and self.is_common(n)]

    def add(self, member: Member) -> None:
        self._parts[member] = {}
        again = {member}
        while again:  # patterns with a part that nobody had in common before: now larger parts may be common too
            again = {other for one in again for other in self._look(one)}

    def remove(self, member: Member) -> None:
        for number in set(self._parts.pop(member).values()):
            having = self._having[number]
            del having[member]
            if not having:
                del self._having[number]

    def _look(self, member: Member) -> set[Member]:
        """Enter all parts that may be common; the other patterns with which one has become so."""
        touched: set[Member] = set()
        parts = self._parts[member]
        level = [single for single in member.variables if self._enter(member, single, parts, touched)]
        while level and level[0].bit_count() != self.widest:
            known = set(level)
            larger: dict[Mask, None] = {}
            for mask in level:
                for single in bits(member.full & ~mask):
                    if single > mask:  # each set once: its highest variable last
                        larger[mask | single] = None
            level = [
                mask
                for mask in larger
                if all(mask ^ single in known for single in bits(mask)) and self._enter(member, mask, parts, touched)
            ]
        return touched

    def _enter(self, member: Member, mask: Mask, parts: dict[Mask, Number], touched: set[Member]) -> bool:
        """Whether a part is common, now that it is entered."""
        if mask not in parts:
            number = parts[mask] = member.number(mask)
            having = self._having.setdefault(number, {})
            if member not in having:
                if len(having) == 1:
                    touched.update(having)
                having[member] = []
            having[member].append(mask)
        return len(self._having[parts[mask]]) > 1

    # --- what the paper speaks of

    def maximal(self, one: Member, two: Member) -> list[Number]:
        """The maximal common sub-patterns of two patterns (MP_ij): those that are part of no other common one."""
        shared = [(mask, number) for mask, number in self.common(one) if two in self._having[number]]
        extended = {
            number for mask, number in shared for larger, _ in shared if mask != larger and mask & larger == mask
        }
        return list(dict.fromkeys(number for _, number in shared if number not in extended))

    def peers(self, member: Member) -> set[Member]:
        """The patterns that a pattern has something in common with."""
        return {other for _, number in self.common(member) for other in self._having[number]} - {member}

    def density(self) -> float:
        """The share of the other patterns that a pattern has something in common with, on average (appendix D)."""
        others = len(self._parts) - 1
        return (
            sum(len(self.peers(member)) for member in self._parts) / (len(self._parts) * others) if others > 0 else 0.0
        )

    def components(self) -> list[list[Member]]:
        """Patterns that have nothing to do with each other can be planned apart."""
        place = {member: place for place, member in enumerate(self._parts)}
        left_over = dict(self._parts)
        found = []
        while left_over:
            reached = {next(iter(left_over))}
            open_ = list(reached)
            seen: set[Number] = set()
            while open_:
                for _, number in self.common(open_.pop()):
                    if number not in seen:
                        seen.add(number)
                        new = self._having[number].keys() - reached
                        reached |= new
                        open_ += new
            for member in reached:
                del left_over[member]
            found.append(sorted(reached, key=place.__getitem__))
        return found

    def pairs(self) -> Iterator[tuple[Member, Member]]:
        """The edges; there may be as many as pairs of patterns."""
        for one, two in combinations(self._parts, 2):
            if two in self.peers(one):
                yield one, two
