"""Plots: what is on their axes, and that colour never stands alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import paceline.reporting
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.reporting.figures import curve_plots
from paceline.reporting.figures.canvas import LINE_STYLES
from paceline.reporting.figures.legend import KIND_STYLES
from paceline.reporting.figures.report_figures import figures
from paceline.reporting.html.markup import fragment
from paceline.reporting.model import report_model
from samples import report_samples as samples
from samples.series_samples import ALL

CSS = (Path(paceline.reporting.__file__).parent / "assets" / "light.css").read_text()


def colours(part: Any) -> set[str]:
    return set(re.findall(r"var\((--[a-z-]+)\)", json.dumps(part)))


@pytest.mark.parametrize("name", ALL)
def test_every_colour_is_in_the_style_sheet_and_every_number_is_one(name: str) -> None:
    for figure in figures(report_model(ALL[name]())).values():
        json.dumps([figure.data, figure.layout], allow_nan=False)
        names = colours([figure.data, figure.layout]) | colours(fragment("parts", "legend", figure.keys))
        assert names and all(f"{colour}:" in CSS for colour in names)


def test_ticks_are_the_measured_ranks() -> None:
    linear = figures(report_model(samples.typical()))["speedup"].layout
    assert linear["xaxis"]["tickvals"] == [1, 2, 4] and linear["xaxis"]["type"] == "linear"
    wide = figures(report_model(samples.many_points()))["speedup"].layout
    assert wide["xaxis"]["type"] == wide["yaxis"]["type"] == "log"
    assert wide["xaxis"]["tickvals"] == wide["yaxis"]["tickvals"] == [1, 2, 4, 8, 16, 32, 64]


def test_measured_points_have_their_intervals_and_the_baseline_none() -> None:
    figure = figures(report_model(samples.two_points()))["speedup"]
    ideal, intervals, measured = figure.data
    assert ideal["y"] == [1, 2] and measured["y"] == [1, 1.88]
    assert intervals["x"] == [2]
    assert intervals["error_y"]["array"] == pytest.approx([0.035]) and intervals["error_y"]["arrayminus"] == [0.05]
    assert measured["text"] == ["", "1.88 ×<br>94 %"]


def test_points_that_share_cores_are_hollow() -> None:
    figure = figures(report_model(samples.oversubscribed()))["speedup"]
    assert figure.data[-1]["marker"]["color"] == ["var(--blue)", "var(--blue)", "var(--surface)"]
    assert "share cores" in figure.caption


def test_one_point_has_no_scaling_plot() -> None:
    drawn = figures(report_model(samples.single_point()))
    assert set(drawn) == {"ledger", "accuracy", "loss"}
    assert figures(report_model(samples.nothing_finished())) == {}


def test_bars_fill_the_run() -> None:
    figure = figures(report_model(samples.typical()))["ledger"]
    for index in range(3):
        assert sum(trace["x"][index] for trace in figure.data) == pytest.approx(100, abs=0.01)
    assert "Not measured" not in figure.caption
    gaps = figures(report_model(samples.diverged()))["ledger"]
    assert gaps.caption.endswith("Not measured: comm-wait, comm-transfer.")


def test_no_two_marks_differ_in_colour_alone() -> None:
    kinds = KIND_STYLES
    assert tuple(kinds) == (*LEDGER_KINDS, "message")
    assert len(set(kinds.values())) == len(kinds)
    markers = [marker for _, marker in LINE_STYLES]
    assert len(set(markers)) == len(markers)
    for trace in figures(report_model(samples.typical()))["loss"].data:
        if "marker" in trace:
            assert (trace["line"]["dash"] == "dash") == trace["name"].endswith("validation")


def test_keys_of_the_page_match_what_is_drawn() -> None:
    for name, figure in figures(report_model(samples.typical())).items():
        named = {trace["name"] for trace in figure.data if trace.get("showlegend", True) and "name" in trace}
        assert {key.label for key in figure.keys} == named, name
    drawn = fragment("parts", "legend", figures(report_model(samples.typical()))["ledger"].keys)
    assert drawn.count("<svg") == drawn.count("<li>") == 10


def test_long_curves_are_thinned_and_keep_every_run() -> None:
    results = samples.typical(ranks=(1, 2), repeats=5, epochs=4000)
    figure = figures(report_model(results))["loss"]
    values = sum(len(trace["y"]) for trace in figure.data)
    assert values < curve_plots._MOST_CURVE_VALUES + 4 * curve_plots._MOST_EPOCHS + 100
    assert figure.data[0]["y"].count(None) == 5


def test_a_single_run_is_not_drawn_twice() -> None:
    results = samples.typical(ranks=(1,), repeats=1)
    (point,) = results.points
    figure = figures(report_model(replace(results, points=(replace(point, curves=point.curves[:1]),))))["loss"]
    assert len(figure.data) == 2 and figure.caption.startswith("One run per point.")


def test_bars_around_points_are_called_what_they_are() -> None:
    captions = {name: figures(report_model(ALL[name]()))["epoch"].caption for name in ("typical", "few-repeats")}
    assert captions["typical"].endswith("medians of the repeats with their intervals.")
    assert captions["few-repeats"].endswith("medians of the repeats with their ranges.")
    assert "interval" not in figures(report_model(samples.partial()))["speedup"].caption
