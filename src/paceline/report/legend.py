"""Keys of the plots as small inline drawings: they wrap like text, on a phone and on paper too.

Each shows what a mark looks like without its colour: marker and dash of a line, pattern of a bar.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

# Plotly's markers and patterns, drawn around the origin and in a square of 14.
_MARKERS = {
    "circle": "M4 0A4 4 0 1 1-4 0A4 4 0 1 1 4 0Z",
    "square": "M-3.5-3.5H3.5V3.5H-3.5Z",
    "diamond": "M0-4.8L4.8 0L0 4.8L-4.8 0Z",
    "triangle-up": "M0-4.6L4.4 3.2H-4.4Z",
    "cross": "M-1.5-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z",
    "x": "M-4-2.2L-2.2-4L0-1.8L2.2-4L4-2.2L1.8 0L4 2.2L2.2 4L0 1.8L-2.2 4L-4 2.2L-1.8 0Z",
    "pentagon": "M0-4.6L4.4-1.4L2.7 3.7H-2.7L-4.4-1.4Z",
}
_DASHES = {"dash": "6 4", "dot": "2 3", "dashdot": "7 3 2 3"}
_PATTERNS = {
    "": "",
    "/": "M0 7L7 0M0 14L14 0M7 14L14 7",
    "\\": "M7 0L14 7M0 0L14 14M0 7L7 14",
    "x": "M0 7L7 0M0 14L14 0M7 14L14 7M7 0L14 7M0 0L14 14M0 7L7 14",
    "|": "M3.5 0V14M10.5 0V14",
    "-": "M0 3.5H14M0 10.5H14",
    "+": "M3.5 0V14M10.5 0V14M0 3.5H14M0 10.5H14",
    ".": "M3.5 3.5h0M10.5 3.5h0M3.5 10.5h0M10.5 10.5h0",
}

# Of ledger kinds: colour, pattern. Computation is blue, communication red, input green. `message` is one of a timeline
# of which nothing says until when it waited. No two have one colour: a timeline has no room for patterns.
KIND_STYLES = {
    "startup": ("grey", "\\"),
    "load": ("mint", "/"),
    "input-wait": ("green", ""),
    "forward": ("sky", ""),
    "backward": ("blue", ""),
    "comm-wait": ("coral", "x"),
    "comm-transfer": ("vermillion", ""),
    "optimizer": ("yellow", "|"),
    "evaluate": ("purple", "-"),
    "checkpoint": ("orange", "+"),
    "other": ("pale", "."),
    "message": ("brick", ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One entry of a legend: a line with its marker, or a bar with its pattern."""

    label: str
    color: str
    dash: str = "solid"
    """solid, dash, dot or dashdot, as Plotly calls them; the markers of a dashed line are hollow."""
    marker: str = ""
    pattern: str | None = None
    """None for a line."""


def kind_key(kind: str) -> Key:
    """The entry of a kind of the ledger."""
    color, pattern = KIND_STYLES[kind]
    return Key(label=kind, color=color, pattern=pattern)


def legend_html(keys: Iterable[Key]) -> str:
    """A list of drawn keys and their labels."""
    entries = "".join(
        f"<li>{_bar(key) if key.pattern is not None else _line(key)}{escape(key.label)}</li>" for key in keys
    )
    return f'<ul class="legend">{entries}</ul>' if entries else ""


def _line(key: Key) -> str:
    color = f"var(--{key.color})"
    dash = f";stroke-dasharray:{_DASHES[key.dash]}" if key.dash in _DASHES else ""
    marker = ""
    if key.marker:
        fill = "var(--surface)" if key.dash == "dash" else color
        shape = _MARKERS[key.marker]
        marker = f'<path d="{shape}" transform="translate(15 7)" style="fill:{fill};stroke:{color};stroke-width:1.5"/>'
    line = f'<path d="M0 7H30" style="fill:none;stroke:{color};stroke-width:2.5{dash}"/>'
    return f'<svg width="30" height="14" aria-hidden="true">{line}{marker}</svg>'


def _bar(key: Key) -> str:
    square = f'<path d="M0 0H14V14H0Z" style="fill:var(--{key.color})"/>'
    shape = _PATTERNS[key.pattern or ""]
    stroke = "stroke-width:3;stroke-linecap:round" if key.pattern == "." else "stroke-width:1"
    pattern = f'<path d="{shape}" style="stroke:var(--on-{key.color});{stroke};opacity:.45"/>' if shape else ""
    return f'<svg width="14" height="14" aria-hidden="true">{square}{pattern}</svg>'
