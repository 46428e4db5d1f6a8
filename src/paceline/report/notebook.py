"""Results in a notebook: the verdict, tables and plots as HTML that needs no script, no style sheet and no network.

Plots are static SVG (svg.py), some kilobytes each. Plotly's own output was not taken: with its script inside, every
cell would weigh 4.8 MB; without, a plot is blank wherever the front end lacks the extension, and wherever a notebook is
only read. The interactive plots are in the report, whose path stands below.

Styles are attributes, because front ends drop style sheets of notebooks that they do not trust.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from paceline.errors import RequestError
from paceline.report.canvas import Figure
from paceline.report.figures import figures, main_figure
from paceline.report.model import ReportModel
from paceline.report.svg import colours, figure_svg
from paceline.report.table_html import text_html
from paceline.report.tables import Cell, Table
from paceline.report.text import table_text

_FONT = "font-family:system-ui,sans-serif;font-size:14px;line-height:1.5"


class ShownTable(str):
    """A table as text; in a notebook, as a table."""

    def __new__(cls, table: Table) -> ShownTable:
        shown = super().__new__(cls, table_text(table))
        shown.table = table
        return shown

    table: Table

    def _repr_html_(self) -> str:
        return _card(table_fragment(self.table))


class ShownPlot:
    """A plot of the report; in a notebook, its drawing."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    @property
    def svg(self) -> str:
        """The drawing as the text of an SVG file."""
        return figure_svg(self.figure)

    def save(self, path: str | Path) -> Path:
        """Write the drawing into a file; comes back with its path."""
        place = Path(path).expanduser()
        place.write_text(self.svg, encoding="utf-8")
        return place

    def __repr__(self) -> str:
        return f"<plot {self.figure.name!r}: {self.figure.caption}>"

    def _repr_html_(self) -> str:
        return _card(_plot_fragment(self.figure))


def shown_plot(model: ReportModel, name: str | None = None) -> ShownPlot:
    """A plot by its name, the main one where none is given; RequestError with the names where there is no such plot."""
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
    """A table by its name; RequestError with the names where there is no such table."""
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
    """What a study came to: the verdict, what has to be known about it, the table of figures and the main plot."""
    drawn = figures(model)
    main = drawn.get(main_figure(drawn))
    pressing = [finding.summary for finding in model.findings if finding.severity in ("error", "warning")]
    parts = [
        _muted(" · ".join((model.title, *model.headline))),
        f'<p style="margin:0;font-size:18px;font-weight:600">{text_html(model.verdict)}</p>',
        *(f'<p style="margin:0">{text_html(remark)}</p>' for remark in model.remarks),
        *(f'<p style="margin:0">⚠ {text_html(summary)}</p>' for summary in pressing),
        table_fragment(model.figures),
        _plot_fragment(main) if main else "",
        *(_muted(note) for note in notes),
        _muted(f"The whole report: {report}") if report else "",
    ]
    return _card("".join(parts))


def text_card(text: str) -> str:
    """Text of a fixed width, its lines as they are."""
    style = "margin:0;overflow-x:auto;background:none;font-size:12px;line-height:1.35"
    return _card(f'<pre style="{style}">{escape(text)}</pre>')


def table_fragment(table: Table) -> str:
    """A table with its caption and footnotes, styled by attributes alone."""
    named = {index for index, column in enumerate(table.columns) if column in table.words}
    head = "".join(_cell("th", escape(column), i in named or i == 0) for i, column in enumerate(table.columns))
    rows = "".join(
        f"<tr>{''.join(_cell('td', _figure(cell), i in named or i == 0) for i, cell in enumerate(row))}</tr>"
        for row in table.rows
    )
    notes = "".join(_muted(note) for note in table.footnotes)
    return (
        '<div style="overflow-x:auto;margin:10px 0">'
        '<table style="border-collapse:collapse;background:none;font-size:13px">'
        f'<caption style="text-align:left;color:{colours()["muted"]};font-size:13px;caption-side:top">'
        f"{escape(table.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{notes}"
    )


def _figure(cell: Cell) -> str:
    beside = f' <small style="color:{colours()["muted"]}">{text_html(cell.beside)}</small>' if cell.beside else ""
    return text_html(cell.figure) + beside


def _cell(kind: str, content: str, words: bool) -> str:
    style = f"padding:4px 14px 4px 0;text-align:{'left' if words else 'right'};white-space:nowrap;background:none;"
    style += f"border:0;border-bottom:1px solid {colours()['line']};color:{colours()['ink']}"
    return f'<{kind} style="{style}">{content}</{kind}>'


def _plot_fragment(figure: Figure) -> str:
    return (
        f'<div style="margin:10px 0"><p style="margin:0;font-weight:600">{escape(figure.title)}</p>'
        f"{figure_svg(figure)}{_muted(figure.caption)}</div>"
    )


def _muted(text: str) -> str:
    return f'<p style="margin:0;font-size:13px;color:{colours()["muted"]}">{text_html(text)}</p>'


def _card(content: str) -> str:
    """A white card, whatever the notebook's own colours are: plots and text have those of light paper."""
    ink, edge = colours()["ink"], colours()["line"]
    style = f"{_FONT};color:{ink};background:#ffffff;border:1px solid {edge};border-radius:8px;padding:14px 16px;"
    return f'<div style="{style}max-width:900px">{content}</div>'
