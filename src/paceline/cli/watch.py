"""`paceline watch DIR`: a study while it runs, from another shell, without touching it."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console
from paceline.cli.options import Json
from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.records.watch import Watched
    from paceline.studies.watched_folder import SingleWatcher
    from paceline.studies.watching import StudyWatcher

EVERY_S = 2.0
_BETWEEN_S = 1.0
"""Between the two looks of a snapshot: a rate needs two readings."""
_MOST_LOOKS = 2000
"""Of a snapshot: as many as it takes to read what thousands of runs have left, and no more."""

Once = Annotated[
    bool,
    Parameter(name="--once", negative="", show_default=False, help="Show how it is now, as plain text, and end."),
]


def watch(
    folder: Annotated[
        Path,
        Parameter(
            name="DIR",
            completer=completers.study_folders,
            help="The folder of a study, such as runs/digits, or of one run.",
        ),
    ],
    /,
    *,
    every: Annotated[float, Parameter(metavar="SECONDS", help="Time between two looks.")] = EVERY_S,
    once: Once = False,
    as_json: Json = False,
) -> int:
    """Watch a study while it runs, from another shell: points done, throughput, loss, time left, the ledger so far.

    Only reads: it can be started and stopped at will, and the study does not notice. It ends by itself when the
    study does, and says how that ended; Ctrl-C ends it sooner. Without a terminal, and where NO_COLOR is set,
    it shows how things are once, as --once does.

    The exit code is 0 where the study runs or is finished, and 1 where it was stopped, has failed or was killed.

    For example:

        paceline watch runs/digits
        paceline watch runs/mnist-scaling --every 10
        paceline watch runs/mnist-scaling --json
    """
    from paceline.records.watch import FAILED, KILLED, STOPPED
    from paceline.studies.watched_folder import watcher

    if not 0.1 <= every <= 3600:
        raise RequestError(
            f"--every {every:g} is no time between two looks.",
            right="It is a number of seconds from 0.1 to 3600: --every 10",
        )
    console = Console.standard()
    view = View(watcher(folder.expanduser()))
    if once or as_json or not console.color:
        seen = _snapshot(view)
        _show(seen, console, as_json=as_json)
    else:
        seen = _live(view, console, every)
    return 1 if seen.state in (STOPPED, FAILED, KILLED) else 0


class View:
    """Looks, and remembers what later looks need."""

    def __init__(self, source: StudyWatcher | SingleWatcher) -> None:
        from paceline.analyze.study.watched import Memory

        self._source = source
        self._memory = Memory()
        self.caught_up = False
        """Whether the last look found all there was."""

    def look(self, *, whole: bool = False) -> Watched:
        """How things are now."""
        from paceline.analyze.study.watched import remembered, watched

        found, at_s = self._source.look(whole=whole), time.monotonic()
        self._memory = remembered(self._memory, found, at_s)
        self.caught_up = not found.unread and (found.run is None or found.run.caught_up)
        looked_at = datetime.now().astimezone().isoformat(timespec="seconds")
        return watched(found, self._memory, at_s=at_s, looked_at=looked_at)


def _snapshot(view: View) -> Watched:
    """All there is, with rates over a second where somebody is at work."""
    from paceline.records.watch import OVER

    seen = view.look(whole=True)
    for _ in range(_MOST_LOOKS):
        if view.caught_up:
            break
        seen = view.look()
    if seen.state not in OVER and seen.run is not None:
        time.sleep(_BETWEEN_S)
        seen = view.look()
    return seen


def _live(view: View, console: Console, every_s: float) -> Watched:
    """Draw again and again until the study ends, or until nobody wants to see more."""
    from rich.live import Live
    from rich.text import Text

    from paceline.records.watch import FINISHED, OVER
    from paceline.report.watch_text import render
    from paceline.studies.watching import REPORT_S

    seen = view.look()
    ended_at: float | None = None
    with Live(console=console.page, auto_refresh=False, vertical_overflow="crop") as live:
        try:
            while True:
                text = render(seen, width=console.width, color=True, height=console.page.height)
                live.update(Text.from_ansi(text), refresh=True)
                ended_at = (ended_at or time.monotonic()) if seen.state in OVER else None
                # The report is written after the last run: who waits a moment sees where it is.
                patient = seen.state == FINISHED and seen.run is None and seen.of and not seen.report
                if ended_at is not None and view.caught_up and not (patient and time.monotonic() - ended_at < REPORT_S):
                    return seen
                time.sleep(every_s if view.caught_up else 0.05)
                seen = view.look()
        except KeyboardInterrupt:
            pass
    console.say(f"Watched no longer; {'it goes on' if seen.state not in OVER else 'it is over'}.")
    return seen


def _show(seen: Watched, console: Console, *, as_json: bool) -> None:
    from paceline.records.codec import plain
    from paceline.report.watch_text import render

    if as_json:
        console.json(plain(seen))
    else:
        console.result(render(seen, width=console.width))
