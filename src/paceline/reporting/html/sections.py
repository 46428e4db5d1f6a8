"""The sections of a report, sorted by the question that each helps to answer.

A new section is one line in SECTIONS (its anchor, its heading, its question) and the macro of its name in
templates/sections.html.j2. A section with an empty body is omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paceline.reporting.figures.canvas import Figure
from paceline.reporting.figures.report_figures import main_figure
from paceline.reporting.html.markup import fragment
from paceline.reporting.model import ReportModel

if TYPE_CHECKING:
    from markupsafe import Markup

Drawn = Mapping[str, Figure]
"""Every plot by its name."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the reader: anchor, heading, and the sentence shown if a study has no answer."""

    name: str
    heading: str
    nothing: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the answer to a question."""

    name: str
    heading: str
    question: Question
    body: Callable[[ReportModel, Drawn], str] | None = None
    """Makes its HTML; where None, the macro of its name does."""


PUBLISHED = Question("published", "What was published, and what is here?")
SCALES = Question("scaling", "How does it scale?", "No finished run has a figure yet.")
TIME = Question("time", "Where did the time go?", "Not measured: no run has a ledger of its time.")
ACCURACY = Question("cost", "What did it cost in accuracy?", "Not measured: no run has a learning curve or a test.")
WHY = Question("why", "Why is it not faster?", "Nothing stood out: there is no finding, and no trace to look into.")
NEXT = Question("next", "What should I run next?")
MEASURED = Question("measured", "How was it measured?")
QUESTIONS = (PUBLISHED, SCALES, TIME, ACCURACY, WHY, NEXT, MEASURED)


def questions_html(model: ReportModel, drawn: Drawn) -> Markup:
    """The contents of the page, then every question with its sections."""

    def plots(*names: str, prefix: str | None = None) -> Markup:
        """Plots that are not on the first screen already, by their names or by what these begin with."""
        wanted = names if prefix is None else [name for name in drawn if name.startswith(prefix)]
        shown = [drawn.get(name) for name in wanted if name != main_figure(drawn)]
        return fragment("parts", "plots", shown, model.definitions)

    found: dict[str, list[tuple[Section, str]]] = {question.name: [] for question in QUESTIONS}
    for section in SECTIONS:
        macro = section.name.replace("-", "_")
        body = section.body(model, drawn) if section.body else fragment("sections", macro, model, plots)
        if body:
            found[section.question.name].append((section, body))
    answers = [(question, found[question.name]) for question in QUESTIONS if found[question.name] or question.nothing]
    return fragment("report", "questions", answers)


SECTIONS: tuple[Section, ...] = (
    Section("beside", "Cell by cell", PUBLISHED, lambda model, drawn: model.published.html_of("beside")),
    Section("disagree", "Cells that disagree", PUBLISHED, lambda model, drawn: model.published.html_of("disagree")),
    Section("asked", "Open questions", PUBLISHED, lambda model, drawn: model.published.html_of("asked")),
    Section("effects", "In % of the baseline", SCALES),
    Section("results", "Results", SCALES),
    Section("not-run", "Not run", SCALES),
    Section("laws", "Scaling laws", SCALES),
    Section("speed", "Speed", SCALES),
    Section("compare", "Side by side", SCALES),
    Section("ledgers", "By kind", TIME),
    Section("resources", "Resources", TIME),
    Section("extras", "Before and beside the training", TIME),
    Section("inside", "Inside a run", TIME),
    Section("ranks", "Each rank's time", TIME),
    Section("learning", "Learning", ACCURACY),
    Section("findings", "Findings", WHY),
    Section("efficiency", "Efficiency tree", WHY),
    Section("step", "The next step", NEXT),
    Section("machine", "Machine", MEASURED),
    Section("settings", "Settings", MEASURED),
    Section("protocol", "Protocol", MEASURED),
    Section("repeat", "How to repeat it", MEASURED),
    Section("definitions", "Definitions", MEASURED),
)
