"""Range tests as text and as a page."""

from __future__ import annotations

import json
import math
import re

from paceline.records.lr_range import LrAdvice, LrCurve
from paceline.reporting.html import lr_range_page
from paceline.reporting.text.report_text import table_text


def curve(seed: int = 1, advised: float | None = 0.01) -> LrCurve:
    rates = tuple(10.0 ** (-4 + k / 10) for k in range(31))
    smoothed = tuple(2.3 if rate < 0.005 else 0.5 for rate in rates)
    losses = (*smoothed[:-2], 50.0, math.nan)
    return LrCurve(
        seed=seed, rates=rates, losses=losses, smoothed=smoothed, steepest=0.02, lowest=0.05, advised=advised
    )


def advice(*curves: LrCurve, lr: float | None = 0.01, notes: tuple[str, ...] = ()) -> LrAdvice:
    return LrAdvice(curves=curves, lr=lr, low=lr, high=lr, batch_global=2048, ranks=2, notes=notes)


def test_the_sentence_says_what_the_rate_is_for():
    assert lr_range_page.sentence(advice(curve())) == "Learning rate 0.01 at a global batch of 2,048 on 2 ranks."
    several = lr_range_page.sentence(advice(curve(1), curve(2)))
    assert several.endswith("(from 0.01 to 0.01 over 2 tests).")
    none = advice(curve(advised=None), lr=None)
    assert lr_range_page.sentence(none).startswith("No learning rate can be recommended")


def test_the_curve_in_the_terminal_falls_where_the_loss_does_and_marks_the_rate():
    bars, mark, below = lr_range_page.curve_text(curve(), 31).splitlines()
    assert bars[:31] == "█" * 17 + "▁" * 14
    assert mark == " " * 20 + "↑ 0.01"
    assert below.split() == ["0.0001", "0.1"] and len(below) == 31
    assert "↑" not in lr_range_page.curve_text(curve(advised=None), 31)


def test_a_flat_or_short_curve_can_be_drawn():
    flat = LrCurve(seed=1, rates=(0.1,), losses=(math.nan,), smoothed=(0.0,))
    assert lr_range_page.curve_text(flat, 40).startswith("▁")


def test_what_was_not_found_is_a_dash():
    rows = table_text(lr_range_page.table(advice(curve(advised=None), lr=None))).splitlines()
    assert rows[-1].split() == ["1", "–", "0.02", "0.05", "–", "31"]


def test_the_page_holds_curves_rate_and_command_and_escapes_what_others_wrote():
    page = lr_range_page.page(advice(curve(), notes=("<b>note</b>",)), "my <study>", "paceline study 'a<b>.toml'")
    assert "<b>" not in page.split("<script>")[0]
    assert "paceline study &#39;a&lt;b&gt;.toml&#39;" in page
    assert "Learning rate 0.01" in page and lr_range_page.RULE in page
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    figure = json.loads(found[1])["lr-range"]
    raw, smoothed = figure["data"]
    assert raw["y"][-2:] == [None, None], "what ran away would leave nothing of the rest to see"
    assert smoothed["y"][0] == 2.3
    assert figure["layout"]["shapes"][0]["x0"] == 0.01
