"""Results in a notebook: the verdict, tables and plots as HTML that needs no script, no style sheet and no network.

Plots are static SVG by Matplotlib, some ten kilobytes each. Plotly's output would weigh 4.8 MB per cell with its
script, and be blank in a front end without the extension. The interactive plots are in the report.

Styles are attributes, because front ends drop style sheets of notebooks that they do not trust.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paceline.errors import RequestError
from paceline.reporting.figures.canvas import Figure
from paceline.reporting.figures.report_figures import figures, main_figure
from paceline.reporting.html.markup import fragment
from paceline.reporting.html.static_plot import colours, figure_svg
from paceline.reporting.model import ReportModel
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.text.report_text import table_text


class ShownTable(str):
    """A table as text; in a notebook, as a table."""

    def __new__(cls, table: Table) -> ShownTable:
        shown = super().__new__(cls, table_text(table))
        shown.table = table
        return shown

    table: Table

    def _repr_html_(self) -> str:
        return _card("one_table", self.table)


class ShownPlot:
    """A plot of the report; in a notebook, its drawing."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    @property
    def svg(self) -> str:
        """The drawing as the text of an SVG file."""
        return figure_svg(self.figure)

    def save(self, path: str | Path) -> Path:
        """Write the drawing into a file and return its path."""
        place = Path(path).expanduser()
        place.write_text(self.svg, encoding="utf-8")
        return place

    def __repr__(self) -> str:
        return f"<plot {self.figure.name!r}: {self.figure.caption}>"

    def _repr_html_(self) -> str:
        return _card("one_plot", self.figure)


def shown_plot(model: ReportModel, name: str | None = None) -> ShownPlot:
    """A plot by its name, the main one by default; RequestError with all names for an unknown one."""
    drawn = figures(model)
    wanted = name or main_figure(drawn) or next(iter(drawn), "")
    if wanted in drawn:
        return ShownPlot(drawn[wanted])
    raise RequestError(
        f"There is no plot {name!r} of this study." if name else "This study has nothing to plot yet.",
        right=f"There are: {', '.join(drawn)}." if drawn else "A plot needs a finished run.",
        next="Ask for one of these, or run the study to its end.",
    )


def shown_table(model: ReportModel, name: str) -> ShownTable:
    """A table by its name; RequestError with all names for an unknown one."""
    tables = {
        "figures": model.figures,
        "ledger": model.ledger,
        "laws": model.laws.table,
        "learning": model.learning,
        "accuracies": model.accuracies,
        "phases": model.phases,
        "effects": model.effects,
        "resources": model.resources,
        "not_run": model.not_run,
        **_numbered("side-by-side", [compared.table for compared in model.side_by_side]),
        **_numbered("published", model.published.tables),
    }
    there = {known: table for known, table in tables.items() if table.rows or known == "figures"}
    if name in there:
        return ShownTable(there[name])
    raise RequestError(
        f"There is no table {name!r} of this study.",
        right=f"There are: {', '.join(there)}.",
        next="Ask for one of these.",
    )


def _numbered(name: str, tables: Sequence[Table]) -> dict[str, Table]:
    """Tables of one kind by name: one alone has it, of several each has its number behind it."""
    if len(tables) == 1:
        return {name: tables[0]}
    return {f"{name}-{number}": table for number, table in enumerate(tables, start=1)}


def results_html(model: ReportModel, *, report: Path | None = None, notes: Sequence[str] = ()) -> str:
    """The results of a study: the verdict, what qualifies it, the table of figures and the main plot."""
    drawn = figures(model)
    pressing = [f"⚠ {finding.summary}" for finding in model.findings if finding.severity in ("error", "warning")]
    below = [*notes, *([f"The whole report: {report}"] if report else [])]
    above = " · ".join((model.title, *model.headline))
    main = drawn.get(main_figure(drawn))
    return _card("results", model, main, above=above, remarks=[*model.remarks, *pressing], below=below)


def text_card(text: str) -> str:
    """Text of a fixed width, its lines as they are."""
    return _card("fixed_width", text)


def _card(macro: str, *values: object, **more: Any) -> str:
    """A card with a white background, because plots and text have the colours of the light theme."""
    return str(fragment("notebook", macro, *values, colours=colours(), figure_svg=figure_svg, **more))
