"""The first screen of a report: the question, the answer with its figure, the main plot, what to run next."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from paceline.report.canvas import Figure
from paceline.report.figure_html import figure_html
from paceline.report.figures import main_figure
from paceline.report.model import ReportModel
from paceline.report.steps import Step
from paceline.report.table_html import text_html
from paceline.report.words import ShownFinding

_LONG = 130
"""Characters of an answer that needs smaller type to leave room for the plot."""


def first_screen(model: ReportModel, drawn: Mapping[str, Figure]) -> str:
    """All of it; where the time went stands beside the main plot."""
    main, ledger = drawn.get(main_figure(drawn)), drawn.get("ledger")
    shown = [(figure, kind) for figure, kind in ((main, "main"), (ledger, "beside")) if figure is not None]
    plots = "".join(figure_html(figure, model.definitions, kind=kind, level=2) for figure, kind in shown)
    alone = " alone" if len(shown) == 1 else ""
    remarks = f'<p class="remarks">{text_html(" ".join(model.remarks))}</p>' if model.remarks else ""
    words = f"{_header(model)}{_notice(model.findings)}"
    return f'<div class="first{alone}">{words}{plots}{_next(model.next_step)}{remarks}</div>'


def _header(model: ReportModel) -> str:
    facts = "".join(f'<li><span title="{escape(text)}">{escape(text)}</span></li>' for text in model.headline)
    # A study without a question has a title all the same.
    above = f"<li>{escape(model.title)}</li>" if model.question else ""
    before, figure, after = model.verdict.partition(model.verdict_figure or model.verdict)
    emphasized = f"<strong>{text_html(figure)}</strong>" if model.verdict_figure else text_html(figure)
    answer = f"{text_html(before)}{emphasized}{text_html(after)}"
    long = " long" if len(model.verdict) > _LONG else ""
    return (
        f'<header><ul class="headline"><li class="brand">Paceline</li>{above}{facts}</ul>'
        f'<h1>{escape(model.question or model.title)}</h1><p class="verdict{long}">{answer}</p></header>'
    )


def _notice(findings: tuple[ShownFinding, ...]) -> str:
    """What a reader must not overlook; the rest is below."""
    pressing = [finding for finding in findings if finding.severity in ("error", "warning")]
    if not pressing:
        return ""
    more = f" And {len(pressing) - 1} more." if len(pressing) > 1 else ""
    first = pressing[0]
    severity = first.severity.capitalize()
    return (
        f'<p class="notice {first.severity}"><a href="#findings">{severity}</a>: {text_html(first.summary)}{more}</p>'
    )


def _next(step: Step) -> str:
    return f'<section class="next card"><h2>Run next</h2><p>{escape(step.text)}</p>{command_html(step)}</section>'


def command_html(step: Step) -> str:
    """A command that a click marks as a whole, and a button copies."""
    return (
        f'<div class="command"><code tabindex="0">{escape(step.command)}</code>'
        '<button type="button" data-copy hidden>Copy</button></div>'
    )
