"""Figures for print: real files of their kinds, the same bytes every time, and nothing hidden or left out."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from test_paper_text import MARKUP, of, weak

from paceline.reporting.paper.content import Plot
from paceline.reporting.paper.drawing import KINDS, drawn
from paceline.reporting.paper.style import MARKS
from samples import report_samples, series_samples

TESTS = Path(__file__).parents[3]


def strong(results=None) -> Plot:
    return of(results or report_samples.oversubscribed()).plots[0]


def test_the_kinds_are_what_they_are_called() -> None:
    made = {kind: drawn(strong(), kind) for kind in KINDS}
    assert made["pdf"].startswith(b"%PDF-1.4") and made["png"].startswith(b"\x89PNG\r\n")
    root = ElementTree.fromstring(made["svg"])
    assert root.tag.endswith("svg")
    assert float(root.attrib["width"].removesuffix("pt")) / 72 * 25.4 == pytest.approx(85)
    assert struct.unpack(">I", made["png"][16:20])[0] == pytest.approx(85 / 25.4 * 300, abs=1)


def test_fonts_are_in_the_files_and_nothing_of_the_moment() -> None:
    pdf, svg = drawn(strong(), "pdf"), drawn(strong(), "svg").decode()
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
    assert b"CreationDate" not in pdf and b"Producer" not in pdf
    assert "<text" not in svg and "<metadata" not in svg and "date" not in svg


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_plot_is_the_same_bytes(kind: str) -> None:
    code = (
        "import hashlib, sys; sys.path[:0] = sys.argv[1:]; from test_paper_drawing import strong, drawn\n"
        f"print(hashlib.sha256(drawn(strong(), {kind!r})).hexdigest())"
    )
    told = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "SOURCE_DATE_EPOCH": "1"}
    if kind == "svg":
        places = [str(Path(__file__).parent), str(TESTS)]
        done = subprocess.run(
            [sys.executable, "-c", code, *places], env=told, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == hashlib.sha256(drawn(strong(), kind)).hexdigest()
    assert drawn(strong(), kind) == drawn(strong(), kind)


def test_wide_figures_stand_side_by_side() -> None:
    def size(width_mm: float) -> tuple[float, float]:
        root = ElementTree.fromstring(drawn(strong(), "svg", width_mm))
        return float(root.attrib["width"][:-2]), float(root.attrib["height"][:-2])

    (narrow, tall), (wide, low) = size(85), size(175)
    assert wide / narrow == pytest.approx(175 / 85) and low < tall


def test_no_two_series_share_colour_marker_or_dash() -> None:
    for values in ([m.color for m in MARKS], [m.marker for m in MARKS], [str(m.dash) for m in MARKS]):
        assert len(set(values)) == len(MARKS)
    greys = sorted(sum(int(m.color[i : i + 2], 16) * w for i, w in ((1, 0.3), (3, 0.59), (5, 0.11))) for m in MARKS)
    assert all(b - a > 8 for a, b in pairwise(greys)), greys


def test_intervals_the_ideal_and_hollow_points_are_drawn() -> None:
    """Counted in the SVG: what is left out of the plot leaves it."""
    svg = drawn(strong(), "svg").decode()
    assert len(re.findall("stroke-dasharray: [^;]*; stroke-dashoffset: 0; stroke: #6b6b6b", svg)) == 3, "or its key"
    assert svg.count("fill: #ffffff; stroke: #0072b2") == 2, "one hollow point in each panel"
    assert svg.count("fill: #0072b2; stroke: #0072b2") >= 4


@pytest.mark.parametrize("sample", ["strategies", "stale"])
def test_studies_with_series_are_drawn(sample: str) -> None:
    found = of(getattr(series_samples, sample)())
    assert found.plots and all(drawn(plot, "svg") for plot in found.plots[:1])


def test_weak_scaling_and_wide_ranges_are_drawn() -> None:
    _, step, epoch = of(weak()).plots
    assert drawn(step, "svg") and drawn(epoch, "svg").count(b'id="axes_') == len(epoch.panels) == 3
    assert drawn(of(report_samples.many_points()).plots[0], "svg")


@pytest.mark.parametrize("text", [MARKUP[4], MARKUP[10], "_hidden", "$\\frac{1}", "中" * 80], ids=range(5))
def test_names_are_drawn_as_they_are(text: str) -> None:
    results = series_samples.reads()
    points = tuple(replace(point, series=f"{text} {point.series}", label=text) for point in results.points)
    named, plain = (drawn(of(each).plots[0], "svg") for each in (replace(results, points=points), results))
    root = ElementTree.fromstring(named)
    assert len(root.findall(".//*[@id='legend_1']")) == 1
    assert named.count(b'id="line2d_') == plain.count(b'id="line2d_'), "a series is missing, or its entry"


def test_where_nothing_scales_there_is_no_plot() -> None:
    for sample in (report_samples.single_point, report_samples.nothing_finished, series_samples.rivals):
        assert of(sample()).plots == ()
