"""`paceline.watch`: a study while it runs, read from its folder without touching it.

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
_BETWEEN_S = 1.0
"""Between the two looks of a snapshot: a rate needs two readings."""
_CATCH_UP_S = 0.05
"""Between two looks while files are still unread."""
_MOST_LOOKS = 2000
"""Of a snapshot: enough to read the files of thousands of runs."""


def watch(folder: str | Path, *, every_s: float = EVERY_S) -> LiveView:
    """A view of a study folder, or of the folder of one run, while it is written.

    Iterate over it for one state every `every_s` seconds until the study ends, or call `look()` for the state now.
    Only reads: the study does not notice.
    """
    if not 0.1 <= every_s <= 3600:
        raise RequestError(
            f"--every {every_s:g} is no time between two looks.",
            right="It is a number of seconds from 0.1 to 3600: --every 10",
        )
    return LiveView(Path(folder).expanduser(), every_s=every_s)


class LiveView(ShownText):
    """Looks at a folder, and remembers what later looks need."""

    def __init__(self, folder: Path, *, every_s: float = EVERY_S) -> None:
        from paceline.analyze.study.live_study_figures import Memory
        from paceline.studies.folder.watched_folder import watcher

        self.folder = folder
        self._source = watcher(folder)
        self._memory = Memory()
        self._every_s = every_s
        self.caught_up = False
        """Whether the last look read everything that was written."""

    def look(self, *, whole: bool = False) -> Watched:
        """The state now, rates since the last look; `whole` reads all files from their beginning."""
        from paceline.analyze.study.live_study_figures import live_view, next_memory

        found, at_s = self._source.look(whole=whole), time.monotonic()
        self._memory = next_memory(self._memory, found, at_s)
        self.caught_up = not found.unread and (found.run is None or found.run.caught_up)
        looked_at = datetime.now().astimezone().isoformat(timespec="seconds")
        return live_view(found, self._memory, at_s=at_s, looked_at=looked_at)

    def snapshot(self) -> Watched:
        """The whole state now; while a run is active, with rates over one second."""
        from paceline.records.live_study import OVER

        seen = self.look(whole=True)
        for _ in range(_MOST_LOOKS):
            if self.caught_up:
                break
            seen = self.look()
        if seen.state not in OVER and seen.run is not None:
            time.sleep(_BETWEEN_S)
            seen = self.look()
        return seen

    def __iter__(self) -> Iterator[Watched]:
        """One state after another until the study is over; the last one names the report where there is one."""
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
