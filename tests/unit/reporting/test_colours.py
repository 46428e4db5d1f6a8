"""The palette: told apart by people who lack a sort of cone, legible in light and in dark, and never alone."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import paceline.reporting
from checks.colour_sight import SIGHTS, contrast, distance, palette, seen
from paceline.reporting.figures.canvas import LINE_STYLES
from paceline.reporting.figures.legend import KIND_STYLES, MARKERS, PATTERNS

ASSETS = Path(paceline.reporting.__file__).parent / "assets"
LIGHT = palette((ASSETS / "light.css").read_text())
THEMES = {"light": LIGHT, "dark": LIGHT | palette((ASSETS / "dark.css").read_text())}
LINES = sorted({color for color, _ in LINE_STYLES})
KINDS = [color for color, _ in KIND_STYLES.values()]


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", THEMES)
def test_colours_are_told_apart(theme: str, sight: str) -> None:
    """Lines are thin and want more than bars, which stand side by side and have patterns."""
    colours = THEMES[theme]
    for names, least in ((LINES, 0.08), (KINDS, 0.06)):
        pairs = {(a, b): distance(colours[a], colours[b], sight) for a, b in combinations(names, 2)}
        assert min(pairs.values()) >= least, min(pairs.items(), key=lambda pair: pair[1])


def test_the_check_can_fail() -> None:
    """Red and green of equal lightness: far apart with all cones, and not without the red or the green ones."""
    red, green = "#c8503c", "#6e8a1e"
    assert distance(red, green, "all cones") > 0.15
    assert distance(red, green, "deuteranopia") < 0.08


@pytest.mark.parametrize("theme", THEMES)
def test_everything_is_legible(theme: str) -> None:
    colours = THEMES[theme]
    for name in ("ink", "muted", "accent"):
        assert all(contrast(colours[name], colours[behind]) >= 4.5 for behind in ("page", "surface", "tint")), name
    for name in set(KINDS):
        assert contrast(colours[f"on-{name}"], colours[name]) >= 4.5, name
    for name in LINES:
        assert contrast(colours[name], colours["surface"]) >= 3, name


def test_no_two_series_differ_in_colour_alone() -> None:
    markers = [marker for _, marker in LINE_STYLES]
    assert len(set(markers)) == len(markers) and set(markers) <= set(MARKERS)


@pytest.mark.parametrize("theme", THEMES)
def test_no_two_kinds_differ_in_colour_alone(theme: str) -> None:
    """Those of one pattern differ in lightness: they do on a grey printer, too. A message is never in a bar."""
    bars = {kind: style for kind, style in KIND_STYLES.items() if kind != "message"}
    assert {pattern for _, pattern in bars.values()} <= set(PATTERNS)
    for (kind, (color, pattern)), (other, (second, same)) in combinations(bars.items(), 2):
        if pattern == same:
            apart = abs(seen(THEMES[theme][color], "all cones")[0] - seen(THEMES[theme][second], "all cones")[0])
            assert apart >= 0.07, (kind, other)
