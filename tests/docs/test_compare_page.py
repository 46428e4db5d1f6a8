"""The page about comparisons names every key of the object that `paceline compare --json` prints, and no other."""

from __future__ import annotations

import dataclasses
import re

import pytest
from doc_pages import names, section

from paceline.analyze.stats.two_samples import difference, least_p
from paceline.records.changes import Change, Changes, Compared, Difference, MessageChange, Part, SideFigures, Versus
from paceline.records.results import Interval


def keys(cls: type) -> list[str]:
    return sorted(field.name for field in dataclasses.fields(cls))


def rows(table: int) -> dict[str, str]:
    """Names -> the text beside them, of one of the tables of the section."""
    text = section("compare.md", "For programs").split("\n\n| key")[table + 1]
    found = re.findall(r"^\| (`[^|]+`) \| (.+) \|$", text, re.MULTILINE)
    return {name: meaning for cell, meaning in found for name in names(cell)}


def test_every_key_is_documented_and_no_other() -> None:
    whole, change, side, figure = rows(0), rows(1), rows(2), rows(3)
    assert sorted(whole) == sorted([*keys(Changes), "more", "figures", "page", "slower"])
    assert sorted(change) == keys(Change)
    assert sorted(side) == keys(SideFigures)
    assert sorted(figure) == keys(Versus)
    for told, cls in (
        (whole["b"], Compared),
        (whole["differences"], Difference),
        (change["parts"], Part),
        (change["messages"], MessageChange),
        (figure["b"], Interval),
    ):
        assert set(keys(cls)) <= set(names(told)), cls


@pytest.mark.parametrize(("n", "pairs"), [(4, 16), (5, 25), (10, 100)])
def test_the_table_of_repeats_is_what_the_test_gives(n: int, pairs: int) -> None:
    """Values whose differences are 0, 1, 2, ..., so that the ends of the interval say their place."""
    found = difference([-float(i) for i in range(n)], [float(n * i) for i in range(n)], pairs / 2)
    line = next(
        row for row in section("compare.md", "When a difference is real").splitlines() if f"of {pairs} pairs" in row
    )
    assert f"{100 * (found.coverage or 0):.1f} %" in line
    assert f"| {n} | {least_p(n, n):.1g} |" in line.replace("0.029", "0.03").replace("0.00001", "1e-05")
    if n > 4:
        assert re.search(rf"{found.low + 1:.0f}\w\w to {found.high + 1:.0f}\w\w of {pairs} pairs", line)
