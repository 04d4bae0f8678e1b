"""A plan as a drawing: boxes for its parts, matches coming out at the top, events going in at the bottom.

The font is monospaced, so the width of a text is known without measuring it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from cepheid.local.explain.plan_nodes import BranchPlan, PatternPlan, PlanNode, Step, number
from cepheid.local.explain.tree_text import branch_title, count_of

FONT = 12
CHARACTER = 0.605 * FONT
LINE = 18
PADDING = 8
GAP = 18
"""Between boxes side by side."""
RISE = 34
"""Between a box and the boxes below it."""
MARGIN = 20
SHORTEST_BAR = 5
"""In characters: the place for the numbers that were found, and the bars behind them."""
LONGEST = 60
"""Longer texts are cut in the drawing; all of it is shown when the mouse points at it."""

INK, PALE, LINE_COLOUR, SURPRISE = "#1f2933", "#66727f", "#9aa5b1", "#c2410c"
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


def draw(patterns: Sequence[PatternPlan], events: int | None, notes: Sequence[str]) -> str:
    """The plans of all patterns, one below the other."""
    body: list[str] = []
    y, right = float(MARGIN), 0.0
    for pattern in patterns:
        found = "" if events is None else f": {count_of(pattern.matches or 0, 'match')} in {count_of(events, 'event')}"
        heading, clauses = f"{pattern.name}{found}", ", ".join(pattern.clauses)
        body += [_text(MARGIN, y + FONT, heading, weight="bold"), _text(MARGIN, y + LINE + FONT, clauses, PALE)]
        right = max(right, MARGIN + _width(heading), MARGIN + _width(clauses))
        y += 2 * LINE
        for place, branch in enumerate(pattern.branches, start=1):
            prefix = f"branch {place} of {len(pattern.branches)}: " if len(pattern.branches) > 1 else ""
            drawn, width, height = _branch(branch, prefix, y, with_found=events is not None)
            body += drawn
            right, y = max(right, width), y + height + RISE / 2
        y += LINE
    for note in notes:
        body.append(_text(MARGIN, y + FONT, note, PALE))
        right, y = max(right, MARGIN + _width(note)), y + LINE
    width, height = round(right + MARGIN), round(y + MARGIN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="\'DejaVu Sans Mono\', Menlo, Consolas, monospace" font-size="{FONT}">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _branch(branch: BranchPlan, prefix: str, y: float, *, with_found: bool) -> tuple[list[str], float, float]:
    """What is drawn, how far it reaches to the right, and how high it is."""
    title = prefix + branch_title(branch).replace("⋈", "+")  # few monospaced fonts have the sign
    parts = [_text(MARGIN, y + FONT, title, PALE)]
    right = MARGIN + _width(title)
    if branch.root is None:
        return parts, right, LINE
    columns = _columns(branch.root, with_found=with_found)
    boxes = list(_placed(branch.root, MARGIN, y + LINE + 10, columns))
    most = max((step.found or 0 for box in boxes for step in (box.node.head, *box.node.steps)), default=0)
    for box in boxes:
        parts += [_edge(box, below) for below in box.inputs]
    for box in boxes:
        parts += _drawn(box, columns, most)
    bottom = max(box.y + box.height for box in boxes)
    return parts, max(right, *(box.x + box.width for box in boxes)), bottom - y


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
    return max(_length(_shown(step)) for step in (node.head, *node.steps))


# --- what is in them


def _drawn(box: _Box, columns: tuple[int, int], most: int) -> Iterator[str]:
    node = box.node
    yield (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5" '
        f'fill="{FILLS[node.kind]}" stroke="{LINE_COLOUR}"/>'
    )
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
        yield (
            f'<rect x="{right - bar:.1f}" y="{y + 1:.1f}" width="{bar:.1f}" height="{LINE - 3}" rx="2" '
            f'fill="{BARS[box.node.kind]}"/>'
        )
        dry = step.found == 0 and box.node.kind != "negation"
        colour = SURPRISE if step.surprise or dry else INK
        yield _text(right, base, number(step.found), colour, anchor="end", hint=step.surprise)
        right = place
    if found:
        right = box.x + box.width - PADDING - CHARACTER * (found + 2)
    if expected and step.expected is not None:
        yield _text(right, base, _about(step), PALE, anchor="end", hint="expected")
    shown = _shown(step)
    hint = step.text if shown != step.text else None
    yield _text(box.x + PADDING, base, shown, INK if head else PALE, weight="bold" if head else None, hint=hint)


def _edge(above: _Box, below: _Box) -> str:
    top, bottom = above.y + above.height, below.y
    bend = (top + bottom) / 2
    # Where a box leaves, the lines of all inputs meet.
    return (
        f'<path d="M{below.middle:.1f} {bottom:.1f} V{bend:.1f} H{above.middle:.1f} V{top:.1f}" '
        f'fill="none" stroke="{LINE_COLOUR}" stroke-width="1.5"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    colour: str = INK,
    *,
    weight: str | None = None,
    anchor: str | None = None,
    hint: str | None = None,
) -> str:
    extra = f' font-weight="{weight}"' if weight else ""
    extra += f' text-anchor="{anchor}"' if anchor else ""
    title = f"<title>{escape(hint)}</title>" if hint else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{extra} xml:space="preserve">{escape(text)}{title}</text>'


def _shown(step: Step) -> str:
    return step.text if _length(step.text) <= LONGEST else f"{step.text[: LONGEST - 1]}…"


def _length(text: str) -> int:
    """In columns: Chinese and Japanese characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _width(text: str) -> float:
    return CHARACTER * _length(text)
