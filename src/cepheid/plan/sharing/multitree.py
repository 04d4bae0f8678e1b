"""A plan for all patterns at once: a multi-pattern multitree (MPM), or a multi-pattern tree (MPT) if all are chains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cepheid.plan.sharing.local import Mask, Tree, inside, translated
from cepheid.plan.sharing.members import Catalogue, Member, Node, Number


class MultiTree:
    """A tree for each pattern, and the cost of all joins that differ: Cost_tree^multi (for chains: Cost_ord^multi).

    Each sub-pattern is evaluated once, in the largest window of those that use it. The cost follows every change, and a
    change costs as much time as the pattern that is changed is large.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.trees: dict[Member, Tree] = {}
        self.cost = 0.0
        # For each sub-pattern how often it is used, by window and by the way it is put together.
        self._uses: dict[Number, dict[tuple[float, Node | None], int]] = {}

    def add(self, member: Member, tree: Tree) -> None:
        self.trees[member] = tree
        for number in member.leaves():
            self._use(number, (member.window, None))
        for node in member.nodes(tree):
            self._use(node[0], (member.window, node))

    def remove(self, member: Member) -> Tree:
        tree = self.trees.pop(member)
        for number in member.leaves():
            self._leave(number, (member.window, None))
        for node in member.nodes(tree):
            self._leave(node[0], (member.window, node))
        return tree

    def change(self, member: Member, tree: Tree) -> Tree:
        """Another tree for a pattern; the old one."""
        old = self.trees[member]
        if old != tree:
            new = list(member.nodes(tree))
            for node in member.nodes(old):
                if node in new:
                    new.remove(node)
                else:
                    self._leave(node[0], (member.window, node))
            for node in new:
                self._use(node[0], (member.window, node))
            self.trees[member] = tree
        return old

    def change_all(self, trees: Mapping[Member, Tree]) -> dict[Member, Tree]:
        return {member: self.change(member, tree) for member, tree in trees.items()}

    def users(self, number: Number) -> int:
        """How many times a sub-pattern is used."""
        return sum(self._uses.get(number, {}).values())

    def window_of(self, number: Number) -> float:
        """The largest window in which a sub-pattern is evaluated; 0 if it is not."""
        return max((window for window, _ in self._uses.get(number, ())), default=0.0)

    def shared(self, member: Member) -> list[Mask]:
        """The largest sub-trees of a pattern that others have as well."""
        found: list[Mask] = []
        for left, right in reversed(self.trees[member]):
            mask = left | right
            if not any(mask & larger for larger in found) and self.users(member.number(mask)) > 1:
                found.append(mask)
        return found

    def cost_of(self, number: Number) -> float:
        uses = self._uses[number]
        window = max(window for window, _ in uses) if len(uses) > 1 else next(iter(uses))[0]
        work = min((self._catalogue.work[node] for _, node in uses if node is not None), default=0.0)
        return self._catalogue.scaled(self._catalogue.sizes[number] + work, number, window)

    def cost_for(self, members: Iterable[Member]) -> float:
        """What some patterns cost that share nothing with the others."""
        numbers = {number for member in members for number in member.leaves()}
        numbers |= {node[0] for member in members for node in member.nodes(self.trees[member])}
        return sum(map(self.cost_of, numbers))

    def full_cost(self) -> float:
        """The cost from scratch: what ``cost`` should be, but for rounding."""
        return sum(map(self.cost_of, self._uses))

    def __iter__(self) -> Iterator[Number]:
        """The sub-patterns that are evaluated."""
        return iter(self._uses)

    def _use(self, number: Number, how: tuple[float, Node | None]) -> None:
        uses = self._uses.get(number)
        if uses is None:
            self._uses[number] = {how: 1}
            self.cost += self.cost_of(number)
        elif how in uses:
            uses[how] += 1
        else:
            before = self.cost_of(number)
            uses[how] = 1
            self.cost += self.cost_of(number) - before

    def _leave(self, number: Number, how: tuple[float, Node | None]) -> None:
        uses = self._uses[number]
        if uses[how] > 1:
            uses[how] -= 1
            return
        before = self.cost_of(number)
        del uses[how]
        if uses:
            self.cost += self.cost_of(number) - before
        else:
            del self._uses[number]
            self.cost -= before


def unified(tree: MultiTree, members: Iterable[Member]) -> dict[Member, Tree]:
    """The same sub-patterns, each put together in the same way wherever it is used: the first user's.

    A sub-pattern is evaluated once, so a part that only another way to put it together needs is not needed at all.
    """
    made: dict[Number, tuple[Member, Mask]] = {}
    found: dict[Member, Tree] = {}

    def build(member: Member, mask: Mask, sides: Mapping[Mask, tuple[Mask, Mask]]) -> Tree:
        if mask.bit_count() == 1:
            return ()
        first, where = made.setdefault(member.number(mask), (member, mask))
        if first is not member or where != mask:
            if first not in found:  # of an earlier user that is being built itself
                return inside(tree.trees[member], mask)
            places = list(zip(first.places(where), member.places(mask), strict=True))
            return translated(inside(found[first], where), places)
        left, right = sides[mask]
        return (*build(member, left, sides), *build(member, right, sides), (left, right))

    for member in members:
        sides = {left | right: (left, right) for left, right in tree.trees[member]}
        found[member] = build(member, member.full, sides)
    return found
