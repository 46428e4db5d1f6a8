"""Paper as Markdown: a short report that renders where people write, with tables as GitHub and Pandoc have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from paceline.reporting.paper.content import Paper
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.wording.characters import printable
from paceline.reporting.wording.facts import Fact
from paceline.reporting.wording.next_commands import Step
from paceline.reporting.wording.verdict_words import ShownFinding

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MEANT = re.compile(r"[\\`*_|~$]|\](?=[(\[:])")
# What makes a heading, a list or a rule at the beginning of a line.
_FIRST = re.compile(r"^[#+=-]")
_NUMBERED = re.compile(r"^(\d+)(?=[.)](?:\s|$))")


def markdown(paper: Paper, figures: Mapping[str, str]) -> str:
    """The report as Markdown; `figures` has the path of each plot that was drawn, by its name."""
    return "\n\n".join(_parts(paper, figures)) + "\n"


def _parts(paper: Paper, figures: Mapping[str, str]) -> Iterator[str]:
    report = paper.report
    yield f"# {escaped(report.title)}"
    yield " · ".join(map(escaped, report.headline))
    if report.question:
        yield f"*Question:* {escaped(report.question)}"
    yield f"**{escaped(report.verdict)}**"
    if report.remarks:
        yield escaped(" ".join(report.remarks))
    shown = [plot for plot in paper.plots if plot.name in figures]
    for plot in shown:
        yield f"![{escaped(plot.title)}]({figures[plot.name]})"
        yield f"*Figure.* {escaped(plot.lead)}"
    yield "## Scaling"
    yield table_text(paper.table)
    yield f"*Table.* {escaped(paper.table_lead)}"
    yield escaped(paper.conditions)
    if report.findings:
        yield "## Findings"
        yield "\n".join(map(_finding, report.findings))
    for heading, sentences in paper.sentences:
        yield f"## {heading}"
        yield "\n".join(f"- {escaped(sentence)}" for sentence in sentences)
    for _, table in paper.others:
        yield f"## {escaped(table.caption)}"
        yield table_text(table)
    yield "## Machine"
    yield _facts(report.machine) or "Not recorded."
    yield "## Protocol"
    yield _facts(report.protocol)
    yield "## What comes next"
    yield _step(report.next_step)
    yield "## How to repeat it"
    yield "\n\n".join(map(_step, report.repeat))


def table_text(table: Table) -> str:
    """A table with a rule below its headings, and its footnotes."""
    heads = [_cell(column) for column in table.columns]
    rules = [":--" if column in table.words else "--:" for column in table.columns]
    rows = [[_cell(cell.text) for cell in row] for row in table.rows]
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, rules, *rows)]
    return "\n".join(lines) + "".join(f"\n\n{escaped(note)}" for note in table.footnotes)


def escaped(text: str) -> str:
    """Text that means itself: no markup of its own, no HTML, one line."""
    text = " ".join(printable(text).split())
    text = "".join(_HTML.get(character, character) for character in text)
    return _FIRST.sub(r"\\\g<0>", _NUMBERED.sub(r"\1\\", _MEANT.sub(r"\\\g<0>", text)))


def _cell(text: str) -> str:
    return escaped(text) or " "


def _finding(finding: ShownFinding) -> str:
    about = f" ({finding.about})" if finding.about else ""
    more = " ".join(filter(None, (finding.cause, finding.remedy)))
    return f"- **{escaped(finding.severity)}:** {escaped(f'{finding.summary}{about}')} {escaped(more)}".rstrip()


def _facts(facts: Iterable[Fact]) -> str:
    return "\n".join(f"- **{escaped(fact.label)}:** {escaped(fact.text)}" for fact in facts)


def _step(step: Step) -> str:
    """A sentence and its command; the fence is longer than any run of backticks in it."""
    command = " ".join(printable(step.command).split("\n"))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", command)), default=0))
    return f"{escaped(step.text)}\n\n{fence}sh\n{command}\n{fence}"
