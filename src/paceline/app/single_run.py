"""`paceline.training` and `paceline.run`: one run, of a study's point or of a script of the user's own."""

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
    """One finished run, and the results of the study folder that holds it alone."""

    result: RunResult
    """The figures of the run: epochs, test accuracy, times."""
    results: Results
    run_folder: RunFolder
    """The files of the run; `run_folder.rank_log(0)` is what rank 0 printed."""

    @property
    def folder(self) -> Path:
        """The study folder, for `paceline.trace` and `paceline.open_results`."""
        return self.results.folder

    @property
    def report(self) -> Path | None:
        """The report's path; None where it could not be written."""
        return self.results.report

    @property
    def headline(self) -> str:
        return f"{counted(self.result.ranks, 'rank')}, {counted(self.result.steps, 'step')} in {self.folder}"

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """Test accuracy, or where the time of a script went, then what was noticed."""
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

    `ranks` is the study's first number of ranks where None; of a study that varies more, the first value of each
    factor is taken. A run that was stopped continues from its last checkpoint, and a finished one is only read. The
    folder is runs/train-NAME where `out` is None. RunError is raised where the run fails.
    """
    loaded = load(source, ranks=ranks, strategy=strategy, launcher=launcher, site=site, repeats=1, set=set)
    if (script := loaded.study.script) is not None:
        raise RequestError(
            f"{source} is a study of a script, {script.path}: Paceline does not train there.",
            right="A script is run once by `paceline run`, and on several numbers of ranks by `paceline study`.",
            next=shlex.join(["paceline", "run", "--", script.path, *script.arguments]),
        )
    outcome = _Outcome(study_folder(loaded, out, prefix="train-"), events)
    results = _execute(loaded, outcome, fresh=fresh, force=force)
    if outcome.result is None:
        raise RunError(
            "\n".join(results.failures.values()) or "The run was not finished.",
            next=f"The logs of the ranks are in {outcome.folder}; the same command starts it again.",
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
    """Run a PyTorch script on N ranks, unchanged, and record where its time goes.

    `arguments` are the script's words, `ranks` and `threads` of each rank are 1 where None. Each run has a folder of
    its own below runs/ where `out` is None. RunError is raised where the script fails on some rank.
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
    """Passes events on, and notes the result of the one run."""

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
    settings = replace(whole.study.run, ranks=whole.study.run.ranks[:1])  # none where hosts and ranks per host say it
    loaded = replace(whole, study=replace(whole.study, run=settings, vary={}))
    return execute_study(loaded, outcome.folder, fresh=fresh, force=force, events=outcome)


def _new_folder(name: str) -> Path:
    """A folder that does not exist yet: two runs of a script are two runs."""
    stem = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    folder, number = Path("runs") / stem, 1
    while folder.exists():
        number += 1
        folder = Path("runs") / f"{stem}-{number}"
    return folder


def _script_failure(results: Results, folder: RunFolder | None) -> RunError:
    """The error of a script that failed on some rank, with where to see what it did until then."""
    what = "\n".join(results.failures.values()) or "The run was not finished."
    if folder is None or not any(folder.spans.glob("*.arrows")):
        again = "Put it right and give the same command again; what can be wrong here: paceline doctor"
        return RunError(what, next=again)
    return RunError(what, next=f"What it did until then: {shlex.join(['paceline', 'trace', str(folder.path)])}")
