"""The terminal's report, whole: report_text/NAME.txt.

After a change of words: UPDATE_GOLDEN=1 pytest tests/golden/test_report_text.py, and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paceline.reporting.model import report_model
from paceline.reporting.text.report_text import render
from samples.series_samples import ALL

EXPECTED = Path(__file__).with_name("report_text")


@pytest.mark.parametrize("name", ALL)
def test_report_text(name: str) -> None:
    text = render(report_model(ALL[name]()), width=100)
    expected = EXPECTED / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(text)
    assert text == expected.read_text()


def test_no_expectation_is_left_behind() -> None:
    assert {path.stem for path in EXPECTED.glob("*.txt")} == set(ALL)
