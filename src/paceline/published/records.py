"""Published studies and ours: published cells, our cells, contradictions, open questions.

    PublishedStudy ── PublishedTable ── PublishedRow ── PublishedCell     facts, from the files of the package
    Beside         ── TableBeside    ── RowBeside    ── OurCell           the same cells, as far as they were run here
                   ├─ Contradiction                                       published cells that disagree
                   └─ Answer                                              open questions

A cell of ours has a figure or a reason why there is none, never neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Scalar = str | int | float | bool
TIME = "time"
"""In place of a question in `PublishedStudy.leads`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedColumn:
    """A column of figures."""

    name: str
    """As in the file."""
    heading: str
    unit: str
    """s, fraction, percent, count, or empty for what is no quantity."""
    measure: str
    """What of our results belongs here: a name of published/matching/measures.py."""
    settings: dict[str, Scalar] = field(default_factory=dict)
    """What a point must have for this column, besides what its row asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCell:
    """One published figure."""

    column: str
    value: float | int | str | None
    """None where the table leaves it open."""
    text: str
    """As published: the digits show the precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """One line of a table."""

    names: tuple[str, ...]
    """Values of the table's key columns."""
    settings: dict[str, tuple[Scalar, ...]]
    """Path of a setting -> the values of ours that stand for this row."""
    cells: tuple[PublishedCell, ...]
    hardware: str = ""
    """Kind of GPU or machine that it ran on; empty where that is not a part of the row."""
    stand_in: bool = False
    """Whether what is here may stand in for that, in the first row that asks for the same settings."""
    epoch: int | None = None
    """Of a row about one epoch, from 1 on; 0 for the test after the last."""
    baseline: int | None = None
    """Number of the row that is 100 %."""
    study: str = ""
    """The shipped study that has this row, where those of one report are divided; empty where they are not."""

    def value(self, column: str) -> float | int | str | None:
        """What a column has in this row; None where it has nothing, or where there is no such column."""
        return next((cell.value for cell in self.cells if cell.column == column), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One table."""

    name: str
    caption: str
    keys: tuple[str, ...]
    """Headings of what says which row it is."""
    columns: tuple[PublishedColumn, ...]
    rows: tuple[PublishedRow, ...]
    constants: dict[str, float | int] = field(default_factory=dict)
    """Constants of all rows that are not in the table: epochs, train_samples, batch_per_rank."""

    def column(self, measure: str) -> PublishedColumn | None:
        """The column of a measure; None where the table has none."""
        return next((column for column in self.columns if column.measure == measure), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An open question of a publication."""

    name: str
    text: str
    studies: tuple[str, ...]
    """Shipped studies that answer it; none where that has to wait."""
    how: str
    """How they answer it, in a sentence."""
    missing: str = ""
    """What is missing for a study that could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedStudy:
    """What one report measured, and with what."""

    name: str
    title: str
    hardware: str
    software: str
    settings: str
    """Published settings of the training."""
    not_given: tuple[str, ...]
    """Settings that are not published and were chosen here."""
    chosen: dict[str, dict[str, str]]
    """Shipped study that repeats rows -> setting that is not published -> the choice."""
    differs: dict[str, tuple[str, ...]]
    """Shipped study -> its differences from the publication at every size."""
    tables: tuple[PublishedTable, ...]
    questions: tuple[Question, ...]
    stand_ins: dict[str, str] = field(default_factory=dict)
    """Data set of ours that replaces the published one -> a note on accuracies."""
    leads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Shipped study -> the questions whose answers, in this order, answer its own; TIME is what its times say."""
    asked_alone: tuple[str, ...] = ()
    """Shipped studies that answer questions and repeat no row: the tables do not belong beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCell:
    """Our figure for a published cell, or the reason why there is none."""

    column: str
    value: float | int | str | None = None
    low: float | None = None
    high: float | None = None
    """An interval, or the range where `coverage` is None."""
    coverage: float | None = None
    std: float | None = None
    """In place of an interval: the standard deviation over repeats."""
    n: int = 0
    """Repeats behind it."""
    point_id: str = ""
    """The point that stands for the row; empty where none does."""
    reason: str = ""
    """Empty where there is a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """Our cells for one published row."""

    cells: tuple[MeasuredCell, ...]
    notes: tuple[str, ...] = ()
    """Replacements, and limits of the figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """Our cells for one published table, row by row."""

    table: PublishedTable
    rows: tuple[ComparedRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Cells of a published table that cannot all be right, or not by what the table says."""

    name: str
    table: str
    rows: tuple[int, ...]
    text: str
    """With the figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to an open question."""

    question: Question
    answered: bool
    sentences: tuple[str, ...]
    """The answer, then what qualifies it; where there is no answer yet, what is missing."""
    figure: str = ""
    """The one figure that it rests on, as text; empty where there is none."""
    command: str = ""
    """What answers it, where this study does not."""
    lead: tuple[str, ...] = ()
    """Sentences that a report opens with where the question is its own; empty where nothing was measured for it."""

    @property
    def opening(self) -> str:
        """All sentences of the lead."""
        return " ".join(self.lead)

    @property
    def verdict(self) -> str:
        """All sentences of the answer."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedComparison:
    """A published study and ours, cell by cell."""

    published: PublishedStudy
    tables: tuple[ComparedTable, ...]
    contradictions: tuple[Contradiction, ...]
    answers: tuple[Answer, ...]
    overridden: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Path of a setting that is not as the shipped study has it -> what it is here, and there."""
