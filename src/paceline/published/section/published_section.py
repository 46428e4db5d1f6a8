"""The report's section on a published study: its tables with our figures, what differs, and the open questions.

A cell has the published figure and ours, or a letter of the footnote that says why there is none.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial

from paceline.published.records import (
    TIME,
    Answer,
    ComparedRow,
    ComparedTable,
    MeasuredCell,
    PublishedColumn,
    PublishedComparison,
    PublishedRow,
    PublishedStudy,
    PublishedTable,
)
from paceline.published.section.column_meanings import heading, table_meanings
from paceline.published.section.published_rows import published_object
from paceline.published.section.row_notes import Notes, further_epochs, notes_of
from paceline.records.results import StudyResults
from paceline.reporting.added_section import AddedSection, ShownAnswer
from paceline.reporting.cells import NONE, Cell, Form
from paceline.reporting.html.markup import fragment
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.wording.facts import Fact
from paceline.reporting.wording.next_commands import Step
from paceline.reporting.wording.phrases import listed
from paceline.units import count_text, counted, number_text


def section_html(section: AddedSection, macro: str) -> str:
    """One part of the section as HTML, by a macro of templates/published.html.j2."""
    return fragment("published", macro, section, package="paceline.published")


_HTML = {
    "beside": partial(section_html, macro="tables"),
    "disagree": partial(section_html, macro="disagreements"),
    "asked": partial(section_html, macro="answers"),
}


@dataclass(frozen=True, slots=True)
class PairedCell(Cell):
    """A published figure, with ours as the note beside it; the parts of ours for tables that set them apart."""

    _: KW_ONLY
    own_figure: str = ""
    """Empty if there is no figure: `own_around` has the reason."""
    own_around: str = ""
    """Interval, range or standard deviation."""
    own_letters: str = ""
    """Of the footnotes."""


def published_section(beside: PublishedComparison, results: StudyResults) -> AddedSection:
    """The section of a report that compares its study with a published one."""
    return AddedSection(
        about=_about(beside, results),
        tables=tuple(_table(table, beside, results) for table in beside.tables),
        disagreements=tuple(found.text for found in beside.contradictions),
        answers=tuple(_answer(answer) for answer in beside.answers),
        definitions=tuple(table_meanings(table.table) for table in beside.tables),
        opening=_opening(beside, results.study.name),
        figures=tuple(answer.figure for answer in beside.answers if answer.figure),
        next_step=_next_part(beside.published, results.study.name),
        html=_HTML,
        as_json=published_object(beside),
    )


def _opening(beside: PublishedComparison, study: str) -> tuple[str | None, ...]:
    """Sentences that answer the study's question, None in place of the one about times; empty without measurements."""
    leads = {answer.question.name: answer.lead for answer in beside.answers}
    named = beside.published.leads.get(study, ())
    if not any(leads.get(name) for name in named):
        return ()
    return tuple(sentence for name in named for sentence in ((None,) if name == TIME else leads.get(name, ())))


def _next_part(published: PublishedStudy, study: str) -> Step | None:
    """The study with the next rows of the table, or the answer to the next question; None after the last."""
    parts = {published.name: ""}
    for row in (row for table in published.tables for row in table.rows if row.study):
        parts.setdefault(row.study, f"The published table continues in another study, with its row {row.names[0]}.")
    for question in published.questions:
        for name in question.studies[:1]:
            parts.setdefault(name, f"Another study answers an open question of the report: {question.text}")
    names = list(parts)
    after = 1 + (names.index(study) if study in names else 0)
    return Step(text=parts[names[after]], command=f"paceline study {names[after]}") if after < len(names) else None


def _about(beside: PublishedComparison, results: StudyResults) -> tuple[Fact, ...]:
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
        _not_given(published, results.study.name),
    ]
    return tuple(fact for fact in facts if fact.text)


def _not_given(published: PublishedStudy, study: str) -> Fact:
    """Settings that are not published; with what was chosen, if the study repeats published rows."""
    chosen = [f"{item}: {choice}" for item, choice in published.chosen.get(study, {}).items()]
    label = "Not published, chosen here" if chosen else "Not published"
    return Fact(label, f"{'; '.join(chosen or published.not_given)}.")


def _differs(beside: PublishedComparison, results: StudyResults) -> str:
    """Hardware, settings of the study, size and what was overridden, a sentence each."""
    standing = beside.published.differs.get(results.study.name, ())
    smaller = [f"{path} {_setting(results, path)} ({was or 'all'})" for path, was in results.study.full.items()]
    changed = [f"{path} {here or 'open'} ({there or 'open'})" for path, (here, there) in beside.overridden.items()]
    sentences = [
        "Hardware and software are others: compare our times with each other, not with the published ones.",
        f"Unlike the publication, the study has {'; '.join(standing)}." if standing else "",
        f"At the small size, with the full one's in brackets: {', '.join(smaller)}." if smaller else "",
        f"Changed for this run, with what the study has in brackets: {', '.join(changed)}." if changed else "",
    ]
    return " ".join(filter(None, sentences))


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


