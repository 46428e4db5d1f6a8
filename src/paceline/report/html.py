"""ReportModel as one HTML file: the first screen, then one part per question that a study answers.

first_screen   the question, the answer, the main plot, what to run next
sections       what else there is to say, sorted by question: a new section is one line there
page           the file around it: style, scripts, data, and the policy that closes it
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from paceline.report.canvas import Figure
from paceline.report.figure_html import plots_html
from paceline.report.figures import figures
from paceline.report.first_screen import first_screen
from paceline.report.model import ReportModel
from paceline.report.page import page
from paceline.report.sections import questions_html
from paceline.report.timeline import timeline_object


def render(model: ReportModel) -> str:
    """The report as the text of a self-contained page."""
    drawn = figures(model)
    timelines = [timeline_object(run.timeline) for run in model.inside if run.timeline] if model.inside else None
    body = "\n".join((first_screen(model, drawn), *questions_html(model, drawn)))
    return page(title=model.title, name=model.name, body=body, drawn=drawn.values(), timelines=timelines)


def render_parts(title: str, name: str, drawn: Sequence[Figure], *parts: str) -> str:
    """A page of its own with a heading, plots side by side, and whatever HTML comes after them."""
    head = f'<header><ul class="headline"><li class="brand">Paceline</li></ul><h1>{escape(title)}</h1></header>'
    return page(title=title, name=name, body="\n".join((head, plots_html(drawn), *parts)), drawn=drawn)
