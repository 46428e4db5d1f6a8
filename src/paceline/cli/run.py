"""`paceline run`: any PyTorch script on N ranks, with a trace and a report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.follow import Follower
from paceline.cli.options import Count, Force, Fresh, Json, Launcher, Out, Site, divided
from paceline.cli.progress import StudyProgress
from paceline.errors import RequestError
from paceline.studies.execute.events import Event, RunFailed, RunFinished, RunProgress, RunSkipped, RunStarted

if TYPE_CHECKING:
    from paceline.app.single_run import SingleRun


def run(
    *script: Annotated[str, Parameter(name="SCRIPT", help="A PyTorch script, followed by its arguments.")],
    ranks: Annotated[Count | None, Parameter(name=["--ranks", "-n"], help="Number of ranks; default: 1.")] = None,
    launcher: Launcher = None,
    site: Site = None,
    threads: Annotated[Count | None, Parameter(help="Threads per rank; default: 1.")] = None,
    overrides: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            metavar="KEY=VALUE",
            negative="",
            help="Set a value of [run] or [launch], such as run.pin=true; repeatable.",
        ),
    ] = None,
    out: Out = None,
    force: Force = False,
    fresh: Fresh = False,
    as_json: Json = False,
) -> int:
    """Run any PyTorch script on N ranks, without changes to it, and show where its time goes.

    The script gets the same environment variables as from torchrun. The output of rank 0 is copied to standard
    output; that of the other ranks is in their logs. Steps, samples and messages are recorded, and the time of every
    rank is accounted for. Everything after -- belongs to the script. Without --out, every run gets a new folder below
    runs/.

    For example:

        paceline run -n 2 -- train.py
        paceline run -n 4 --launcher mpi --threads 2 -- train.py --epochs 3 --lr 0.1
    """
    from paceline import app

    console = Console.standard()
    file, arguments = _command(script)
    with ScriptProgress(console, shown=not as_json) as progress:
        try:
            done = app.run(
                file,
                arguments,
                ranks=ranks,
                launcher=launcher,
                site=site,
                threads=threads,
                set=overrides,
                out=out,
                fresh=fresh,
                force=force,
                events=progress,
            )
        except KeyboardInterrupt:
            progress.stop()
            console.say("Interrupted: the run was not finished. The same command starts it again.")
            return 130
    _show(done, console, as_json=as_json)
    return 0


def _command(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The script and its arguments; RequestError if no script is named, or arguments come before `--`."""
    own, theirs = divided(words)
    if not own and not theirs:
        raise RequestError(
            "No script is named.",
            right="The script comes after --, followed by its arguments.",
            next="For example: paceline run -n 2 -- train.py --epochs 3",
        )
    if len(own) > 1:
        raise RequestError(
            f"The argument {own[1]!r} comes before --.",
            right="The script and its arguments come after --.",
            next=f"Use: {shlex.join(['paceline', 'run', '...', '--', *own, *theirs])}",
        )
    if not own and theirs[0] == "-m":
        attached = ["torchrun", "--nproc-per-node", "2", "-m", "paceline.probe", *theirs]
        raise RequestError(
            "-m names a module.",
            right="paceline run takes a Python file. A module is recorded if torchrun or another launcher starts it.",
            next=f"Use its file, or: {shlex.join(attached)}",
        )
    return (own[0], theirs) if own else (theirs[0], theirs[1:])


class ScriptProgress(StudyProgress):
    """Prints the output of rank 0 instead of the progress of the run."""

    def __init__(self, console: Console, *, shown: bool) -> None:
        super().__init__(console)
        self._shown = shown
        self._follower: Follower | None = None

    def _start_bar(self) -> None:
        """Draw no bar: it would mix with the output of the script."""

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Copy the output of rank 0 up to now, then stop copying."""
        if self._follower is not None:
            self._follower.stop()

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                assert self.folder is not None
                log = self.folder.run(event.run.point.point_id, event.run.number).rank_log(0)
                self._follower = Follower(log, 0, self._copy)
                self._follower.start()
            case RunProgress():
                return
            case RunFinished():
                self.stop()
            case RunSkipped():
                self._console.say("This run is already finished. Use --fresh to run the script again.")
            case RunFailed():
                self.stop()
                return  # reported by the error at the end
        super().__call__(event)

    def _copy(self, text: str) -> None:
        self._console.copy(text, result=self._shown)


def _show(done: SingleRun, console: Console, *, as_json: bool) -> None:
    """Print the result on standard error: standard output has the output of the script, or the object of --json."""
    for note in done.results.notes:
        console.status("WARN", note)
    if as_json:
        console.json(done.to_dict())
        return
    if text := done.text(width=console.width):
        console.say(text)
    console.say(f"\nReport  {done.report or 'not written'}")
    console.say(f"Next    {shlex.join(['paceline', 'trace', str(done.folder)])}")
