"""A plan as a drawing: boxes for its parts, matches coming out at the top, events going in at the bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cepheid.local.explain.drawing import (
    CHARACTER,
    FONT,
    INK,
    LINE,
    LINE_COLOUR,
    MARGIN,
    PADDING,
    PALE,
    SURPRISE,
    Sketch,
    length,
    rectangle,
    shortened,
    text,
    width_of,
)
from cepheid.local.explain.plan_nodes import BranchPlan, PatternPlan, PlanNode, Step, number
from cepheid.local.explain.tree_text import branch_title, count_of

GAP = 18
"""Between boxes side by side."""
RISE = 34
"""Between a box and the boxes below it."""
SHORTEST_BAR = 5
"""In characters: the place for the numbers that were found, and the bars behind them."""
LONGEST = 60
"""Longer texts are cut in the drawing; all of it is shown when the mouse points at it."""

FILLS = {
    "events": "#f3f6f9",
    "join": "#e8f1fb",
    "search": "#e8f1fb",
    "steps": "#e8f1fb",
    "sets": "#eaf6ec",
    "negation": "#fdf0ee",
}
BARS = {
    "events": "#d5dee7",
    "join": "#bcd8f5",
    "search": "#bcd8f5",
    "steps": "#bcd8f5",
    "sets": "#c2e5c8",
    "negation": "#f6cfc9",
}


@dataclass(frozen=True, slots=True)
class _Box:
    """A part of the plan with its place. ``x``: its left edge."""

    node: PlanNode
    x: float
    y: float
    width: float
    height: float
    inputs: tuple[_Box, ...]

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    def __iter__(self) -> Iterator[_Box]:
        yield self
        for box in self.inputs:
            yield from box


def draw_patterns(sketch: Sketch, patterns: Sequence[PatternPlan], events: int | None) -> None:
    """The plans of all patterns, one below the other."""
    for pattern in patterns:
        found = "" if events is None else f": {count_of(pattern.matches or 0, 'match')} in {count_of(events, 'event')}"
        sketch.line(f"{pattern.name}{found}", weight="bold")
        sketch.line(", ".join(pattern.clauses), PALE)
        for place, branch in enumerate(pattern.branches, start=1):
            prefix = f"branch {place} of {len(pattern.branches)}: " if len(pattern.branches) > 1 else ""
            drawn, width, height = _branch(branch, prefix, sketch.bottom, with_found=events is not None)
            sketch.parts += drawn
            sketch.right = max(sketch.right, width)
            sketch.bottom += height + RISE / 2
        sketch.bottom += LINE


def _branch(branch: BranchPlan, prefix: str, y: float, *, with_found: bool) -> tuple[list[str], float, float]:
    """What is drawn, how far it reaches to the right, and how high it is."""
    title = prefix + branch_title(branch).replace("⋈", "+")  # few monospaced fonts have the sign
    parts = [text(MARGIN, y + FONT, title, PALE)]
    right = MARGIN + width_of(title)
    if branch.root is None:
        return parts, right, LINE
    columns = _columns(branch.root, with_found=with_found)
    boxes = list(_placed(branch.root, MARGIN, y + LINE + 10, columns))
    most = max((step.found or 0 for box in boxes for step in (box.node.head, *box.node.steps)), default=0)
    for one in boxes:
        parts += [_edge(one, below) for below in one.inputs]
    for one in boxes:
        parts += _drawn(one, columns, most)
    bottom = max(one.y + one.height for one in boxes)
    return parts, max(right, *(one.x + one.width for one in boxes)), bottom - y


# --- where boxes stand


def _columns(root: PlanNode, *, with_found: bool) -> tuple[int, int]:
    """How many characters the columns of expected and found numbers have, the same in all boxes; none if unused."""
    steps = [step for node in root for step in (node.head, *node.steps)]
    expected = max(len(_about(step)) for step in steps)
    found = max(len(number(step.found)) for step in steps) if with_found else 0
    return expected, max(found, SHORTEST_BAR) if found else 0


def _about(step: Step) -> str:
    """What was expected: no exact number."""
    return "" if step.expected is None else f"~{number(step.expected)}"


def _placed(root: PlanNode, x: float, y: float, columns: tuple[int, int]) -> _Box:
    width = PADDING * 2 + CHARACTER * (_text_columns(root) + sum(c + 2 for c in columns if c))
    height = PADDING * 2 + LINE * (1 + len(root.steps))
    inputs: list[_Box] = []
    left = x
    for part in root.inputs:
        box = _placed(part, left, y + height + RISE, columns)
        left = max(b.x + b.width for b in box) + GAP
        inputs.append(box)
    if not inputs:
        return _Box(root, x, y, width, height, ())
    # In the middle above its inputs, but not to the left of where this part of the tree begins.
    middle = (inputs[0].middle + inputs[-1].middle) / 2
    start = middle - width / 2
    if start < x:
        inputs = [_moved(box, x - start) for box in inputs]
        start = x
    return _Box(root, start, y, width, height, tuple(inputs))


def _moved(box: _Box, by: float) -> _Box:
    return _Box(box.node, box.x + by, box.y, box.width, box.height, tuple(_moved(b, by) for b in box.inputs))


def _text_columns(node: PlanNode) -> int:
    return max(length(_shown(step)) for step in (node.head, *node.steps))


# --- what is in them


def _drawn(box: _Box, columns: tuple[int, int], most: int) -> Iterator[str]:
    node = box.node
    yield rectangle(box.x, box.y, box.width, box.height, FILLS[node.kind], LINE_COLOUR)
    for place, step in enumerate((node.head, *node.steps)):
        yield from _step(box, step, box.y + PADDING + place * LINE, columns, most, head=place == 0)


def _step(box: _Box, step: Step, y: float, columns: tuple[int, int], most: int, *, head: bool) -> Iterator[str]:
    """The text, and on the right what was expected and what was found, with a bar on a logarithmic scale."""
    base = y + FONT + 1
    right = box.x + box.width - PADDING
    expected, found = columns
    if found and step.found is not None:
        place = right - CHARACTER * found
        share = (step.found + 1).bit_length() / max((most + 1).bit_length(), 1)
        bar = CHARACTER * found * share if step.found else 0
        yield rectangle(right - bar, y + 1, bar, LINE - 3, BARS[box.node.kind])
        dry = step.found == 0 and box.node.kind != "negation"
        colour = SURPRISE if step.surprise or dry else INK
        yield text(right, base, number(step.found), colour, anchor="end", hint=step.surprise)
        right = place
    if found:
        right = box.x + box.width - PADDING - CHARACTER * (found + 2)
    if expected and step.expected is not None:
        yield text(right, base, _about(step), PALE, anchor="end", hint="expected")
    shown = _shown(step)
    hint = step.text if shown != step.text else None
    yield text(box.x + PADDING, base, shown, INK if head else PALE, weight="bold" if head else None, hint=hint)


def _edge(above: _Box, below: _Box) -> str:
    top, bottom = above.y + above.height, below.y
    bend = (top + bottom) / 2
    # Where a box leaves, the lines of all inputs meet.
    return (
        f'<path d="M{below.middle:.1f} {bottom:.1f} V{bend:.1f} H{above.middle:.1f} V{top:.1f}" '
        f'fill="none" stroke="{LINE_COLOUR}" stroke-width="1.5"/>'
    )


def _shown(step: Step) -> str:
    return shortened(step.text, LONGEST)