def _table(found: ComparedTable, beside: PublishedComparison, results: StudyResults) -> Table:
    """One row per published row; reasons and notes in footnotes, each once."""
    table, marks = found.table, _Marks()
    rows = []
    for published_row, ours in zip(table.rows, found.rows, strict=True):
        notes = notes_of(table, published_row, ours, beside, results)
        *first, last = published_row.names
        names = (*map(Cell, first), Cell(last, marks.all_of(notes.row)))
        rows.append((*names, *_cells(table, published_row, ours, notes, results, marks)))
    return Table(
        caption=f"Published, and here: {table.caption[0].lower()}{table.caption[1:]}",
        columns=(*table.keys, *(heading(column) for column in table.columns)),
        rows=tuple(rows),
        footnotes=(*_bracket_notes(found), *marks.footnotes()),
        keys=len(table.keys),
        words=tuple(key for index, key in enumerate(table.keys) if _is_words(table, index)),
    )


def _is_words(table: PublishedTable, index: int) -> bool:
    return any(not row.names[index].replace(".", "").isdigit() for row in table.rows)


class _Marks:
    """Letters that stand for sentences below a table."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def of(self, sentence: str) -> str:
        letters = string.ascii_lowercase
        known = len(self._letters)
        return self._letters.setdefault(sentence, letters[known % 26] * (1 + known // 26))

    def all_of(self, sentences: Sequence[str]) -> str:
        return "".join(self.of(sentence) for sentence in sentences)

    def footnotes(self) -> tuple[str, ...]:
        return tuple(f"{letter}: {sentence}" for sentence, letter in self._letters.items())


def _cells(
    table: PublishedTable,
    published_row: PublishedRow,
    ours: ComparedRow,
    notes: Notes,
    results: StudyResults,
    marks: _Marks,
) -> list[Cell]:
    by_column = {cell.column: cell for cell in ours.cells}
    cells = []
    for column, cell in zip(table.columns, published_row.cells, strict=True):
        own = by_column[column.name]
        if own.reason:
            parts = "", f"{NONE if own.point_id else 'not run'} {marks.of(own.reason)}", ""
        else:
            figure, around = own_texts(own, column.unit)
            more = further_epochs(column, own, results)
            letters = marks.all_of(notes.cells.get(column.name, ()))
            parts = f"{figure} + {more}" if more else figure, around, letters
        is_count = column.unit == "count" and isinstance(cell.value, int)
        cells.append(
            PairedCell(
                cell.value if is_count else cell.text or None,
                " ".join(filter(None, ("here", *parts))),
                form=Form(),
                own_figure=parts[0],
                own_around=parts[1],
                own_letters=parts[2],
            )
        )
    return cells


def own_texts(cell: MeasuredCell, unit: str) -> tuple[str, str]:
    """Our figure in the digits of its unit, and its interval, range or standard deviation; empty if it has none."""
    value, digits = cell.value, 4 if unit == "percent" else 3
    if isinstance(value, str | bool) or value is None:
        return NONE if value is None else str(value), ""
    if unit == "count":
        return count_text(int(value)), ""
    if isinstance(value, int):
        text = str(value)
    else:
        text = f"{value:.4f}" if unit == "fraction" else number_text(value, digits)
    if cell.std is not None:
        return text, f"± {cell.std:.4f}" if unit == "fraction" else f"± {number_text(cell.std, 2)}"
    if cell.low is None or cell.low == cell.high:
        return text, ""
    if cell.high is None:  # not reached within the epochs that were trained
        return text, f"[{cell.low:g}, {NONE}]"
    if isinstance(value, int) or (value == round(value) and unit == ""):
        return f"{value:.0f}", f"[{cell.low:.0f}, {cell.high:.0f}]"
    form = Form(digits=digits)
    return form.number(value), f"[{form.number(cell.low, like=value)}, {form.number(cell.high, like=value)}]"


def _bracket_notes(found: ComparedTable) -> list[str]:
    """Meaning of brackets and ±, by column if it is not the same for all."""
    cells = [cell for row in found.rows for cell in row.cells if cell.value is not None]
    meant: dict[str, list[str]] = {}
    for column in found.table.columns:
        spans = [c for c in cells if c.column == column.name and c.low is not None and c.low != c.high]
        if spans:
            meant.setdefault(_bracket(column, spans), []).append(column.heading)
    notes = [f"[ ]{f' beside {listed(at)}' if len(meant) > 1 else ''} is {what}." for what, at in meant.items()]
    if any(cell.std is not None for cell in cells):
        notes.append("± is the standard deviation over repeats.")
    return [" ".join(notes)] if notes else []


def _bracket(column: PublishedColumn, spans: Sequence[MeasuredCell]) -> str:
    """What the brackets of a column are."""
    if column.measure == "epochs_to_stable":
        return "an interval for the first stable epoch that holds nine times in ten"
    ratio, ranged = column.measure.endswith("_percent"), any(cell.coverage is None for cell in spans)
    if ranged:
        return f"the range of the {'ratios within ' if ratio else ''}repeats: fewer than five give no interval"
    return f"an interval {'of the ratio within' if ratio else 'for the median over'} repeats"


def _answer(answer: Answer) -> ShownAnswer:
    # What another study answers is only not answered here: which one, its verdict says.
    unanswered = () if answer.answered or answer.command else ("Not answered yet.",)
    return ShownAnswer(
        name=answer.question.name,
        question=answer.question.text,
        answered=answer.answered,
        sentences=(*unanswered, *answer.sentences),
        command=answer.command,
    )
