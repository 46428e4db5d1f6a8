"""`paceline study`: from a study file to its report."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli.console import Console, grid
from paceline.cli.options import Count, Fresh, Json, Out, Overrides, Source, whole_numbers
from paceline.units import bytes_text, count_text, counted

if TYPE_CHECKING:
    from paceline.cli.progress import StudyProgress
    from paceline.studies.load import LoadedStudy


def study(
    study: Source = "mnist-scaling",
    /,
    *,
    ranks: Annotated[str | None, Parameter(metavar="1,2", help="Numbers of ranks: one point each.")] = None,
    repeats: Annotated[Count | None, Parameter(help="Runs of each point.")] = None,
    overrides: Overrides = None,
    out: Out = None,
    dry_run: Annotated[
        bool, Parameter(negative="", show_default=False, help="Check the study and show what would be run.")
    ] = False,
    fresh: Fresh = False,
    as_json: Json = False,
) -> int:
    """Run a scaling study, or go on with one, and report on it.

    Every point is run as often as the study says. Finished runs are kept: a study that was stopped
    goes on when the same command is given again, and one that is finished is only reported.

    For example:

        paceline study digits
        paceline study my-study.toml --ranks 1,2,4 --repeats 5 --set train.lr=0.01
    """
    from paceline import api
    from paceline.cli.progress import StudyProgress
    from paceline.cli.report import show

    console = Console.standard()
    numbers = whole_numbers("--ranks", ranks) if ranks is not None else None
    loaded = api.load(study, ranks=numbers, repeats=repeats, set=overrides)
    folder = api.study_folder(loaded, out)
    if dry_run:
        return _show_preview(loaded, folder, console, as_json=as_json)
    open_study(loaded, folder, console)
    with StudyProgress(console) as progress:
        try:
            results = api.run(loaded, folder, fresh=fresh, events=progress)
        except KeyboardInterrupt:
            return interrupted("study", folder, progress, console)
    show(results, console, as_json=as_json)
    return 1 if results.failures else 0


def open_study(loaded: LoadedStudy, folder: Path, console: Console) -> None:
    """Print the opening block: version, machine, study, folder."""
    from paceline import __version__
    from paceline.launch.machine import this_machine

    here, study = this_machine(), loaded.study
    gpus = f", {', '.join(here.gpus)}" if here.gpus else ""
    console.say(f"Paceline {__version__}")
    cores = counted(here.cores, "core")
    console.fact("Machine", f"{here.host}: {cores}, {bytes_text(here.memory_bytes)}, {here.cpu}{gpus}")
    console.fact("Study", f"{study.title or study.name}{f': {study.question}' if study.question else ''}")
    console.fact("Folder", str(folder))


def interrupted(verb: str, folder: Path, progress: StudyProgress, console: Console) -> int:
    """Print one line about what is kept and how to go on; comes back with the exit code."""
    from paceline.records.folder import StudyFolder

    file = StudyFolder(folder).study
    if progress.total and file.is_file():
        again = shlex.join(["paceline", verb, str(file), "--out", str(folder)])
        console.say(f"Interrupted: {progress.finished} of {progress.total} runs are kept. Go on with: {again}")
    else:
        console.say("Interrupted before the first run: nothing was changed.")
    return 130


def _show_preview(loaded: LoadedStudy, folder: Path, console: Console, *, as_json: bool) -> int:
    """Print what would be run; nothing is fetched, started or written."""
    from paceline.records.codec import plain
    from paceline.studies.preview import preview

    shown = preview(loaded, folder)
    if as_json:
        console.json({"study": loaded.study.name, "folder": str(folder), "preview": plain(shown)})
        return 0
    open_study(loaded, folder, console)
    header = ["ranks", "batch per rank", "steps per epoch", "finished", "placement"]
    rows = [
        (
            str(point.ranks),
            f"{point.batch_per_rank:g}",
            count_text(point.steps_per_epoch),
            f"{'–' if point.finished is None else point.finished} of {loaded.study.run.repeats}",
            point.placement,
        )
        for point in shown.points
    ]
    console.result(grid(header, rows, right=(0, 1, 2, 3)))
    data, name = shown.dataset, loaded.study.data.dataset
    known = f"{count_text(data.train)} training samples, in the cache" if data else "not in the cache yet"
    left = "" if shown.finished is None else f", {shown.runs - shown.finished} of them not finished"
    console.result(f"\nData set: {name}, {known}.\nRuns: {shown.runs}{left}. Nothing was run.")
    return 0
