"""Studies from Python, and what the verbs of the command line share.

    LoadedStudy ─ execute ─▶ folder ─ collect, analyze ─▶ StudyResults ─ report ─▶ results.csv, report.html

>>> results = paceline.study("digits", ranks=[1, 2], set={"train.lr": 0.05})      # doctest: +SKIP
>>> print(results.table())                                                       # doctest: +SKIP

In a notebook the results, their tables and their plots show themselves (report/notebook.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import FolderError, RequestError, RunError

if TYPE_CHECKING:
    from paceline.records.lr_range import LrAdvice
    from paceline.records.results import PointResult, StudyResults
    from paceline.report.model import ReportModel
    from paceline.report.notebook import ShownPlot, ShownTable
    from paceline.studies.events import Event
    from paceline.studies.load import LoadedStudy


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a study came to. Everything in it can be had again from its folder."""

    results: StudyResults
    model: ReportModel = field(repr=False)
    """The words, tables and series of the report."""
    folder: Path
    notes: tuple[str, ...] = ()
    """What could not be done with the results, in sentences."""
    stopped: str | None = None
    """Why the study ended before its last run, in sentences; None where it did not."""

    @property
    def points(self) -> tuple[PointResult, ...]:
        """One row per point, in order of ranks."""
        return self.results.points

    @property
    def report(self) -> Path | None:
        """The report's path; None where it could never be written."""
        from paceline.records.folder import StudyFolder

        path = StudyFolder(self.folder).report
        return path if path.is_file() else None

    @property
    def failures(self) -> dict[str, str]:
        """Why runs are missing: a sentence for each point that failed."""
        return {point.point_id: point.failure for point in self.points if point.failure}

    def table(self, name: str = "figures") -> ShownTable:
        """A table as text, and in a notebook as one: figures (one line per point), ledger, laws, learning, ..."""
        from paceline.report.notebook import shown_table

        return shown_table(self.model, name)

    def plot(self, name: str | None = None) -> ShownPlot:
        """A plot of the report: speedup, ledger, accuracy, loss, epoch, throughput, ...; the main one where None.

        It shows itself in a notebook; its `svg` is the drawing as text, its `save` writes it into a file.
        """
        from paceline.report.notebook import shown_plot

        return shown_plot(self.model, name)

    def to_pandas(self) -> Any:
        """The rows of results.csv as a pandas.DataFrame, one per point; pandas has to be installed."""
        from paceline.report.rows import COLUMNS, rows

        try:
            import pandas  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise RequestError(
                "A DataFrame needs pandas, which is not installed.",
                right=f"The same rows are in {self.folder / 'results.csv'}.",
                next="Install it: pip install pandas",
            ) from None
        return pandas.DataFrame(rows(self.results), columns=list(COLUMNS))

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`."""
        from paceline.report.json_view import json_object

        view = json_object(self.results, str(self.report) if self.report else None, self.model.published.as_json)
        return view if self.stopped is None else {**view, "stopped": self.stopped}

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        runs = sum(point.runs for point in self.points)
        return f"<Results of {self.results.study.name!r}: {runs} of {self.results.expected_runs} runs in {self.folder}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: verdict, figures and main plot, of some ten kilobytes and without a script."""
        from paceline.report.notebook import results_html

        notes = (*self.notes, *([self.stopped] if self.stopped else []))
        return results_html(self.model, report=self.report, notes=notes)


def study(
    source: str | Path,
    *,
    out: str | Path | None = None,
    ranks: int | Sequence[int] | None = None,
    hosts: int | Sequence[int] | None = None,
    strategy: str | Sequence[str] | None = None,
    launcher: str | Sequence[str] | None = None,
    site: str | None = None,
    repeats: int | None = None,
    set: Mapping[str, Any] | Sequence[str] | None = None,
    size: str | None = None,
    budget: float | None = None,
    force: bool = False,
    fresh: bool = False,
) -> Results:
    """Run a study, or go on with one, and bring its results; finished runs are kept and not repeated.

    `source` is the name of a shipped study or a TOML file, `set` overrides its values
    ({"train.lr": 0.01}), `out` is the folder (runs/NAME where None). Several values make a factor:
    strategy=["ddp", "flat"]. `size` is small or full, of a study that has both; small where None. `budget` ends
    the study before it has spent more rank-hours, `force` goes on where what a run was given makes it
    meaningless. Runs that failed are in `failures` of the results; RunError is raised where no run at all was
    finished.
    """
    loaded = load(
        source,
        ranks=ranks,
        hosts=hosts,
        strategy=strategy,
        launcher=launcher,
        site=site,
        repeats=repeats,
        set=set,
        size=size,
    )
    results = run(loaded, study_folder(loaded, out), fresh=fresh, budget=budget, force=force)
    if not any(point.runs for point in results.points):
        why = [*dict.fromkeys(results.failures.values()), *([results.stopped] if results.stopped else [])]
        raise RunError(
            f"No run of the study {loaded.study.name!r} was finished.",
            right="\n".join(why),
            next=f"The logs of the ranks are in {results.folder}.",
        )
    return results


def load(
    source: str | Path,
    *,
    ranks: int | Sequence[int] | None = None,
    hosts: int | Sequence[int] | None = None,
    strategy: str | Sequence[str] | None = None,
    launcher: str | Sequence[str] | None = None,
    site: str | None = None,
    repeats: int | None = None,
    set: Mapping[str, Any] | Sequence[str] | None = None,
    size: str | None = None,
) -> LoadedStudy:
    """The study of a name or file with everything that was overridden; StudyFileError where it is wrong.

    `size` is small or full, of a study that has both; small where None.
    """
    from paceline.studies.load import load_study

    named = {
        "run.ranks": ranks,
        "run.hosts": hosts,
        "run.strategy": strategy,
        "run.launcher": launcher,
        "launch.site": site,
        "run.repeats": repeats,
    }
    texts, values = _overrides(set, named)
    return load_study(source, texts, values=values, size=size)


def load_script(
    script: str | Path,
    arguments: Sequence[str] = (),
    *,
    ranks: int | Sequence[int] | None = None,
    hosts: int | Sequence[int] | None = None,
    strategy: str | Sequence[str] | None = None,
    launcher: str | Sequence[str] | None = None,
    site: str | None = None,
    repeats: int | None = None,
    threads: int | None = None,
    set: Mapping[str, Any] | Sequence[str] | None = None,
) -> LoadedStudy:
    """The study of a script of the user's own, named after its file; RequestError where it is no script."""
    from paceline.studies.load import load_script

    named = {
        "run.ranks": ranks,
        "run.hosts": hosts,
        "run.strategy": strategy,
        "run.launcher": launcher,
        "launch.site": site,
        "run.repeats": repeats,
        "run.threads": threads,
    }
    texts, values = _overrides(set, named)
    return load_script(script, arguments, texts, values=values)


def _overrides(
    given: Mapping[str, Any] | Sequence[str] | None, named: Mapping[str, Any]
) -> tuple[Sequence[str], dict[str, Any]]:
    """What `set` gives as `section.key=value`, and all values by path: those of options win over those of `set`."""
    options = {path: value for path, value in named.items() if value is not None}
    return ((), {**given, **options}) if isinstance(given, Mapping) else (given or (), options)


def study_folder(loaded: LoadedStudy, out: str | Path | None = None, *, prefix: str = "") -> Path:
    """Where a study's runs go: the folder that was asked for, or runs/NAME below the current one.

    The full size of a study that has two goes beside the small one, to runs/NAME-full.
    """
    suffix = "-full" if loaded.study.size == "full" else ""
    return Path("runs") / f"{prefix}{loaded.study.name}{suffix}" if out is None else Path(out).expanduser()


def run(
    loaded: LoadedStudy,
    folder: Path,
    *,
    fresh: bool = False,
    budget: float | None = None,
    force: bool = False,
    events: Callable[[Event], None] | None = None,
) -> Results:
    """Execute the runs that are missing from the folder, then rebuild its results."""
    from paceline.studies.execute import execute

    done = execute(loaded, folder, fresh=fresh, events=events or _ignore, budget_h=budget, force=force)
    return replace(open_results(folder), stopped=done.stopped)


def open_results(folder: str | Path, *, target: float | None = None, margin: float | None = None) -> Results:
    """The results of a study folder, its tables and report rebuilt.

    `target` is the validation accuracy that times are asked for, in place of the study's own; accuracies that differ
    by less than `margin`, both fractions, may be called equal.
    """
    from paceline.rebuild import rebuild

    notes: list[str] = []
    folder = Path(folder).expanduser()
    results, model = rebuild(folder, say=notes.append, target=target, margin=margin)
    if target is not None and not any(point.learning and point.learning.target for point in results.points):
        notes.append("No run has a validation accuracy to look for the target in: the study needs data.validation.")
    return Results(results=results, model=model, folder=folder, notes=tuple(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What range tests of a study's learning rate came to."""

    advice: LrAdvice
    changes: tuple[str, ...]
    """What to override in the study for it, such as train.lr=0.01; empty where no rate can be recommended."""
    page: Path | None
    """The page with the curves; None where it could not be written."""
    failures: tuple[str, ...] = ()
    """Why tests are missing, in sentences."""


def tune_lr(
    loaded: LoadedStudy,
    folder: Path,
    *,
    first: float = 1e-5,
    last: float = 1.0,
    steps: int = 100,
    repeats: int = 1,
    command: Callable[[tuple[str, ...]], str] = lambda changes: "",
    fresh: bool = False,
    force: bool = False,
    events: Callable[[Event], None] | None = None,
) -> Tuned:
    """Run learning-rate range tests of a study, rates rising from `first` to `last`, and read a rate off them.

    One test per repeat, each with a seed of its own; finished ones are kept. `command` makes the next command of the
    changes, for the page.
    """
    from paceline.analyze.learning.lr_range import Measured, lr_advice
    from paceline.launch.machine import this_machine
    from paceline.records.codec import write_atomically
    from paceline.records.folder import StudyFolder
    from paceline.report import lr_range
    from paceline.studies.execute import execute
    from paceline.studies.tune import changes_to, range_study, range_tests

    cores = this_machine().logical_cores
    ranged = range_study(loaded, cores=cores, first=first, last=last, steps=steps, repeats=repeats)
    done = execute(ranged, folder, fresh=fresh, events=events or _ignore, force=force)
    tests = range_tests(folder)
    if not tests:
        raise RunError(
            f"No range test of the study {loaded.study.name!r} was finished.",
            right="\n".join(dict.fromkeys(done.failures.values())),
            next=f"The logs of the ranks are in {folder}.",
        )
    point = tests[0].point
    measured = [Measured(seed=test.seed, rates=test.rates, losses=test.losses, planned=steps) for test in tests]
    advice = lr_advice(measured, batch_global=point.batch_global, ranks=point.ranks)
    changes, page = tuple(changes_to(loaded.study, advice)), StudyFolder(folder).lr_range
    try:
        write_atomically(page, lr_range.page(advice, loaded.study.name, command(changes) if changes else "").encode())
    except FolderError:
        page = None
    return Tuned(advice=advice, changes=changes, page=page, failures=tuple(dict.fromkeys(done.failures.values())))


def _ignore(event: Event) -> None:
    """The listener of a study that is run from Python: it says nothing."""
