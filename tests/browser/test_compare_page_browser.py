"""The page of a comparison in a real browser: drawn, whole in every light and width, deaf to hostile names."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from chromium import chromium, inspected

import report_samples
from compared_studies import attached_run, timed_study
from paceline.cli.compared_sides import compared
from paceline.records.changes import Comparison
from paceline.report.compare_page import render

DESKTOP, PHONE = 1280, 390
DARK = "--blink-settings=preferredColorScheme=0"
PLOTS = {"ratio", "ledger", "throughput", "epoch", "accuracy"}
KEPT = {"letter", "unit", "over", "kind", "what", "point", "a", "b", "first_at", "last_at"}
"""Texts that are ours, or by which things are found."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Comparison]:
    """Two sides, five of which one cannot be compared, and two single runs."""
    place = tmp_path_factory.mktemp("compared")
    cache, five = place / "cache", "run.repeats=5"
    sides = [
        timed_study(place / "before", cache, five),
        timed_study(place / "after", cache, five, "run.strategy=flat", forward_us=520, seed=2),
        timed_study(place / "again", cache, five, seed=11),
        timed_study(place / "few", cache, "run.repeats=2", seed=12),
        timed_study(place / "wide", cache, "run.repeats=2", "run.ranks=[4]", seed=4),
    ]
    runs = [attached_run(place / "run", seed=7), attached_run(place / "slow", seed=8, communicate_us=200)]
    return {"two": compared(sides[:2]), "five": compared(sides), "runs": compared(runs)}


def hostile(value: Any, text: str, name: str = "") -> Any:
    """The same with a text in every name."""
    if isinstance(value, str):
        return value if name in KEPT else f"{value} {text}"
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{each.name: hostile(getattr(value, each.name), text, each.name) for each in fields(value)}
        )
    if isinstance(value, tuple):
        return tuple(hostile(item, text, name) for item in value)
    return value


def test_it_is_drawn_and_fits_and_asks_for_nothing(found: dict[str, Comparison], tmp_path: Path) -> None:
    shown = [("two", DESKTOP), ("five", DESKTOP), ("five", PHONE), ("runs", PHONE)]
    for name, comparison in found.items():
        (tmp_path / f"{name}.html").write_text(render(comparison), encoding="utf-8")
    pages = inspected(tmp_path, [(f"{name}.html", width) for name, width in shown])
    for (name, _), page in zip(shown, pages, strict=True):
        assert "errors" not in page, (name, page["errors"])
        assert set(page["figures"]) == (PLOTS if name != "runs" else {"ratio", "ledger"})
        for figure in page["figures"].values():
            assert figure["drawings"] and figure["marks"] and 0 < figure["drawn"] <= figure["width"], (name, page)
        assert page["wide"] <= page["room"], f"{name} scrolls sideways"
        assert page["requests"] == 0


def test_hostile_names_do_not_run(found: dict[str, Comparison], tmp_path: Path) -> None:
    texts = [report_samples.HOSTILE[0], " ".join(report_samples.HOSTILE)]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.html").write_bytes(render(hostile(found["five"], text)).encode("utf-8", "replace"))
    for page in inspected(tmp_path, [(f"{number}.html", PHONE) for number in range(len(texts))]):
        assert "owned" not in page and "errors" not in page, page
        assert set(page["figures"]) == PLOTS and page["wide"] <= page["room"] and page["requests"] == 0


def test_it_prints_and_follows_a_dark_screen(found: dict[str, Comparison], tmp_path: Path) -> None:
    path, paper = tmp_path / "five.html", tmp_path / "five.pdf"
    path.write_text(render(found["five"]), encoding="utf-8")
    (page,) = inspected(tmp_path, [("five.html", DESKTOP)], DARK)
    assert "errors" not in page
    assert {figure["ink"] for figure in page["figures"].values()} == {"rgb(232, 237, 242)"}
    chromium(path, f"--print-to-pdf={paper}", "--no-pdf-header-footer", DARK)
    assert paper.read_bytes().startswith(b"%PDF")
