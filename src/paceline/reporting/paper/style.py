"""How figures of a paper look: sizes in print, colours and marks that stay apart in grey and to the colour-blind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WIDTH_MM = 85.0
"""One column of a paper of two."""
SIDE_BY_SIDE_MM = 130.0
"""From this width on panels stand side by side, below it one above the other."""
MOST_LINES = 7
"""Series in one plot: more cannot be told apart at this size."""
MOST_NAMED = 3
"""Points that a caption or a footnote names one by one."""

INK, MUTED, GRID = "#1a1a1a", "#6b6b6b", "#dddddd"


@dataclass(frozen=True, slots=True)
class Mark:
    """How one series is drawn; no two share any of the three."""

    color: str
    marker: str
    dash: Any
    """As matplotlib writes it: a name, or lengths of lines and gaps."""


# Colours after Okabe and Ito, two of them moved so that no two are alike in grey. The ideal is dashed, too, but has no
# markers.
MARKS = (
    Mark("#0072b2", "o", "-"),
    Mark("#d55e00", "s", (0, (4, 1.2))),
    Mark("#009e73", "D", (0, (4, 1.2, 1, 1.2))),
    Mark("#5c2f5a", "^", (0, (1, 1))),
    Mark("#e69f00", "P", (0, (6, 1, 1, 1, 1, 1))),
    Mark("#86c9f0", "X", (0, (2, 1))),
    Mark("#1a1a1a", "v", (0, (8, 1.5))),
)

# Text is outlines in SVG and a TrueType font in PDF, which every publisher takes: no reader needs our fonts.
RC: dict[str, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "paceline",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "font.family": ["DejaVu Sans"],
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.6,
    "text.parse_math": False,  # a name with a dollar sign is a name
    "text.usetex": False,
    "axes.unicode_minus": True,
    "savefig.dpi": 300,
}

# Without dates and program names the same study gives the same bytes.
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
