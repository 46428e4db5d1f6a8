"""`paceline.train` and `paceline.run`: one run of a point of a study, or of the user's script."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.app.results_view import Results
from paceline.app.shown import NOTEBOOK_WIDTH, ShownText
from paceline.app.study_execution import execute_study, ignore_event
from paceline.app.study_loading import DEFAULT_STUDY, load, load_script, study_folder
from paceline.errors import RequestError, RunError
from paceline.units import counted

if TYPE_CHECKING:
    from paceline.records.run import RunResult
    from paceline.storage.folder import RunFolder
    from paceline.studies.execute.events import Event
    from paceline.studies.load.load import LoadedStudy


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SingleRun(ShownText):
    """One finished run, and the results of its study folder, which has no other run."""

    result: RunResult
    """The figures of the run: epochs, test accuracy, times."""
    results: Results
    run_folder: RunFolder
    """The files of the run; `run_folder.rank_log(0)` is the output of rank 0."""

    @property
    def folder(self) -> Path:
        """The study folder, for `paceline.trace` and `paceline.open_results`."""
        return self.results.folder

    @property
    def report(self) -> Path | None:
        """The path of the report; None if it could not be written."""
        return self.results.report

    @property
    def headline(self) -> str:
        return f"{counted(self.result.ranks, 'rank')}, {counted(self.result.steps, 'step')} in {self.folder}"

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """Test accuracy, or the time ledger of a script, and the findings as text."""
        from paceline.reporting.text.single_run_text import render

        return render(self.result, self.results.model, width=width, color=color)

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`."""
        from paceline.storage.codec import plain

        return {**self.results.to_dict(), "run": plain(self.result)}


def train(
    source: str | Path = DEFAULT_STUDY,
    *,
    ranks: int | None = None,
    strategy: str | None = None,
    launcher: str | None = None,
    site: str | None = None,
    set: Mapping[str, Any] | Sequence[str] | None = None,
    out: str | Path | None = None,
    force: bool = False,
    fresh: bool = False,
    events: Callable[[Event], None] | None = None,
) -> SingleRun:
    """Train once: one run of one point of a study.

    If `ranks` is None, it is the first number of ranks of the study; the first value of every other factor is used. A
    stopped run continues from its last checkpoint, and a finished one is only read. If `out` is None, the folder is
    runs/train-NAME. RunError is raised if the run fails.
    """
    loaded = load(source, ranks=ranks, strategy=strategy, launcher=launcher, site=site, repeats=1, set=set)
    if (script := loaded.study.script) is not None:
        raise RequestError(
            f"{source} is a study of the script {script.path}, which cannot be trained by Paceline.",
            right="Run a script once with `paceline run`, or on several numbers of ranks with `paceline study`.",
            next=shlex.join(["paceline", "run", "--", script.path, *script.arguments]),
        )
    outcome = _Outcome(study_folder(loaded, out, prefix="train-"), events)
    results = _execute(loaded, outcome, fresh=fresh, force=force)
    if outcome.result is None:
        raise RunError(
            "\n".join(results.failures.values()) or "The run was not finished.",
            next=f"The logs of the ranks are in {outcome.folder}. The same command starts it again.",
        )
    return outcome.single_run(results)


def run(
    script: str | Path,
    arguments: Sequence[str] = (),
    *,
    ranks: int | None = None,
    launcher: str | None = None,
    site: str | None = None,
    threads: int | None = None,
    set: Mapping[str, Any] | Sequence[str] | None = None,
    out: str | Path | None = None,
    force: bool = False,
    fresh: bool = False,
    events: Callable[[Event], None] | None = None,
) -> SingleRun:
    """Run a PyTorch script on N ranks, without changes to it, and record where its time goes.

    `arguments` are those of the script. `ranks`, and `threads` per rank, are 1 if None. If `out` is None, every run
    gets a new folder below runs/. RunError is raised if the script fails on any rank.
    """
    loaded = load_script(
        script, arguments, ranks=ranks, launcher=launcher, site=site, repeats=1, threads=threads, set=set
    )
    outcome = _Outcome(Path(out).expanduser() if out is not None else _new_folder(loaded.study.name), events)
    results = _execute(loaded, outcome, fresh=fresh, force=force)
    if outcome.result is None:
        raise _script_failure(results, outcome.run_folder)
    return outcome.single_run(results)


class _Outcome:
    """Forwards events, and stores the result of the run."""

    def __init__(self, folder: Path, events: Callable[[Event], None] | None) -> None:
        self.folder = folder
        self._events = events or ignore_event
        self.run_folder: RunFolder | None = None
        self.result: RunResult | None = None

    def __call__(self, event: Event) -> None:
        from paceline.storage.folder import StudyFolder
        from paceline.studies.execute.events import RunFinished, RunSkipped, RunStarted

        if isinstance(event, RunStarted | RunSkipped | RunFinished):
            self.run_folder = StudyFolder(self.folder).run(event.run.point.point_id, event.run.number)
        if isinstance(event, RunSkipped | RunFinished):
            self.result = event.result
        self._events(event)

    def single_run(self, results: Results) -> SingleRun:
        assert self.result is not None and self.run_folder is not None
        return SingleRun(result=self.result, results=results, run_folder=self.run_folder)


def _execute(whole: LoadedStudy, outcome: _Outcome, *, fresh: bool, force: bool) -> Results:
    """Execute the first point of a study."""
    settings = replace(whole.study.run, ranks=whole.study.run.ranks[:1])  # empty if hosts and ranks per host define it
    loaded = replace(whole, study=replace(whole.study, run=settings, vary={}))
    return execute_study(loaded, outcome.folder, fresh=fresh, force=force, events=outcome)


def _new_folder(name: str) -> Path:
    """A new folder below runs/, with the name, the date and the time."""
    stem = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    folder, number = Path("runs") / stem, 1
    while folder.exists():
        number += 1
        folder = Path("runs") / f"{stem}-{number}"
    return folder


def _script_failure(results: Results, folder: RunFolder | None) -> RunError:
    """The error of a failed script, with the command that shows its trace."""
    what = "\n".join(results.failures.values()) or "The run was not finished."
    if folder is None or not any(folder.spans.glob("*.arrows")):
        return RunError(what, next="Fix the script and run it again. Check this machine with: paceline doctor")
    return RunError(
        what, next=f"See its trace up to the failure: {shlex.join(['paceline', 'trace', str(folder.path)])}"
    )
