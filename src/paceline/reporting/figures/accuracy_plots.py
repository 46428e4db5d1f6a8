"""Test accuracy of every point as a plot: where a study asks for accuracy, its main one."""

from __future__ import annotations

from typing import Any

from paceline.reporting.figures.canvas import HEIGHT, LOW_ROW, Figure, Numbers, axis_title, layout, plain, rounded
from paceline.reporting.figures.drawn_series import Accuracies
from paceline.reporting.wording.learning_words import LEFT_OUT

_ROW_HEIGHT = 36


def accuracy_figure(name: str, found: Accuracies) -> Figure | None:
    """One row per point: the mean of its repeats with their standard deviation; None where there are no rows."""
    if not found.labels:
        return None
    caption = f"Mean of the repeats{', with their standard deviation' if any(found.stds) else ''}."
    if found.reference is not None:
        caption += " The dashed line is the reference; hollow points are not shown to differ from it."
    rows: list[list[str | float | None]] = [
        [label, *rounded((mean, std))] for label, mean, std in zip(found.labels, found.means, found.stds, strict=True)
    ]
    return Figure(
        name=name,
        title="Test accuracy",
        caption=f"{caption} {LEFT_OUT}" if found.fewer else caption,
        keys=(),
        data=[_marks(found)],
        layout=_layout(found),
        terms=("test accuracy", "different, equal") if found.reference is not None else ("test accuracy",),
        numbers=Numbers(("point", "test accuracy (%)", "standard deviation"), rows),
        least=60 + LOW_ROW * len(found.labels),
    )


def _marks(found: Accuracies) -> dict[str, Any]:
    # A deviation may reach beyond what an accuracy can be: one dead run among four is enough.
    above, below = (
        rounded([min(std or 0.0, room) for std, room in zip(found.stds, rooms, strict=True)])
        for rooms in ([100 - mean for mean in found.means], found.means)
    )
    # The reference, and what differs from it; all where there is none.
    filled = [found.reference in (None, row) or called for row, called in enumerate(found.called)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "test accuracy",
        "showlegend": False,
        "x": rounded(found.means),
        "y": list(range(len(found.labels))),
        "marker": {
            "symbol": "circle",
            "size": 10,
            "color": ["var(--blue)" if full else "var(--surface)" for full in filled],
            "line": {"color": "var(--blue)", "width": 2},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": above,
            "arrayminus": below,
            "color": "var(--blue)",
            "thickness": 1.5,
            "width": 5,
        },
        "customdata": [[plain(label), text] for label, text in zip(found.labels, found.texts, strict=True)],
        "hovertemplate": "%{customdata[0]}: %{customdata[1]}<extra></extra>",
    }


def _layout(found: Accuracies) -> dict[str, Any]:
    rows = list(range(len(found.labels)))
    drawing = layout(height=max(HEIGHT, 80 + _ROW_HEIGHT * len(rows)))
    drawing["xaxis"] |= {"title": axis_title("test accuracy (%)")}
    drawing["yaxis"] |= {
        "range": [len(rows) - 0.5, -0.5],
        "tickvals": rows,
        "ticktext": [plain(label) for label in found.labels],
        "showgrid": False,
        "ticklabelstandoff": 6,
    }
    if found.reference is not None:
        at = rounded([found.means[found.reference]])[0]
        line = {"color": "var(--muted)", "width": 2, "dash": "dash"}
        drawing["shapes"] = [{"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}]
    return drawing
