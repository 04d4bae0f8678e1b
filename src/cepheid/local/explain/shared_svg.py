"""What patterns share as a drawing: a box for each part, larger parts to the right of what they are made of.

A part that several others are made of stands beside the first of them, and the others follow below: no two lines cross.
Patterns are listed in the box of the largest part that they share, and once more at the end; none is drawn.
"""

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
    Sketch,
    length,
    rectangle,
    shortened,
    text,
    width_of,
)
from cepheid.local.explain.plan_nodes import number
from cepheid.local.explain.shared import SharedPart, SharedParts, Sharer

WIDEST = 46
"""Characters in a line of a box; what is longer is shown when the mouse points at it."""
LISTED = 3
"""Lines of conditions in a box, and of names."""
NARROWEST = 1_000
"""So wide a drawing may be in any case."""
ACROSS, BELOW, APART = 44, 10, 26
"""Between columns, between boxes, between groups."""
COLUMN_WIDEST, COLUMN_GAP = 64, 28
"""Characters in a column of the list of patterns, and between two columns."""
FILL, BAR = "#e8f1fb", "#a9cdf3"


def draw_shared(sketch: Sketch, shared: SharedParts) -> None:
    sketch.line("What is shared", weight="bold")
    sketch.line(shared.summary, PALE)
    sketch.line(
        "In a box: what it finds, what its last join asks, who uses it and what that saves, and which patterns go on "
        "from it by themselves.",
        PALE,
    )
    most = max((part.saved for part in shared.parts), default=0.0)
    several = [group for group in shared.groups if len(group) > 1]
    for place, group in enumerate(several, start=1):
        sketch.bottom += APART - LINE / 2
        if len(shared.groups) > 1:
            patterns = dict.fromkeys(name for part in group for name in part.patterns)
            sketch.line(f"Group {place}: {len(patterns)} patterns", weight="bold")
        _draw_group(sketch, group, most)
    rest = [group[0] for group in shared.groups if len(group) == 1]
    if rest:
        sketch.bottom += APART - LINE / 2
        if several:
            sketch.line("Parts that have nothing to do with others", weight="bold")
            sketch.bottom += BELOW / 2
        _draw_grid(sketch, rest, most)
    sketch.bottom += APART
    _draw_sharers(sketch, shared)
    sketch.bottom += LINE


# --- the parts of a group


@dataclass(frozen=True, slots=True)
class _Line:
    words: str
    colour: str = PALE
    weight: str | None = None
    hint: str | None = None
    bar: float = 0.0


def _draw_group(sketch: Sketch, group: Sequence[SharedPart], most: float) -> None:
    lines = {part.number: list(_lines(part, most)) for part in group}
    larger: dict[int, list[SharedPart]] = {part.number: [] for part in group}
    for part in group:
        if part.parts:
            larger[part.parts[0]].append(part)
    ends = [part for part in group if not part.parts and not larger[part.number]]
    sizes = sorted({len(part.events) for part in group if part not in ends})
    widths = {size: _width([lines[p.number] for p in group if len(p.events) == size]) for size in sizes}
    left = {size: MARGIN + sum(widths[s] + ACROSS for s in sizes if s < size) for size in sizes}
    for size in sizes:
        sketch.parts.append(text(left[size], sketch.bottom + FONT, f"{size} events", PALE))
        sketch.right = max(sketch.right, left[size] + widths[size])
    sketch.bottom += LINE + BELOW / 2 if sizes else 0

    def put(part: SharedPart, y: float) -> float:
        """Draw a part and all that are made of it, from a height on; where they end."""
        x, width = left[len(part.events)], widths[len(part.events)]
        below = y
        for other in larger[part.number]:
            sketch.parts.append(_edge(x + width, y, left[len(other.events)], below))
            below = put(other, below)
        sketch.parts.extend(_box(lines[part.number], x, y, width))
        return max(y + _height(lines[part.number]) + BELOW, below)

    for part in group:
        if not part.parts and part not in ends:
            sketch.bottom = put(part, sketch.bottom)
    if ends:
        _draw_grid(sketch, ends, most)


