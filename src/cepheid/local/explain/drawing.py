"""What drawings of plans are made of: text in a monospaced font, so that its width is known without measuring it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from html import escape

FONT = 12
CHARACTER = 0.605 * FONT
LINE = 18
PADDING = 8
MARGIN = 20

INK, PALE, LINE_COLOUR, SURPRISE = "#1f2933", "#66727f", "#9aa5b1", "#c2410c"


@dataclass(slots=True)
class Sketch:
    """What has been drawn, how far it reaches to the right, and where it ends below."""

    parts: list[str] = field(default_factory=list)
    right: float = 0.0
    bottom: float = float(MARGIN)

    def line(self, words: str, colour: str = INK, *, weight: str | None = None, x: float = MARGIN) -> None:
        """One more line of text below."""
        self.parts.append(text(x, self.bottom + FONT, words, colour, weight=weight))
        self.right = max(self.right, x + width_of(words))
        self.bottom += LINE

    def page(self) -> str:
        """A drawing is as large as what is on it: it is scrolled, and its text never shrinks."""
        width, height = round(self.right + MARGIN), round(self.bottom + MARGIN)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" '
            f'font-family="\'DejaVu Sans Mono\', Menlo, Consolas, monospace" font-size="{FONT}">\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def text(
    x: float,
    y: float,
    words: str,
    colour: str = INK,
    *,
    weight: str | None = None,
    anchor: str | None = None,
    hint: str | None = None,
) -> str:
    """``y``: of the line that letters stand on. ``hint``: shown when the mouse points at the text."""
    extra = f' font-weight="{weight}"' if weight else ""
    extra += f' text-anchor="{anchor}"' if anchor else ""
    title = f"<title>{escape(hint)}</title>" if hint else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{extra} xml:space="preserve">{escape(words)}{title}</text>'


def rectangle(x: float, y: float, width: float, height: float, fill: str, stroke: str | None = None) -> str:
    edge = f' stroke="{stroke}"' if stroke else ""
    radius = 5 if stroke else 2
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}" fill="{fill}"{edge}/>'
    )


def length(words: str) -> int:
    """In columns: Chinese and Japanese characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in words)


def width_of(words: str) -> float:
    return CHARACTER * length(words)


def shortened(words: str, columns: int) -> str:
    """Cut where there is no place for all of it."""
    return words if length(words) <= columns else f"{words[: columns - 1]}…"
