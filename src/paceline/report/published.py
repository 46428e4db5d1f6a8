"""Published, and here: the printed table with our figure below every cell, what differs, and the open questions.

A cell is the printed figure, and beside it ours, or a letter that stands for the reason why there is none.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from paceline.records.published import (
    Answer,
    Beside,
    OurCell,
    PublishedColumn,
    PublishedRow,
    PublishedTable,
    RowBeside,
    TableBeside,
)
from paceline.records.results import StudyResults
from paceline.report.about import about_html
from paceline.report.facts import Fact
from paceline.report.table_html import boxed, text_html
from paceline.report.tables import NONE, Cell, Table
from paceline.units import count_text, counted, interval_text, number_text

HERE = "here"
_MEANINGS = {
    "load_s": "time until the data set was mapped or read",
    "update_s": "comm-wait, comm-transfer and optimizer of the median run ÷ its steps; what it is in print is not said",
    "epoch_s": "median over timed epochs and repeats; the first epoch is left out",
    "one_epoch_s": "median over repeats",
    "total_s": "from the launch of a run to its end",
    "test_accuracy": "mean over repeats ± standard deviation",
    "test_loss": "mean over repeats ± standard deviation",
    "phase_s": "of the epoch; of the evaluation, what the median run's ledger has for the test",
    "epochs_to_stable": "the first epoch from which validation stays within its noise of its plateau; in print by eye",
    "time_percent": "training time of all epochs, in % of the baseline's in the same repeat",
    "loss_percent": "test loss in % of the baseline's",
    "accuracy_percent": "test accuracy in % of the baseline's",
    "parameters": "as PyTorch counts them; Keras counts running statistics, too",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswer:
    """One open question."""

    name: str
    question: str
    answered: bool
    verdict: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPublished:
    """A published study beside ours; without tables where the study names none."""

    about: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    disagreements: tuple[str, ...] = ()
    """What the printed cells say against themselves."""
    answers: tuple[ShownAnswer, ...] = ()
    definitions: tuple[Fact, ...] = ()


def shown_published(results: StudyResults) -> ShownPublished:
    """What there is to say about the published study that a study names."""
    beside = results.published
    if beside is None:
        return ShownPublished()
    columns = [column for table in beside.tables for column in table.table.columns]
    meant = {_heading(column): _MEANINGS[column.measure] for column in columns if column.measure in _MEANINGS}
    return ShownPublished(
        about=_about(beside, results),
        tables=tuple(_table(table) for table in beside.tables),
        disagreements=tuple(found.text for found in beside.contradictions),
        answers=tuple(_answer(answer) for answer in beside.answers),
        definitions=tuple(Fact(heading, text) for heading, text in meant.items()),
    )


def _about(beside: Beside, results: StudyResults) -> tuple[Fact, ...]:
    published, machine = beside.published, results.machine
    here = ""
    if machine is not None:
        torch = f", PyTorch {machine.versions['torch']}" if "torch" in machine.versions else ""
        gpus = f", {', '.join(dict.fromkeys(machine.gpus))}" if machine.gpus else ""
        here = f"{counted(len(machine.hosts), 'host')}, {machine.cpu}, {counted(machine.cores, 'core')}{gpus}{torch}"
    facts = [
        Fact("Published with", f"{published.hardware}; {published.software}; {published.settings}."),
        Fact("Here with", f"{here}." if here else ""),
        Fact("What differs", _differs(beside, results)),
        Fact("Not given in print, chosen here", "; ".join(published.not_given) + "." if published.not_given else ""),
    ]
    return tuple(fact for fact in facts if fact.text)


def _differs(beside: Beside, results: StudyResults) -> str:
    """Hardware, size and what was overridden, in a sentence or two."""
    smaller = [f"{path} {_setting(results, path)} ({was or 'all'})" for path, was in results.study.full.items()]
    changed = [f"{path} {here or 'open'} ({there or 'open'})" for path, (here, there) in beside.departures.items()]
    said = [
        "Hardware and software are others, so times are to be read within our own rows, not against print.",
        f"At the small size, with the full one's in brackets: {', '.join(smaller)}." if smaller else "",
        f"Changed for this run, with what the study has in brackets: {', '.join(changed)}." if changed else "",
    ]
    return " ".join(filter(None, said))


def _setting(results: StudyResults, path: str) -> str:
    """What a setting is in this study."""
    study = results.study
    if path in study.vary:
        return _listed(study.vary[path])
    section, key = path.split(".", 1)
    settings = getattr(study, section)
    options: Mapping[str, object] = getattr(settings, "options", {})
    value = options.get(key) if key in options else getattr(settings, key, None)
    return _listed(value) if isinstance(value, tuple) else NONE if value is None else str(value)


def _listed(values: Sequence[object]) -> str:
    return ", ".join(str(value) for value in values)


def _table(found: TableBeside) -> Table:
    """One row per printed row; reasons and notes below, each once."""
    table, marks = found.table, _Marks()
    rows = []
    for printed, ours in zip(table.rows, found.rows, strict=True):
        noted = "".join(marks.of(f"{note[0].upper()}{note[1:]}.") for note in ours.notes)
        names = [Cell(name) for name in printed.names]
        names[-1] = Cell(names[-1].figure, noted) if noted else names[-1]
        rows.append((*names, *_cells(table, printed, ours, marks)))
    return Table(
        caption=f"Published, and here: {table.caption[0].lower()}{table.caption[1:]}",
        columns=(*table.keys, *(_heading(column) for column in table.columns)),
        rows=tuple(rows),
        footnotes=(*_around(found), *marks.footnotes()),
        keys=len(table.keys),
        words=tuple(key for index, key in enumerate(table.keys) if _is_words(table, index)),
    )


def _is_words(table: PublishedTable, index: int) -> bool:
    return any(not row.names[index].replace(".", "").isdigit() for row in table.rows)


def _heading(column: PublishedColumn) -> str:
    unit = {"s": " (s)", "percent": " (%)"}.get(column.unit, "")
    return f"{column.heading}{unit}"


class _Marks:
    """Letters that stand for sentences below a table."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def of(self, sentence: str) -> str:
        letters = string.ascii_lowercase
        known = len(self._letters)
        return self._letters.setdefault(sentence, letters[known % 26] * (1 + known // 26))

    def footnotes(self) -> tuple[str, ...]:
        return tuple(f"{letter}: {sentence}" for sentence, letter in self._letters.items())


def _cells(table: PublishedTable, printed: PublishedRow, ours: RowBeside, marks: _Marks) -> list[Cell]:
    by_column = {cell.column: cell for cell in ours.cells}
    cells = []
    for column, cell in zip(table.columns, printed.cells, strict=True):
        own = by_column[column.name]
        missing = f"{NONE if own.point_id else 'not run'} {marks.of(own.reason)}" if own.reason else ""
        shown = missing or own_text(own, column.unit)
        figure = count_text(cell.value) if column.unit == "count" and isinstance(cell.value, int) else cell.text
        cells.append(Cell(figure or NONE, f"{HERE} {shown}"))
    return cells


def own_text(cell: OurCell, unit: str) -> str:
    """Our figure with its interval, range or standard deviation, in the digits that its unit is printed with."""
    value = cell.value
    if isinstance(value, str | bool) or value is None:
        return NONE if value is None else str(value)
    if unit == "count":
        return count_text(int(value))
    if isinstance(value, int):
        value_text = str(value)
    else:
        value_text = f"{value:.4f}" if unit == "fraction" else number_text(value, 4 if unit == "percent" else 3)
    if cell.std is not None:
        return f"{value_text} ± {cell.std:.4f}" if unit == "fraction" else f"{value_text} ± {number_text(cell.std, 2)}"
    if cell.low is None or cell.high is None or cell.low == cell.high:
        return value_text
    if isinstance(value, int) or (value == round(value) and unit == ""):
        return f"{value:.0f} [{cell.low:.0f}, {cell.high:.0f}]"
    return interval_text(value, cell.low, cell.high, 4 if unit == "percent" else 3)


def _around(found: TableBeside) -> list[str]:
    """What brackets and ± mean, where there are any."""
    cells = [cell for row in found.rows for cell in row.cells if cell.value is not None]
    spans = [cell for cell in cells if cell.low is not None and cell.low != cell.high]
    notes = []
    if spans:
        ranged = any(cell.coverage is None for cell in spans)
        few = "[ ] is the range of the repeats: fewer than five give no interval."
        notes.append(few if ranged else "[ ] is an interval for the median over repeats.")
    if any(cell.std is not None for cell in cells):
        notes.append("± is the standard deviation over repeats.")
    return [" ".join(notes)] if notes else []


def _answer(answer: Answer) -> ShownAnswer:
    return ShownAnswer(
        name=answer.question.name,
        question=answer.question.text,
        answered=answer.answered,
        verdict=answer.verdict if answer.answered else f"Not answered yet. {answer.verdict}",
        command=answer.command,
    )


def published_html(shown: ShownPublished) -> str:
    """The tables with what they were made with, and what the printed cells say against themselves."""
    if not shown.tables:
        return ""
    about = "".join(f"<dt>{escape(fact.label)}</dt><dd>{text_html(fact.text)}</dd>" for fact in shown.about)
    tables = "".join(_beside_html(table, shown.definitions) for table in shown.tables)
    return f'{tables}<dl class="facts card">{about}</dl>\n'


def _beside_html(table: Table, definitions: Sequence[Fact]) -> str:
    """A table of two lines a cell: the printed figure, and ours below it."""
    named = {index for index, column in enumerate(table.columns) if column in table.words}
    word = [' class="word"' if index in named else "" for index in range(len(table.columns))]
    head = "".join(f'<th scope="col"{word[i]}>{escape(column)}</th>' for i, column in enumerate(table.columns))
    rows = "".join(f"<tr>{_row_html(row, table.keys, word)}</tr>" for row in table.rows)
    notes = "".join(f'<p class="footnote">{text_html(note)}</p>' for note in table.footnotes)
    return boxed(
        f"{table.caption}. The upper figure is published, the lower one is ours.",
        f'<table class="beside"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>',
        about=about_html(table.caption, table.columns, definitions),
        notes=notes,
    )


def _row_html(row: Sequence[Cell], keys: int, word: Sequence[str]) -> str:
    names = "".join(
        f'<th scope="row"{word[i]}>{text_html(cell.figure)}{_small(cell.beside)}</th>'
        for i, cell in enumerate(row[:keys])
    )
    return names + "".join(f"<td>{_both(cell)}</td>" for cell in row[keys:])


def _both(cell: Cell) -> str:
    ours = cell.beside.removeprefix(f"{HERE} ")
    figure, _, around = ours.partition(" ")
    ours = _small(ours) if figure in (NONE, "not") else f"<b>{text_html(figure)}</b>{_small(around)}"
    return f'<span class="printed">{text_html(cell.figure)}</span>{ours}'


def _small(text: str) -> str:
    return f" <small>{text_html(text)}</small>" if text else ""


def disagreements_html(shown: ShownPublished) -> str:
    """The printed cells that do not agree."""
    items = "".join(f"<p>{text_html(text)}</p>" for text in shown.disagreements)
    return f'<div class="steps card">{items}</div>' if items else ""


def answers_html(shown: ShownPublished) -> str:
    """The open questions of the report, each with its verdict."""
    rows = "".join(
        f"<dt><code>{escape(answer.name)}</code></dt><dd>{text_html(answer.question)}<br>{_verdict_html(answer)}</dd>"
        for answer in shown.answers
    )
    return f'<dl class="facts card">{rows}</dl>' if rows else ""


def _verdict_html(answer: ShownAnswer) -> str:
    first, _, rest = answer.verdict.partition(". ")
    rest = f" {text_html(rest)}" if rest else ""
    ending = "." if rest else ""
    command = f"<br><code>{escape(answer.command)}</code>" if answer.command else ""
    return f"<strong>{text_html(first)}{ending}</strong>{rest}{command}"
