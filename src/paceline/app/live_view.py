"""`paceline.watch`: the state of a running study, read from its folder.

>>> for seen in paceline.watch("runs/digits"):                # doctest: +SKIP
...     print(seen.state, seen.done, "of", seen.of)           # doctest: +SKIP
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.app.shown import NOTEBOOK_WIDTH, ShownText
from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.records.live_study import Watched

EVERY_S = 2.0
_RATE_S = 1.0
"""Between the two reads of a snapshot: a rate needs two."""
_CATCH_UP_S = 0.05
"""Between two reads while files are still unread."""
_MAX_READS = 2000
"""For a snapshot: enough to read the files of thousands of runs."""


def watch(folder: str | Path, *, every_s: float = EVERY_S) -> LiveView:
    """A live view of a study folder, or of the folder of one run.

    Iterate over it for one state every `every_s` seconds until the study ends, or call `look()` for the current state.
    It only reads files.
    """
    if not 0.1 <= every_s <= 3600:
        raise RequestError(
            f"An update every {every_s:g} s is not possible.",
            right="Use from 0.1 to 3600 seconds: --every 10, or every_s=10 in Python.",
        )
    return LiveView(Path(folder).expanduser(), every_s=every_s)


class LiveView(ShownText):
    """Reads the state of a folder, and remembers earlier reads for rates."""

    def __init__(self, folder: Path, *, every_s: float = EVERY_S) -> None:
        from paceline.analyze.study.live_study_figures import Memory
        from paceline.studies.folder.watched_folder import watcher

        self.folder = folder
        self._source = watcher(folder)
        self._memory = Memory()
        self._every_s = every_s
        self.caught_up = False
        """Whether the last read reached the end of all files."""

    def look(self, *, whole: bool = False) -> Watched:
        """The current state, with rates since the last call; `whole` reads all files from their beginning."""
        from paceline.analyze.study.live_study_figures import live_view, next_memory

        found, at_s = self._source.look(whole=whole), time.monotonic()
        self._memory = next_memory(self._memory, found, at_s)
        self.caught_up = not found.unread and (found.run is None or found.run.caught_up)
        looked_at = datetime.now().astimezone().isoformat(timespec="seconds")
        return live_view(found, self._memory, at_s=at_s, looked_at=looked_at)

    def snapshot(self) -> Watched:
        """The complete current state; while a run is active, with rates over one second."""
        from paceline.records.live_study import OVER

        seen = self.look(whole=True)
        for _ in range(_MAX_READS):
            if self.caught_up:
                break
            seen = self.look()
        if seen.state not in OVER and seen.run is not None:
            time.sleep(_RATE_S)
            seen = self.look()
        return seen

    def __iter__(self) -> Iterator[Watched]:
        """One state after another until the study ends; the last one has the path of the report, if there is one."""
        from paceline.records.live_study import FINISHED, OVER
        from paceline.studies.folder.watching import REPORT_S

        ended_at: float | None = None
        while True:
            seen = self.look()
            yield seen
            ended_at = (ended_at or time.monotonic()) if seen.state in OVER else None
            # The report is written after the last run.
            awaits_report = seen.state == FINISHED and seen.run is None and seen.of and not seen.report
            waited_s = 0.0 if ended_at is None else time.monotonic() - ended_at
            if ended_at is not None and self.caught_up and (not awaits_report or waited_s >= REPORT_S):
                return
            time.sleep(self._every_s if self.caught_up else _CATCH_UP_S)

    @property
    def headline(self) -> str:
        return str(self.folder)

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """The snapshot as text."""
        from paceline.reporting.text.watch_text import render

        return render(self.snapshot(), width=width, color=color)

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`."""
        from paceline.storage.codec import plain

        return plain(self.snapshot())
