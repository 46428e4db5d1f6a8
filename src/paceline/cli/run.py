"""`paceline run`: a script of the user's own on N ranks, recorded and reported."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.follow import Follower
from paceline.cli.options import Count, Force, Fresh, Json, Launcher, Out, Site, divided
from paceline.cli.progress import StudyProgress
from paceline.errors import RequestError, RunError
from paceline.records.folder import RunFolder, StudyFolder
from paceline.studies.events import Event, RunFailed, RunFinished, RunProgress, RunSkipped, RunStarted

if TYPE_CHECKING:
    from paceline.api import Results
    from paceline.records.run import RunResult


def run(
    *script: Annotated[str, Parameter(name="SCRIPT", help="A PyTorch script, followed by whatever it is given.")],
    ranks: Annotated[
        Count | None, Parameter(name=["--ranks", "-n"], help="Number of ranks; 1 where not given.")
    ] = None,
    launcher: Launcher = None,
    site: Site = None,
    threads: Annotated[Count | None, Parameter(help="Threads of one rank; 1 where not given.")] = None,
    overrides: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            metavar="KEY=VALUE",
            negative="",
            help="Set a value of a study's [run] or [launch], such as run.pin=true; may be given again and again.",
        ),
    ] = None,
    out: Out = None,
    force: Force = False,
    fresh: Fresh = False,
    as_json: Json = False,
) -> int:
    """Run any PyTorch script on N ranks, unchanged, and show where its time goes.

    The script finds the environment that torchrun would give it. What rank 0 prints is copied to
    standard output as it comes; the others' output is in their logs. Steps, samples and messages are recorded,
    and every second of every rank is accounted for. Everything after -- belongs to the script. Each run has
    a folder of its own below runs/ where --out does not name one.

    For example:

        paceline run -n 2 -- train.py
        paceline run -n 4 --launcher mpi --threads 2 -- train.py --epochs 3 --lr 0.1
    """
    from paceline import api
    from paceline.cli.study import open_study

    console = Console.standard()
    file, arguments = _command(script)
    whole = api.load_script(
        file, arguments, ranks=ranks, launcher=launcher, site=site, repeats=1, threads=threads, set=overrides
    )
    settings = replace(whole.study.run, ranks=whole.study.run.ranks[:1])  # none where hosts and ranks per host say it
    loaded = replace(whole, study=replace(whole.study, run=settings, vary={}))
    folder = Path(out).expanduser() if out is not None else _new_folder(loaded.study.name)
    open_study(loaded, folder, console)
    with ScriptProgress(console, folder, shown=not as_json) as progress:
        try:
            results = api.run(loaded, folder, fresh=fresh, force=force, events=progress)
        except KeyboardInterrupt:
            progress.stop()
            console.say("Interrupted: the run is lost, and begins anew when the same command is given again.")
            return 130
    if progress.result is None:
        raise _failure(results, progress.folder)
    _show(results, progress.result, console, as_json=as_json)
    return 0


def _command(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The script and its arguments; RequestError where no script is named, or it is not clear what its words are."""
    own, theirs = divided(words)
    if not own and not theirs:
        raise RequestError(
            "No script is named.",
            right="It comes after --, followed by its own arguments.",
            next="For example: paceline run -n 2 -- train.py --epochs 3",
        )
    if len(own) > 1:
        raise RequestError(
            f"It is not clear whose {own[1]!r} is: it stands before --.",
            right="What belongs to the script comes after --.",
            next=f"Give: {shlex.join(['paceline', 'run', '...', '--', *own, *theirs])}",
        )
    if not own and theirs[0] == "-m":
        attached = ["torchrun", "--nproc-per-node", "2", "-m", "paceline.probe", *theirs]
        raise RequestError(
            "-m names a module.",
            right="A script is a Python file; a module is watched where another launcher starts it.",
            next=f"Give its file, or: {shlex.join(attached)}",
        )
    return (own[0], theirs) if own else (theirs[0], theirs[1:])


def _new_folder(name: str) -> Path:
    """A folder that is not there yet: two runs of a script are two runs."""
    stem = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    folder, number = Path("runs") / stem, 1
    while folder.exists():
        number += 1
        folder = Path("runs") / f"{stem}-{number}"
    return folder


class ScriptProgress(StudyProgress):
    """Shows what rank 0 prints, in place of how far a run has come."""

    def __init__(self, console: Console, folder: Path, *, shown: bool) -> None:
        super().__init__(console)
        self._study_folder = StudyFolder(folder)
        self._shown = shown
        self._follower: Follower | None = None
        self.folder: RunFolder | None = None
        """Of the run; None until it is started."""
        self.result: RunResult | None = None
        """What the run came to; None until it is finished."""

    def __enter__(self) -> Self:
        return self  # without a bar: the script's own output has the terminal

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Copy what rank 0 has printed until now, and no more."""
        if self._follower is not None:
            self._follower.stop()

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.folder = self._study_folder.run(event.run.point.point_id, event.run.number)
                self._follower = Follower(self.folder.rank_log(0), 0, self._copy)
                self._follower.start()
            case RunProgress():
                return
            case RunFinished():
                self.stop()
                self.result = event.result
            case RunSkipped():
                self.result = event.result
                self._console.say("This run is finished already: --fresh runs the script again.")
            case RunFailed():
                self.stop()
                return  # told in the end
        super().__call__(event)

    def _copy(self, text: str) -> None:
        self._console.copy(text, result=self._shown)


def _failure(results: Results, folder: RunFolder | None) -> RunError:
    """The error of a script that failed on some rank, with where to see what it did until then."""
    what = "\n".join(results.failures.values()) or "The run was not finished."
    if folder is None or not any(folder.spans.glob("*.arrows")):
        again = "Put it right and give the same command again; what can be wrong here: paceline doctor"
        return RunError(what, next=again)
    return RunError(what, next=f"What it did until then: {shlex.join(['paceline', 'trace', str(folder.path)])}")


def _show(results: Results, result: RunResult, console: Console, *, as_json: bool) -> None:
    """Print what the run came to, on standard error: standard output is the script's, or one object's."""
    from paceline.records.codec import plain
    from paceline.report.text import findings_text, table_text

    for note in results.notes:
        console.status("WARN", note)
    if as_json:
        console.json({**results.to_dict(), "run": plain(result)})
        return
    if result.script.found:
        console.fact("Found", ", ".join(result.script.found))
    for note in result.script.notes:
        console.fact("Note", note)
    ledger = results.model.brief_ledger
    if ledger.rows:
        console.say(f"\n{ledger.caption}\n{table_text(ledger, width=console.width)}".rstrip())
    # That one run has no interval is what running once means.
    told = [finding for finding in results.model.findings if finding.name != "few-repeats"]
    if told:
        console.say("\n" + findings_text(told, width=console.width).rstrip())
    console.say(f"\nReport  {results.report or 'not written'}")
    console.say(f"Next    {shlex.join(['paceline', 'trace', str(results.folder)])}")
