from __future__ import annotations

import math

import pytest

from paceline import units


@pytest.mark.parametrize(
    ("value_s", "text"),
    [
        (None, "–"),
        (0.0, "0 ns"),
        (2.5e-7, "250 ns"),
        (0.0000123, "12.3 µs"),
        (0.01234, "12.3 ms"),
        (4.2, "4.20 s"),
        (75.2, "1 min 15 s"),
        (7322, "2 h 2 min"),
        (-0.5, "-500 ms"),
    ],
)
def test_durations(value_s, text):
    assert units.duration_text(value_s) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (999, "999 B"), (2_762_360, "2.8 MB"), (3e12, "3.0 TB")],
)
def test_bytes(value, text):
    assert units.bytes_text(value) == text


def test_an_interval_has_the_decimals_of_its_figure():
    assert units.interval_text(4.2, 4.0, 4.5) == "4.20 [4.00, 4.50]"
    assert units.interval_text(12345.6, 12000, 13000) == "12,346 [12,000, 13,000]"
    assert units.interval_text(None, None, None) == "–"
    assert units.interval_text(1.5, None, None) == "1.50"


def test_the_rest():
    assert units.number_text(float("nan")) == "–"
    assert units.number_text(0.0012345) == "0.00123"
    assert units.count_text(690590) == "690,590"
    assert [units.counted(count, "rank") for count in (0, 1, 2, 4096)] == [
        "0 ranks",
        "1 rank",
        "2 ranks",
        "4,096 ranks",
    ]
    assert [units.finite(value) for value in (None, 1.5, 0, math.nan, math.inf, -math.inf)] == [None, 1.5, 0] + [
        None
    ] * 3
    assert units.percent_text(0.934) == "93.4 %"
    assert units.seconds(units.nanoseconds(1.25)) == 1.25
