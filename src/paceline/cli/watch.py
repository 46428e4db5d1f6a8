"""`paceline watch DIR`: the state of a running study, from another shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console
from paceline.cli.options import Json

if TYPE_CHECKING:
    from paceline.app.live_view import LiveView
    from paceline.records.live_study import Watched

Once = Annotated[
    bool,
    Parameter(name="--once", negative="", show_default=False, help="Print the current state as plain text, and exit."),
]


def watch(
    folder: Annotated[
        Path,
        Parameter(
            name="DIR",
            completer=completers.study_folders,
            help="Folder of a study, such as runs/digits, or of one run.",
        ),
    ],
    /,
    *,
    every: Annotated[float, Parameter(metavar="SECONDS", help="Time between two updates.")] = 2.0,
    once: Once = False,
    as_json: Json = False,
) -> int:
    """Watch a study while it runs, from another shell: finished points, throughput, loss, time left, the ledger so far.

    It only reads files and can be started and stopped at any time. It ends with the study and shows the result;
    Ctrl-C ends it earlier. Without a terminal, or if NO_COLOR is set, it prints the current state once, like --once.

    The exit code is 0 if the study is running or finished, and 1 if it was stopped, failed or was killed.

    For example:

        paceline watch runs/digits
        paceline watch runs/mnist-scaling --every 10
        paceline watch runs/mnist-scaling --json
    """
    from paceline import app
    from paceline.records.live_study import FAILED, KILLED, STOPPED
    from paceline.reporting.text.watch_text import render
    from paceline.storage.codec import plain

    console, view = Console.standard(), app.watch(folder, every_s=every)
    if as_json:
        seen = view.snapshot()
        console.json(plain(seen))
    elif once or not console.color:
        seen = view.snapshot()
        console.result(render(seen, width=console.width))
    else:
        seen = _live(view, console)
    return 1 if seen.state in (STOPPED, FAILED, KILLED) else 0


def _live(view: LiveView, console: Console) -> Watched:
    """Draw every state until the study ends or Ctrl-C is pressed; the last state."""
    from rich.live import Live
    from rich.text import Text

    from paceline.records.live_study import OVER
    from paceline.reporting.text.watch_text import render

    seen: Watched | None = None
    with Live(console=console.page, auto_refresh=False, vertical_overflow="crop") as live:
        try:
            for seen in view:
                text = render(seen, width=console.width, color=True, height=console.page.height)
                live.update(Text.from_ansi(text), refresh=True)
        except KeyboardInterrupt:
            if seen is None:
                raise
        else:
            assert seen is not None
            return seen
    console.say(f"Stopped watching; the study {'is still running' if seen.state not in OVER else 'has ended'}.")
    return seen
