"""The report in a terminal: width, colour, and names that are only names."""

from __future__ import annotations

import re

import pytest

from paceline.reporting.model import report_model
from paceline.reporting.text.report_text import render, table_text
from samples import report_samples as samples
from samples.series_samples import ALL

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
@pytest.mark.parametrize("name", ALL)
def test_nothing_is_cut_off_at_any_width(name: str, width: int) -> None:
    text = render(report_model(ALL[name]()), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_every_figure_of_the_page_is_in_the_terminal() -> None:
    model = report_model(samples.typical())
    text = render(model, width=100)
    for row in model.figures.rows:
        for cell in row:
            assert cell.figure in text and cell.beside in text
    for fact in (model.verdict, *model.remarks):
        assert fact in text


def test_colour_changes_nothing_but_colour() -> None:
    model = report_model(samples.oversubscribed())
    plain, colored = render(model, width=100), render(model, width=100, color=True)
    assert "\x1b" not in plain and "\x1b" in colored
    assert [line.rstrip() for line in ESCAPE.sub("", colored).splitlines()] == plain.splitlines()


def test_the_environment_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = report_model(samples.oversubscribed())
    expected = render(model, color=False), render(model, color=True)
    for variables in ({"NO_COLOR": "1", "TERM": "dumb"}, {"FORCE_COLOR": "1", "COLUMNS": "30"}):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert (render(model, color=False), render(model, color=True)) == expected


def test_zero_columns_are_left_out_and_unmeasured_ones_are_not() -> None:
    assert "checkpoint" not in render(report_model(samples.typical()))
    assert re.search(r"comm-\s+comm-", render(report_model(samples.diverged())))
    assert "comm-" not in render(report_model(samples.single_point()))


def test_a_table_alone() -> None:
    text = table_text(report_model(samples.two_points()).figures)
    assert text.splitlines()[0].split("  ")[0] == "ranks"
    assert "1.88 [1.83, 1.91]" in text


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_strings_neither_control_the_terminal_nor_count_as_markup(text: str) -> None:
    shown = render(report_model(samples.hostile(text)), width=2000)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    if "markup" in text:
        assert "[bold red]not markup[/]" in shown and ":smile:" in shown
