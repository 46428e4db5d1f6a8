"""ReportModel as text for a terminal: the same sentences and the same figures as the page."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from paceline.reporting.added_section import AddedSection
from paceline.reporting.cells import Cell
from paceline.reporting.model import ReportModel
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.wording.choice import MOST_DRAWN
from paceline.reporting.wording.verdict_words import ShownFinding

_GAP = 2
_SEVERITY_STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}


def render(model: ReportModel, *, width: int = 100, color: bool = False) -> str:
    """The report as text of at most `width` columns; with colours only where asked for."""
    console = _console(width, color)
    console.print(Text(model.title, style="bold"))
    if model.question:
        console.print(Text(model.question, style="dim"))
    _print_section(console, model.effects)
    _print_section(console, model.figures)
    _print_section(console, model.not_run)
    _print_section(console, model.laws.table)
    if model.laws.sentences and not model.laws.table.rows:
        console.print()
    for series in model.laws.sentences:
        console.print(Text(series.text, style="" if model.laws.table.rows else "dim"))
    for compared in model.side_by_side:
        _print_section(console, compared.table)
        if compared.sentence and compared.sentence not in (model.verdict, *model.remarks):
            console.print(Text(compared.sentence))
    for table in (model.learning, model.accuracies, model.phases, model.extras, model.brief_ledger):
        _print_section(console, table)
    if len(model.resources.rows) <= MOST_DRAWN:  # the page has it, however long
        _print_section(console, model.resources)
    _print_published(console, model.published)
    console.print()
    console.print(Text(model.verdict, style="bold"))
    for remark in model.remarks:
        console.print(Text(remark))
    for finding in model.findings:
        console.print()
        _print_finding(console, finding)
    return _recorded(console)


def findings_text(findings: Iterable[ShownFinding], *, width: int = 100, color: bool = False) -> str:
    """Findings alone, one below the other."""
    console = _console(width, color)
    for finding in findings:
        _print_finding(console, finding)
    return _recorded(console)


def table_text(table: Table, *, width: int = 100, color: bool = False) -> str:
    """One table as text, with its footnotes."""
    console = _console(width, color)
    _print_table(console, table)
    return _recorded(console)


def table_blocks(tables: Iterable[Table], width: int, color: bool) -> list[str]:
    """Tables that have rows, with their captions."""
    return [
        f"{table.caption}\n{table_text(table, width=width, color=color).rstrip()}" for table in tables if table.rows
    ]


def _console(width: int, color: bool) -> Console:
    # No detection by rich: a model is rendered to the same text everywhere.
    return Console(
        file=io.StringIO(),
        width=width,
        height=25,  # without it a dumb terminal is taken to be 80 columns wide
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        force_jupyter=False,
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
    )


def _recorded(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def _print_section(console: Console, table: Table) -> None:
    """A table with its caption; nothing of one whose columns all have nothing to say."""
    if table.rows and set(table.columns[table.keys :]) - set(table.blank):
        console.print()
        console.print(Text(table.caption, style="dim"))
        _print_table(console, table)


def _print_published(console: Console, published: AddedSection) -> None:
    """The comparison with a published study, its contradictions, and the open questions."""
    for table in published.tables:
        _print_section(console, table)
    for text in (*(f"{fact.label}: {fact.text}" for fact in published.about), *published.disagreements):
        console.print(Text(text, style="dim"))
    for answer in published.answers:
        console.print(Text(f"{answer.name}: ", style="bold").append(answer.verdict, style="not bold"))


def _print_table(console: Console, table: Table) -> None:
    """In one line per row where that fits, else in two, else in several tables one below the other."""
    table = _narrowed(table, console.width)
    shown = [index for index, column in enumerate(table.columns) if column not in table.blank]
    beside = " " if _width(table, shown, " ") <= console.width else "\n"
    for columns in _fitting(table, shown, beside, console.width):
        grid = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
        for index in columns:
            justify = "left" if table.columns[index] in table.words else "right"
            grid.add_column(Text(_heading(table, index, beside)), justify=justify, no_wrap=True)
        for row in table.rows:
            grid.add_row(*(_cell_text(row[index], beside) for index in columns))
        console.print(grid)
    for footnote in table.footnotes:
        console.print(Text(footnote, style="dim"))


def _narrowed(table: Table, width: int) -> Table:
    """The table with wrapped sentences, and its key columns in one if no figure fits beside them."""
    table = _with_broken_words(table, width)
    keys, rest = range(table.keys), range(table.keys, len(table.columns))
    if all(_width(table, [*keys, index], "\n") <= width for index in rest):
        return table
    room = max(1, width - _GAP - max(_column_width(table, index, "\n") for index in rest))
    heading = _folded(table.columns[: table.keys], room)
    return replace(
        table,
        columns=(heading, *table.columns[table.keys :]),
        rows=tuple(
            (Cell(_folded([cell.figure for cell in row[: table.keys]], room)), *row[table.keys :]) for row in table.rows
        ),
        keys=1,
        words=(*table.words, heading),
    )


def _with_broken_words(table: Table, width: int) -> Table:
    """The table with sentences wrapped to the room beside the key columns."""
    keys = [_column_width(table, index, "\n") for index in range(table.keys)]
    side_by_side = sum(keys) + _GAP * (len(keys) - 1)
    room = max(1, width - _GAP - (side_by_side if side_by_side <= width // 2 else max(keys)))

    def broken(index: int, cell: Cell) -> Cell:
        if index < table.keys or table.columns[index] not in table.words or len(cell.figure) <= room:
            return cell
        return Cell(_folded([cell.figure], room), cell.beside)

    rows = tuple(tuple(broken(index, cell) for index, cell in enumerate(row)) for row in table.rows)
    return replace(table, rows=rows)


def _folded(names: Sequence[str], room: int) -> str:
    """Names one below the other, broken between words where they are longer than the room."""
    return "\n".join(line for name in names for line in textwrap.wrap(name, room, break_long_words=False) or [""])


def _fitting(table: Table, shown: Sequence[int], beside: str, width: int) -> list[list[int]]:
    """The columns of each part of a table that fits into `width`; every part begins with what names its rows."""
    keys, rest = list(shown[: table.keys]), shown[table.keys :]
    parts = [keys]
    for index in rest:
        if len(parts[-1]) > len(keys) and _width(table, [*parts[-1], index], beside) > width:
            parts.append(keys)
        parts[-1] = [*parts[-1], index]
    return parts


def _width(table: Table, columns: Sequence[int], beside: str) -> int:
    """Columns of the terminal that a table takes."""
    widths = (_column_width(table, index, beside) for index in columns)
    return sum(widths) + _GAP * (len(columns) - 1)


def _column_width(table: Table, index: int, beside: str) -> int:
    lines = _heading(table, index, beside).split("\n")
    return max(_cells_width(table, index, beside), *(len(line) for line in lines))


def _cells_width(table: Table, index: int, beside: str) -> int:
    return max(len(line) for row in table.rows for line in _cell_text(row[index], beside).plain.split("\n"))


def _heading(table: Table, index: int, beside: str) -> str:
    """A column's heading, broken where that saves room."""
    heading = table.columns[index]
    if beside == " " or len(heading) <= _cells_width(table, index, beside):
        return heading
    return heading.replace(" ", "\n", 1) if " " in heading else heading.replace("-", "-\n")


def _cell_text(cell: Cell, beside: str) -> Text:
    text = Text(cell.figure)
    return text.append(beside + cell.beside, style="dim") if cell.beside else text


def _print_finding(console: Console, finding: ShownFinding) -> None:
    heading = Text(f"{finding.severity}: ", style=_SEVERITY_STYLES.get(finding.severity, "bold"))
    about = f" ({finding.about})" if finding.about else ""
    console.print(heading.append(finding.summary + about, style="not bold"))
    for text in (finding.cause, finding.remedy):
        if text:
            console.print(Padding(Text(text), (0, 0, 0, 2)))
