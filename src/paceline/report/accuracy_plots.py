"""Test accuracy of every point as a plot: where a study asks for accuracy, its main one."""

from __future__ import annotations

from paceline.report.canvas import HEIGHT, Figure, Numbers, axis_title, layout, plain, rounded
from paceline.report.series import Accuracies

_ROW_HEIGHT = 36


def accuracy_figure(name: str, found: Accuracies) -> Figure | None:
    """One row per point: the mean of its repeats with their standard deviation."""
    if not found.labels:
        return None
    rows, several = list(range(len(found.labels))), any(found.stds)
    around = rounded([std or 0.0 for std in found.stds])
    drawing = layout(height=max(HEIGHT, 80 + _ROW_HEIGHT * len(rows)))
    drawing["xaxis"] |= {"title": axis_title("test accuracy (%)")}
    drawing["yaxis"] |= {
        "range": [len(rows) - 0.5, -0.5],
        "tickvals": rows,
        "ticktext": [plain(label) for label in found.labels],
        "showgrid": False,
        "ticklabelstandoff": 6,
    }
    caption = f"Mean of the repeats{', with their standard deviation' if several else ''}."
    if found.reference is not None:
        line = {"color": "var(--muted)", "width": 2, "dash": "dash"}
        place = {"x0": found.reference, "x1": found.reference, "yref": "paper", "y0": 0, "y1": 1}
        drawing["shapes"] = [{"type": "line", **place, "line": line}]
        caption += " The dashed line is the reference; hollow points are not shown to differ from it."
    marks = {
        "type": "scatter",
        "mode": "markers",
        "name": "test accuracy",
        "showlegend": False,
        "x": rounded(found.means),
        "y": rows,
        "marker": {
            "symbol": "circle",
            "size": 10,
            "color": ["var(--blue)" if filled else "var(--surface)" for filled in _filled(found)],
            "line": {"color": "var(--blue)", "width": 2},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": around,
            "arrayminus": around,
            "color": "var(--blue)",
            "thickness": 1.5,
            "width": 5,
        },
        "customdata": [[plain(label), text] for label, text in zip(found.labels, found.texts, strict=True)],
        "hovertemplate": "%{customdata[0]}: %{customdata[1]}<extra></extra>",
    }
    numbers: list[list[str | float | None]] = [
        [label, *rounded((mean, std))] for label, mean, std in zip(found.labels, found.means, found.stds, strict=True)
    ]
    return Figure(
        name=name,
        title="Test accuracy",
        caption=caption,
        keys=(),
        data=[marks],
        layout=drawing,
        terms=("test accuracy", "different, equal") if found.reference is not None else ("test accuracy",),
        numbers=Numbers(("point", "test accuracy (%)", "standard deviation"), numbers),
    )


def _filled(found: Accuracies) -> list[bool]:
    """The reference, and what differs from it; all where there is none."""
    if found.reference is None:
        return [True] * len(found.labels)
    return [called or mean == found.reference for called, mean in zip(found.called, found.means, strict=True)]
