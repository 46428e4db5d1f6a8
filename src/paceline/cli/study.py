"""`paceline study`: from a study file to its report."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console, grid
from paceline.cli.options import (
    Count,
    Force,
    Fresh,
    Json,
    Launcher,
    Out,
    Overrides,
    Site,
    Strategy,
    divided,
    whole_numbers,
    words,
)
from paceline.errors import RequestError
from paceline.units import count_text, number_text

if TYPE_CHECKING:
    from paceline.records.study import Study
    from paceline.studies.execute.preview import Preview, PreviewedPoint
    from paceline.studies.load.load import LoadedStudy

_MAX_SCRIPTS = 8
"""Job scripts printed on a terminal; they differ in few lines."""
_NOTHING_FITS = "Use fewer ranks and hosts: --ranks 1,2 --hosts 1. Or use a cluster: --site NAME"


def study(
    study: Annotated[
        str | None,
        Parameter(
            completer=completers.studies,
            help="Name of a shipped study (see `paceline studies`), or a file such as my.toml; default: mnist-scaling.",
        ),
    ] = None,
    /,
    *arguments: Annotated[str, Parameter(help="With --script: the arguments of the script, after --.")],
    script: Annotated[str | None, Parameter(metavar="FILE", help="Your own PyTorch script instead of a study.")] = None,
    ranks: Annotated[str | None, Parameter(metavar="1,2", help="Numbers of ranks, one point each.")] = None,
    hosts: Annotated[str | None, Parameter(metavar="1,2", help="Numbers of hosts for the ranks.")] = None,
    strategy: Strategy = None,
    launcher: Launcher = None,
    site: Site = None,
    repeats: Annotated[Count | None, Parameter(help="Runs of each point.")] = None,
    size: Annotated[
        str | None,
        Parameter(metavar="NAME", help="small or full, for a study that has both sizes; default: small."),
    ] = None,
    overrides: Overrides = None,
    out: Out = None,
    budget: Annotated[
        float | None, Parameter(metavar="HOURS", help="Stop before the study uses more rank-hours; earlier runs count.")
    ] = None,
    dry_run: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Only check the study; show its points, the estimated rank-hours and the job scripts.",
        ),
    ] = False,
    force: Force = False,
    fresh: Fresh = False,
    as_json: Json = False,
) -> int:
    """Run a scaling study, or continue one, and report its results.

    Every point is run several times (--repeats). The same command continues a stopped study: finished runs are not
    repeated. A finished study is only reported. Several strategies, launchers or numbers of hosts, separated by
    commas, are compared in one study. With --script, your own PyTorch script is run instead of the training of
    Paceline; its throughput is measured in samples that pass through its model.

    For example:

        paceline study digits
        paceline study my-study.toml --ranks 1,2,4 --repeats 5 --set train.lr=0.01
        paceline study my-study.toml --strategy ddp,flat --budget 2 --dry-run
        paceline study --script train.py --ranks 1,2,4 -- --epochs 3
    """
    from paceline.app.study_execution import execute_study
    from paceline.app.study_loading import load_either, study_folder
    from paceline.cli.progress import StudyProgress
    from paceline.cli.report import show
    from paceline.studies.execute.budget import check_budget

    console = Console.standard()
    check_budget(budget)
    own, theirs = divided([*([] if study is None else [study]), *arguments])
    if len(own) > 1:
        raise RequestError(
            f"Unexpected argument: {own[1]}",
            right="Arguments of a script come after --, and --script names the script.",
            next="See: paceline study --help",
        )
    loaded = load_either(
        own[0] if own else None,
        script,
        theirs,
        ranks=whole_numbers("--ranks", ranks) if ranks is not None else None,
        hosts=whole_numbers("--hosts", hosts) if hosts is not None else None,
        strategy=words(strategy),
        launcher=words(launcher),
        site=site,
        repeats=repeats,
        set=overrides,
        size=size,
    )
    folder = study_folder(loaded, out)
    if dry_run:
        return _show_preview(loaded, folder, console, budget, as_json=as_json)
    with StudyProgress(console) as progress:
        try:
            results = execute_study(loaded, folder, fresh=fresh, budget=budget, force=force, events=progress)
        except KeyboardInterrupt:
            return progress.interrupted("study")
    show(results, console, as_json=as_json)
    return 1 if results.failures or results.stopped else 0


def _show_preview(loaded: LoadedStudy, folder: Path, console: Console, budget: float | None, *, as_json: bool) -> int:
    """Print the points of a study without running them; nothing is fetched or written."""
    from paceline.cli.progress import print_opening
    from paceline.reporting.wording.choice_words import choice_lines, choice_object
    from paceline.storage.codec import plain
    from paceline.studies.execute.preview import preview

    shown = preview(loaded, folder)
    if as_json:
        points = [{**plain(point), "chosen": [*map(choice_object, point.chosen)]} for point in shown.points]
        console.json({"study": loaded.study.name, "folder": str(folder), "preview": plain(shown) | {"points": points}})
        return 0
    print_opening(loaded.study, folder, console)
    for line in choice_lines((point.label, point.chosen) for point in shown.points):
        console.fact("Chosen", line)
    console.result(_preview_text(shown, budget))
    scripts = {point.label: point.script for point in shown.points if point.script}
    for label, script in list(scripts.items())[:_MAX_SCRIPTS]:
        console.result(f"\nJob script, {label}:\n\n{script.rstrip()}")
    if len(scripts) > _MAX_SCRIPTS:
        console.result(f"\n{len(scripts) - _MAX_SCRIPTS} more job scripts are shown with --json.")
    then = "Run it: use the same command without --dry-run." if shown.points else _NOTHING_FITS
    console.result(f"\nNext    {then}")
    return 0


def _preview_text(shown: Preview, budget: float | None = None) -> str:
    """The points, the skipped points, the data set and the estimated rank-hours as text."""
    lines = [_preview_table(shown)] if shown.points else []
    lines += [f"Not run: {skipped.label}. {skipped.reason}" for skipped in shown.not_run]
    lines += ["", _work_text(shown.study, shown)]
    if not shown.points:
        return "\n".join((*lines, "Runs: none. No point of this study fits this machine."))
    unfinished = "" if shown.finished is None else f", {shown.runs - shown.finished} of them not finished"
    lines += [f"Runs: {shown.runs}{unfinished}. Nothing was run.", _estimate_text(shown, budget)]
    return "\n".join(lines)


def _work_text(study: Study, shown: Preview) -> str:
    """The script, or the data set of the training, as text."""
    script, data = study.script, shown.dataset
    if script is not None:
        return f"Script: {shlex.join([script.path, *script.arguments])}"
    known = f"{count_text(data.train)} training samples, in the cache" if data else "not in the cache yet"
    return f"Data set: {study.data.dataset}, {known}."


def _preview_table(shown: Preview) -> str:
    """A table with a row per point: ranks, factors, steps, finished runs, estimated rank-hours, placement."""
    from paceline.reporting.wording.phrases import factor_heading

    factors, script = list(shown.study.vary), shown.study.script is not None
    models = len({point.parameters for point in shown.points}) > 1
    work = [*(["parameters"] if models else []), "batch per rank", "steps per epoch"]
    numbers = [*([] if script else work), "finished", "rank-hours"]
    header = ["ranks", *map(factor_heading, factors), *numbers, "placement"]
    rows = [
        (
            str(point.ranks),
            *("–" if point.factors[path] is None else _shown(path, point) for path in factors),
            *([count_text(point.parameters)] if models else []),
            *([] if script else [f"{point.batch_per_rank:g}", count_text(point.steps_per_epoch)]),
            f"{'–' if point.finished is None else point.finished} of {shown.study.run.repeats}",
            number_text(point.rank_h, 2),
            point.placement,
        )
        for point in shown.points
    ]
    first = 1 + len(factors)
    return grid(header, rows, right=(0, *range(first, first + len(numbers))))


def _shown(path: str, point: PreviewedPoint) -> str:
    from paceline.records.study import shown_value

    return str(shown_value(path, point.factors[path]))


def _estimate_text(shown: Preview, budget: float | None) -> str:
    if shown.rank_h is None:
        return f"Rank-hours: {shown.basis}."
    text = f"Rank-hours: {number_text(shown.rank_h, 2)} estimated for the remaining runs, {shown.basis}."
    over = budget is not None and shown.rank_h > budget
    return f"{text} That is more than --budget {budget:g}: the study would stop early." if over else text
