"""ReportModel as one HTML file: the first screen, then one part per question that a study answers.

sections    what there is to say, sorted by question
markup      templates, which escape what they show
page        the file around it: style, scripts, data, and the policy that closes it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paceline.reporting.figures.canvas import Figure
from paceline.reporting.figures.report_figures import figures, main_figure
from paceline.reporting.html.markup import fragment
from paceline.reporting.html.page import page
from paceline.reporting.html.sections import questions_html
from paceline.reporting.html.timeline_html import timeline_object
from paceline.reporting.model import ReportModel

if TYPE_CHECKING:
    from markupsafe import Markup


def render(model: ReportModel) -> str:
    """The report as the text of a self-contained page."""
    drawn = figures(model)
    timelines = [timeline_object(run.timeline) for run in model.inside if run.timeline] if model.inside else None
    body = _first_screen(model, drawn) + questions_html(model, drawn)
    return page(title=model.title, name=model.name, body=body, drawn=drawn.values(), timelines=timelines)


def render_parts(title: str, name: str, drawn: Sequence[Figure], after: Markup) -> str:
    """A page of its own with a heading, plots side by side, and the HTML that comes after them."""
    return page(title=title, name=name, body=fragment("report", "plain", title, drawn, after), drawn=drawn)


def _first_screen(model: ReportModel, drawn: Mapping[str, Figure]) -> Markup:
    """The question, the answer with its figure, the main plot, where the time went, what to run next."""
    answer = model.verdict.partition(model.verdict_figure) if model.verdict_figure else (model.verdict, "", "")
    pressing = [finding for finding in model.findings if finding.severity in ("error", "warning")]
    return fragment("report", "first_screen", model, drawn, main_figure(drawn), answer, pressing)
