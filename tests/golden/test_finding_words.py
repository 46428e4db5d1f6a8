"""The wording of every finding: findings.txt. No other test asserts it.

After a change of words: UPDATE_GOLDEN=1 pytest tests/golden/test_finding_words.py, and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

from paceline.records.finding import Finding
from paceline.reporting.wording.finding_words import WORDS, finding_words
from samples.finding_samples import ALL

EXPECTED = Path(__file__).with_name("findings.txt")


def worded(finding: Finding) -> str:
    words = finding_words(finding)
    return f"{finding.code} ({finding.severity})\n  {words.summary}\n  {words.cause}\n  {words.remedy}\n"


def test_the_wording_of_every_finding() -> None:
    text = "\n".join(map(worded, ALL))
    if os.environ.get("UPDATE_GOLDEN"):
        EXPECTED.write_text(text)
    assert text == EXPECTED.read_text()


def test_every_code_is_in_it() -> None:
    assert {finding.code for finding in ALL} == set(WORDS)
