"""The columns of `counters/` are documented, each and no other."""

from __future__ import annotations

import re

from doc_pages import ROOT

from paceline.records.counters import COUNTERS


def test_every_counter_is_documented_and_no_other() -> None:
    page = (ROOT / "docs" / "run-folder.md").read_text(encoding="utf-8")
    part = page.split("## counters/rank-0000.arrows\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    assert tuple(name for row in rows for name in re.findall(r"`(\w+)`", row)) == COUNTERS