def _draw_grid(sketch: Sketch, parts: Sequence[SharedPart], most: float) -> None:
    """Parts of which nothing else is made, side by side."""
    boxes = [list(_lines(part, most)) for part in parts]
    width = _width(boxes)
    columns = max(1, min(len(boxes), int((max(sketch.right, NARROWEST) - MARGIN + ACROSS) // (width + ACROSS))))
    for start in range(0, len(boxes), columns):
        row = boxes[start : start + columns]
        for place, lines in enumerate(row):
            x = MARGIN + place * (width + ACROSS)
            sketch.parts.extend(_box(lines, x, sketch.bottom, width))
            sketch.right = max(sketch.right, x + width)
        sketch.bottom += max(map(_height, row)) + BELOW


def _width(boxes: Sequence[Sequence[_Line]]) -> float:
    return 2 * PADDING + CHARACTER * max(length(line.words) for lines in boxes for line in lines)


def _height(lines: Sequence[_Line]) -> float:
    return 2 * PADDING + LINE * len(lines)


def _lines(part: SharedPart, most: float) -> Iterator[_Line]:
    head = f"#{part.number}  {', '.join(part.events)}"
    yield _Line(shortened(head, WIDEST), INK, "bold", head)
    if len(part.parts) > 1:
        yield _Line(" with ".join(f"#{other}" for other in part.parts))
    for words in _in_rows(part.conditions, LISTED):
        yield _Line(words, hint="\n".join(part.conditions))
    saved = f"{part.used}, cost {number(float(part.cost))}, saves {number(float(part.saved))}"
    names = "\n".join(f"{', '.join(slots)} of {name}" for slots, name in part.users)
    yield _Line(saved, INK, hint=names, bar=part.saved / most if most else 0.0)
    hint = ", ".join(part.largest_of)
    for row, words in enumerate(_in_rows(part.largest_of, LISTED)):
        yield _Line(f"{' ' if row else '→'} {words}", hint=hint)


def _in_rows(words: Sequence[str], most: int) -> list[str]:
    """One after the other in lines, as many as there is place for."""
    rows: list[str] = []
    for place, word in enumerate(words):
        shown = shortened(word, WIDEST - 14)
        if rows and length(rows[-1]) + length(shown) <= WIDEST - (14 if len(rows) == most else 2):
            rows[-1] += f", {shown}"
        elif len(rows) < most:
            rows.append(shown)
        else:
            rows[-1] += f" and {len(words) - place} more"
            break
    return rows


def _box(lines: Sequence[_Line], x: float, y: float, width: float) -> Iterator[str]:
    yield rectangle(x, y, width, _height(lines), FILL, LINE_COLOUR)
    for place, line in enumerate(lines):
        top = y + PADDING + place * LINE
        if line.bar:
            yield rectangle(x + 1, top, max(2.0, (width - 2) * line.bar), LINE - 2, BAR)
        hint = line.hint if line.hint != line.words else None
        yield text(x + PADDING, top + FONT + 1, line.words, line.colour, weight=line.weight, hint=hint)


def _edge(x: float, y: float, right: float, below: float) -> str:
    """From the first line of one box to that of another, down along the column."""
    start, end = y + PADDING + LINE / 2, below + PADDING + LINE / 2
    bend = x + ACROSS / 2
    return (
        f'<path d="M{x:.1f} {start:.1f} H{bend:.1f} V{end:.1f} H{right:.1f}" '
        f'fill="none" stroke="{LINE_COLOUR}" stroke-width="1.5"/>'
    )


# --- who is made of what


def _draw_sharers(sketch: Sketch, shared: SharedParts) -> None:
    """A list of all patterns in columns, as many as fit beside each other."""
    sketch.line("What each pattern is made of", weight="bold")
    rows = [(f"{', '.join(sharer.names)}: ", sharer) for sharer in shared.sharers]
    widest = min(max(length(name + sharer.plan) for name, sharer in rows), COLUMN_WIDEST)
    width = CHARACTER * widest + COLUMN_GAP
    columns = max(1, min(int((sketch.right - MARGIN + COLUMN_GAP) // width), -(-len(rows) // 5)))
    high = -(-len(rows) // columns)
    for place, (name, sharer) in enumerate(rows):
        x, y = MARGIN + width * (place // high), sketch.bottom + LINE * (place % high) + FONT
        sketch.parts.extend(_sharer(name, sharer, x, y, widest))
    sketch.right = max(sketch.right, MARGIN + width * columns - COLUMN_GAP)
    sketch.bottom += LINE * high
    if shared.alone:
        sketch.bottom += LINE / 2
        for words in _wrapped(f"Share nothing: {', '.join(shared.alone)}", (sketch.right - MARGIN) / CHARACTER):
            sketch.line(words, PALE)


def _sharer(name: str, sharer: Sharer, x: float, y: float, widest: int) -> Iterator[str]:
    shown = shortened(name + sharer.plan, widest)
    hint = name + sharer.plan if shown != name + sharer.plan else None
    yield text(x, y, shown[: len(name)], weight="bold")
    yield text(x + width_of(name), y, shown[len(name) :], PALE, hint=hint)


def _wrapped(words: str, columns: float) -> Iterator[str]:
    line = ""
    for word in words.split(" "):
        if line and length(line) + 1 + length(word) > max(columns, 60):
            yield line
            line = "  " + word
        else:
            line = f"{line} {word}" if line else word
    yield line
