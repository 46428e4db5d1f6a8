"""The page about watching names every key of the object that `paceline watch --json` prints, and no other."""

from __future__ import annotations

import dataclasses
import re

from doc_pages import names, section

from paceline.app.live_view import EVERY_S
from paceline.records.live_study import (
    FAILED,
    FINISHED,
    KILLED,
    RUNNING,
    SILENT,
    STOPPED,
    PointNow,
    RankNow,
    RunNow,
    Watched,
)
from paceline.studies.folder.lock_holder import BEAT_S, SILENT_S


def rows(table: int) -> list[str]:
    text = section("watch.md", "For programs").split("\n\n| key")[table + 1]
    return sorted(name for cell in re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE) for name in names(cell))


def test_every_key_is_documented_and_no_other() -> None:
    for table, cls in enumerate((Watched, PointNow, RunNow, RankNow)):
        assert rows(table) == sorted(field.name for field in dataclasses.fields(cls)), cls


def test_every_state_is_documented_with_its_exit_code() -> None:
    text = section("watch.md", "Starting and stopping it")
    codes = dict(re.findall(r"\| `(\w+)` \| (\d) \|", text))
    assert codes == {RUNNING: "0", SILENT: "0", FINISHED: "0", STOPPED: "1", FAILED: "1", KILLED: "1"}
    assert f"stopped for {3 * BEAT_S:.0f} s" in text and "for a minute" in text and SILENT_S == 60
    assert "every two seconds" in text and EVERY_S == 2.0
