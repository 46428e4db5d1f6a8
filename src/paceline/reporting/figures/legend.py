"""Keys of the plots as small inline drawings: they wrap like text, on a phone and on paper too.

Each shows what a mark looks like without its colour: marker and dash of a line, pattern of a bar.
"""

from __future__ import annotations

from dataclasses import dataclass

# Plotly's markers and patterns, drawn around the origin and in a square of 14.
MARKERS = {
    "circle": "M4 0A4 4 0 1 1-4 0A4 4 0 1 1 4 0Z",
    "square": "M-3.5-3.5H3.5V3.5H-3.5Z",
    "diamond": "M0-4.8L4.8 0L0 4.8L-4.8 0Z",
    "triangle-up": "M0-4.6L4.4 3.2H-4.4Z",
    "cross": "M-1.5-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z",
    "x": "M-4-2.2L-2.2-4L0-1.8L2.2-4L4-2.2L1.8 0L4 2.2L2.2 4L0 1.8L-2.2 4L-4 2.2L-1.8 0Z",
    "pentagon": "M0-4.6L4.4-1.4L2.7 3.7H-2.7L-4.4-1.4Z",
    "triangle-down": "M0 4.6L4.4-3.2H-4.4Z",
    "star": "M0-5L1.2-1.6L4.8-1.5L1.9.6L2.9 4L0 2L-2.9 4L-1.9.6L-4.8-1.5L-1.2-1.6Z",
    "hourglass": "M-4-4.2H4L-4 4.2H4Z",
    "bowtie": "M-4.2-4V4L4.2-4V4Z",
    "triangle-left": "M-4.6 0L3.2-4.4V4.4Z",
    "triangle-right": "M4.6 0L-3.2-4.4V4.4Z",
    "star-diamond": "M0-5L1.6-1.6L5 0L1.6 1.6L0 5L-1.6 1.6L-5 0L-1.6-1.6Z",
}
DASHES = {"dash": "6 4", "dot": "2 3", "dashdot": "7 3 2 3"}
PATTERNS = {
    "": "",
    "/": "M0 7L7 0M0 14L14 0M7 14L14 7",
    "\\": "M7 0L14 7M0 0L14 14M0 7L7 14",
    "x": "M0 7L7 0M0 14L14 0M7 14L14 7M7 0L14 7M0 0L14 14M0 7L7 14",
    "|": "M3.5 0V14M10.5 0V14",
    "-": "M0 3.5H14M0 10.5H14",
    "+": "M3.5 0V14M10.5 0V14M0 3.5H14M0 10.5H14",
    ".": "M3.5 3.5h0M10.5 3.5h0M3.5 10.5h0M10.5 10.5h0",
}

# Of ledger kinds: colour, pattern. Computation is blue and solid, communication red and crossed, input green and
# hatched; of one pattern no two are equally light. `message` is one of a timeline of which nothing says until when it
# waited. No two have one colour: a timeline has no room for patterns.
KIND_STYLES = {
    "startup": ("grey", "\\"),
    "load": ("mint", "/"),
    "input-wait": ("green", "/"),
    "forward": ("sky", ""),
    "backward": ("blue", ""),
    "comm-wait": ("coral", "x"),
    "comm-transfer": ("vermillion", "x"),
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
    off: bool = False
    """Whether what it stands for is hidden until a reader asks for it."""


def kind_key(kind: str) -> Key:
    """The entry of a kind of the ledger."""
    color, pattern = KIND_STYLES[kind]
    return Key(label=kind, color=color, pattern=pattern)
