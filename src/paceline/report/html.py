"""ReportModel as one HTML file: the first screen, then one part per question that a study answers.

sections    what there is to say, sorted by question
markup      templates, which escape what they show
page        the file around it: style, scripts, data, and the policy that closes it
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paceline.report.canvas import Figure
from paceline.report.figures import figures, main_figure
from paceline.report.markup import fragment
from paceline.report.model import ReportModel
from paceline.report.page import page
from paceline.report.sections import questions_html
from paceline.report.timeline import timeline_object

if TYPE_CHECKING:
    from markupsafe import Markup

_FIGURE = re.compile(r"\d[\d,.]* (?:times|samples/s)|[-+−]\d[\d,.]* points|epoch \d+")
"""What an answer is about, as the verdict writes it."""


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
    found = _FIGURE.search(model.verdict)
    begin, end = found.span() if found else (len(model.verdict),) * 2
    answer = (model.verdict[:begin], model.verdict[begin:end], model.verdict[end:])
    pressing = [finding for finding in model.findings if finding.severity in ("error", "warning")]
    return fragment("report", "first_screen", model, drawn, main_figure(drawn), answer, pressing)
