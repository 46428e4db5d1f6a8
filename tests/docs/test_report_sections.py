"""The quickstart leads through a report as it is: the first screen, then every question with its parts, in order."""

from __future__ import annotations

from doc_pages import section, table

from paceline.reporting.html import report_page
from paceline.reporting.html.sections import QUESTIONS, SECTIONS
from paceline.reporting.model import report_model
from samples import report_samples

ROWS = table(section("quickstart.md", "Reading the report"))


def test_the_questions_and_their_parts_are_those_of_a_report() -> None:
    told = [(row[0], row[1].split(", ")) for row in ROWS if len(row) == 3]
    there = [(asked.heading, [part.heading for part in SECTIONS if part.question is asked]) for asked in QUESTIONS]
    assert told == there


def test_the_parts_of_the_first_screen_are_there() -> None:
    page = report_page.render(report_model(report_samples.typical()))
    body = page[page.index("<main>") : page.index("</main>")]
    screen = body[: body.index("<nav")]
    _, *parts = [row[0] for row in ROWS if len(row) == 2]  # the first is the heading of the page, which every study has
    places = [screen.index(f">{part}</h2>") for part in parts]
    assert len(parts) == 3 and places == sorted(places)
