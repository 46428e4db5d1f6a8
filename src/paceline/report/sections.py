"""The sections of a report, sorted by the question that each helps to answer.

A new section is one line in SECTIONS: its anchor, its heading, its question, and the function that makes
its HTML of the model and the plots; where that is empty, the section is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

from paceline.report.canvas import Figure
from paceline.report.facts import Fact
from paceline.report.figure_html import plots_html
from paceline.report.figures import main_figure
from paceline.report.first_screen import command_html
from paceline.report.inside import insides_html
from paceline.report.laws import laws_html
from paceline.report.model import ReportModel
from paceline.report.steps import Step
from paceline.report.table_html import table_html, text_html
from paceline.report.tables import Table
from paceline.report.tree import tree_html
from paceline.report.words import ShownFinding

Drawn = Mapping[str, Figure]
"""Every plot by its name."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a reader wants to know: an anchor, the question, and what is said where a study has no answer."""

    name: str
    heading: str
    nothing: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the answer to a question."""

    name: str
    heading: str
    question: Question
    body: Callable[[ReportModel, Drawn], str]


PUBLISHED = Question("published", "What was published, and what is here?")
SCALES = Question("scaling", "How does it scale?", "No finished run has a figure yet.")
TIME = Question("time", "Where did the time go?", "Not measured: no run left a ledger of its time.")
ACCURACY = Question("cost", "What did it cost in accuracy?", "Not measured: no run has a learning curve or a test.")
WHY = Question("why", "Why is it not faster?", "Nothing stood out: there is no finding, and no trace to look into.")
NEXT = Question("next", "What should I run next?")
MEASURED = Question("measured", "How was it measured?")
QUESTIONS = (PUBLISHED, SCALES, TIME, ACCURACY, WHY, NEXT, MEASURED)


def questions_html(model: ReportModel, drawn: Drawn) -> Iterable[str]:
    """The contents of the page, then every question with its sections."""
    found: dict[str, list[tuple[Section, str]]] = {question.name: [] for question in QUESTIONS}
    for section in SECTIONS:
        if body := section.body(model, drawn):
            found[section.question.name].append((section, body))
    shown = [question for question in QUESTIONS if found[question.name] or question.nothing]
    yield _contents(shown)
    yield from (_question(question, found[question.name]) for question in shown)


def _contents(questions: Iterable[Question]) -> str:
    links = "".join(f'<li><a href="#{question.name}">{question.heading}</a></li>' for question in questions)
    return f'<nav class="contents" aria-label="Contents"><ul>{links}</ul></nav>'


def _question(question: Question, sections: list[tuple[Section, str]]) -> str:
    parts = "".join(
        f'<section id="{section.name}" class="part"><h3>{escape(section.heading)}</h3>\n{body}</section>\n'
        for section, body in sections
    )
    links = "".join(f'<li><a href="#{section.name}">{escape(section.heading)}</a></li>' for section, _ in sections)
    inner = f'<ul class="inner">{links}</ul>' if len(sections) > 1 else ""
    body = parts or f'<p class="told">{escape(question.nothing)}</p>'
    return f'<section id="{question.name}" class="question"><h2>{escape(question.heading)}</h2>{inner}{body}</section>'


def _tables(model: ReportModel, *tables: Table, compact: bool = False) -> str:
    return "".join(table_html(table, compact=compact, definitions=model.definitions) for table in tables)


def _plots(model: ReportModel, drawn: Drawn, *names: str) -> str:
    """Plots that are not on the first screen already."""
    main = main_figure(drawn)
    return plots_html((drawn.get(name) for name in names if name != main), model.definitions)


def _side_by_side(model: ReportModel, drawn: Drawn) -> str:
    told = ((part.table, text_html(part.sentence)) for part in model.side_by_side)
    parts = (f'{_tables(model, table)}<p class="told">{sentence}</p>' for table, sentence in told)
    return "".join(parts) + _plots(model, drawn, "ranking")


def _speed(model: ReportModel, drawn: Drawn) -> str:
    return _plots(model, drawn, "speedup", "epoch", "run", "throughput")


def _effects(model: ReportModel, drawn: Drawn) -> str:
    return _tables(model, model.effects) + _plots(model, drawn, "effects")


def _ledgers(model: ReportModel, drawn: Drawn) -> str:
    return _tables(model, model.ledger, compact=True) + _plots(model, drawn, "all-ledgers")


def _rank_ledgers(model: ReportModel, drawn: Drawn) -> str:
    plots = _plots(model, drawn, *(f"ranks-{index}" for index in range(len(model.rank_ledgers))))
    tables = "".join(
        f'<details class="fold"><summary>The same as a table: {escape(ledger.title)}</summary>'
        f"{_tables(model, ledger.table, compact=True)}</details>"
        for ledger in model.rank_ledgers
    )
    return plots + tables


def _learning(model: ReportModel, drawn: Drawn) -> str:
    plots = _plots(model, drawn, "accuracy", "loss", "test-accuracy")
    return plots + _tables(model, model.learning, model.accuracies, model.phases)


def _findings(findings: Iterable[ShownFinding]) -> str:
    return f'<div class="findings">{"".join(_finding(finding) for finding in findings)}</div>' if findings else ""


def _finding(finding: ShownFinding) -> str:
    about = f" · {escape(finding.about)}" if finding.about else ""
    more = "".join(f"<p>{text_html(text)}</p>" for text in (finding.cause, finding.remedy) if text)
    severity = finding.severity if finding.severity in ("error", "warning", "info") else "info"
    return (
        f'<div class="finding card {severity}"><p class="severity">{escape(finding.severity)}{about}</p>'
        f'<p class="summary">{text_html(finding.summary)}</p>{more}</div>'
    )


def _steps(steps: Iterable[Step]) -> str:
    shown = "".join(f"<p>{escape(step.text)}</p>{command_html(step)}" for step in steps)
    return f'<div class="steps card">{shown}</div>' if shown else ""


def _facts(facts: tuple[Fact, ...], *, names: bool = False) -> str:
    if not facts:
        return ""
    rows = "".join(f"<dt>{escape(fact.label)}</dt><dd>{text_html(fact.text)}</dd>" for fact in facts)
    return f'<dl class="facts card{" names" if names else ""}">{rows}</dl>'


SECTIONS: tuple[Section, ...] = (
    Section("beside", "Cell by cell", PUBLISHED, lambda model, drawn: model.published.html_of("beside")),
    Section("disagree", "Cells that disagree", PUBLISHED, lambda model, drawn: model.published.html_of("disagree")),
    Section("asked", "Open questions", PUBLISHED, lambda model, drawn: model.published.html_of("asked")),
    Section("effects", "In % of the baseline", SCALES, lambda model, drawn: _effects(model, drawn)),
    Section("results", "Results", SCALES, lambda model, drawn: _tables(model, model.figures)),
    Section("not-run", "Not run", SCALES, lambda model, drawn: _tables(model, model.not_run)),
    Section("laws", "Scaling laws", SCALES, lambda model, drawn: laws_html(model.laws)),
    Section("speed", "Speed", SCALES, _speed),
    Section("compare", "Side by side", SCALES, _side_by_side),
    Section("ledgers", "By kind", TIME, _ledgers),
    Section("resources", "Resources", TIME, lambda model, drawn: _tables(model, model.resources)),
    Section("extras", "Before and beside the training", TIME, lambda model, drawn: _tables(model, model.extras)),
    Section("inside", "Inside a run", TIME, lambda model, drawn: insides_html(model.inside, model.definitions)),
    Section("ranks", "Each rank's time", TIME, _rank_ledgers),
    Section("learning", "Learning", ACCURACY, _learning),
    Section("findings", "Findings", WHY, lambda model, drawn: _findings(model.findings)),
    Section("efficiency", "Efficiency tree", WHY, lambda model, drawn: tree_html(model.tree, model.definitions)),
    Section("step", "The next step", NEXT, lambda model, drawn: _steps((model.next_step,))),
    Section("machine", "Machine", MEASURED, lambda model, drawn: _facts(model.machine)),
    Section("settings", "Settings", MEASURED, lambda model, drawn: _facts(model.settings, names=True)),
    Section("protocol", "Protocol", MEASURED, lambda model, drawn: _facts(model.protocol)),
    Section("repeat", "How to repeat it", MEASURED, lambda model, drawn: _steps(model.repeat)),
    Section("definitions", "Definitions", MEASURED, lambda model, drawn: _facts(model.definitions)),
)
