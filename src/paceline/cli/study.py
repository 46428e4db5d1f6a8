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
"""Job scripts that a terminal is shown: they differ in little."""
_ELSEWHERE = "Give fewer ranks and hosts: --ranks 1,2 --hosts 1. Or a cluster: --site NAME"


def study(
    study: Annotated[
        str | None,
        Parameter(
            completer=completers.studies,
            help="Name of a shipped study (see `paceline studies`), or a file such as my.toml; mnist-scaling where not "
            "given.",
        ),
    ] = None,
    /,
    *arguments: Annotated[str, Parameter(help="Of a script alone, after --: what it is given.")],
    script: Annotated[
        str | None, Parameter(metavar="FILE", help="A PyTorch script of your own, in place of a study.")
    ] = None,
    ranks: Annotated[str | None, Parameter(metavar="1,2", help="Numbers of ranks: one point each.")] = None,
    hosts: Annotated[str | None, Parameter(metavar="1,2", help="Numbers of hosts to spread the ranks over.")] = None,
    strategy: Strategy = None,
    launcher: Launcher = None,
    site: Site = None,
    repeats: Annotated[Count | None, Parameter(help="Runs of each point.")] = None,
    size: Annotated[
        str | None,
        Parameter(
            metavar="NAME", help="Of a study that has two: small, which is taken where not given, or full, as written."
        ),
    ] = None,
    overrides: Overrides = None,
    out: Out = None,
    budget: Annotated[
        float | None, Parameter(metavar="HOURS", help="Stop before more rank-hours are spent, earlier runs included.")
    ] = None,
    dry_run: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Check the study; show what would be run, an estimate of what it takes, and job scripts.",
        ),
    ] = False,
    force: Force = False,
    fresh: Fresh = False,
    as_json: Json = False,
) -> int:
    """Run a scaling study, or go on with one, and report on it.

    Every point is run as often as the study says. Finished runs are kept: a study that was stopped
    goes on when the same command is given again, and one that is finished is only reported.
    Several strategies, launchers or hosts, separated by commas, are compared in one study.
    With --script any PyTorch script takes the place of Paceline's own training: its throughput is that of
    the samples that go through its model.

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
            f"There is nothing that {own[1]!r} could stand for here.",
            right="Words after -- are those of a script, which --script names.",
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
    """Print what would be run; nothing is fetched or written, and no rank is started."""
    from paceline.cli.opening import print_opening
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
    then = "Run it: the same command without --dry-run." if shown.points else _ELSEWHERE
    console.result(f"\nNext    {then}")
    return 0


def _preview_text(shown: Preview, budget: float | None = None) -> str:
    """What would be run and what would not, the data, and what it would take."""
    lines = [_preview_table(shown)] if shown.points else []
    lines += [f"Not run: {left_out.label}. {left_out.reason}" for left_out in shown.not_run]
    lines += ["", _work_text(shown.study, shown)]
    if not shown.points:
        return "\n".join((*lines, "Runs: none. Nothing of this study fits here."))
    left = "" if shown.finished is None else f", {shown.runs - shown.finished} of them not finished"
    lines += [f"Runs: {shown.runs}{left}. Nothing was run.", _estimate_text(shown, budget)]
    return "\n".join(lines)


def _work_text(study: Study, shown: Preview) -> str:
    """What would be run, in a sentence: a script, or training on a data set."""
    script, data = study.script, shown.dataset
    if script is not None:
        return f"Script: {shlex.join([script.path, *script.arguments])}"
    known = f"{count_text(data.train)} training samples, in the cache" if data else "not in the cache yet"
    return f"Data set: {study.data.dataset}, {known}."


def _preview_table(shown: Preview) -> str:
    """A line per point: its ranks, what the study varies, its steps, what is finished, what it would take, where."""
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
    text = f"Rank-hours: {number_text(shown.rank_h, 2)} estimated for what is left, {shown.basis}."
    over = budget is not None and shown.rank_h > budget
    return f"{text} That is more than --budget {budget:g}: it would be stopped before its end." if over else text
