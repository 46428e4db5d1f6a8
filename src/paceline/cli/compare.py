"""`paceline compare A B`: what changed between two studies or two runs, what of it is real, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.options import Json
from paceline.errors import PacelineError, RequestError
from paceline.units import counted

if TYPE_CHECKING:
    from paceline.analyze.changes.changes import Pair
    from paceline.analyze.changes.matching import Settings
    from paceline.analyze.changes.spent import Spent
    from paceline.records.changes import Change, Changes, Compared, Difference
    from paceline.records.study import Point
    from paceline.studies.sides import Side, SideRun

_FOLDER = "A study folder, such as runs/digits, or the folder of one run."


def compare(
    a: Annotated[Path, Parameter(name="A", help=_FOLDER)],
    b: Annotated[Path, Parameter(name="B", help="Another of the same kind.")],
    /,
    *,
    fail_if_slower: Annotated[
        float | None,
        Parameter(
            metavar="PERCENT", help="Exit with 1 where B is really slower by more, with the lower end of its interval."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Compare two studies or two runs: what changed, which differences are real, and where they come from.

    Points of two studies are put together that agree in ranks and in every setting that the studies have in
    common; what they do not have in common is listed first. Of two single runs the steps are compared.

    For example:

        paceline compare runs/digits runs/digits-flat
        paceline compare runs/before runs/after --fail-if-slower 5 --json
    """
    from paceline.analyze.changes.changes import slower_than
    from paceline.records.codec import plain
    from paceline.report.changes_text import render

    console = Console.standard()
    if fail_if_slower is not None and not 0 <= fail_if_slower < math.inf:
        raise RequestError(
            f"--fail-if-slower {fail_if_slower:g} is not a share of A's time.",
            right="It is a number of per cent from 0 on: --fail-if-slower 5",
        )
    found = found_between(a.expanduser(), b.expanduser())
    slower = () if fail_if_slower is None else slower_than(found.changes, fail_if_slower / 100)
    if as_json:
        console.json({**plain(found), "slower": [change.label for change in slower]})
    else:
        console.result(render(found, width=console.width, color=console.color))
    if fail_if_slower is None:
        return 0
    return _checked(found.changes, slower, fail_if_slower, console)


def _checked(changes: Sequence[Change], slower: Sequence[Change], percent: float, console: Console) -> int:
    """The exit code of a check, with a line about what it rests on."""
    if slower:
        labels = "; ".join(change.label for change in slower)
        console.status("FAIL", f"B is really slower than A by more than {percent:g} %: {labels}.")
        return 1
    blind = [change.label for change in changes if change.smallest_seen is None]
    if blind or not changes:
        which = "; ".join(blind) or "nothing could be compared"
        console.status("WARN", f"Not checked, for want of runs: {which}.")
    return 0


def found_between(a: Path, b: Path) -> Changes:
    """All that changed from one folder to the other; RequestError where the two cannot be compared."""
    from paceline.analyze.changes.caveats import standing_caveats
    from paceline.analyze.changes.changes import changes
    from paceline.records.changes import Changes
    from paceline.studies.sides import STUDY, read_side

    first, second = read_side(a), read_side(b)
    only: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    if first.single and second.single:
        pairs, apart = _runs(first, second)
    elif first.what == second.what == STUDY:
        pairs, apart, only = _points(first, second)
    else:
        raise _unlike(first, second)
    found, untimed = changes(pairs)
    differences = (*apart, *_surroundings(first, second))
    sides = (_compared(first), _compared(second))
    return Changes(
        a=sides[0],
        b=sides[1],
        differences=differences,
        changes=found,
        only_a=only[0],
        only_b=only[1],
        notes=(*standing_caveats(*sides, found, differences), *untimed),
    )


def _points(a: Side, b: Side) -> tuple[list[Pair], tuple[Difference, ...], tuple[tuple[str, ...], tuple[str, ...]]]:
    """The points that two studies have in common, the settings that set them apart, and the points left over."""
    from paceline.analyze.changes.changes import RUNS, STEPS, Pair
    from paceline.analyze.changes.matching import matching
    from paceline.analyze.changes.spent import middle
    from paceline.records.study import point_label

    matched = matching(a.points, b.points)
    if not matched.pairs:
        raise _nothing_in_common(a, b)
    apart = {difference.name for difference in matched.apart}
    vary = [path for path in dict.fromkeys((*a.vary, *b.vary)) if path not in apart]
    pairs = []
    for first, second in matched.pairs:
        runs = (a.runs_of(first), b.runs_of(second))
        by_step = bool(min(map(len, runs)) == 1)
        if by_step:
            # One run against several: their middle one stands for them.
            runs = tuple((own[middle([run.result for run in own if run.result])],) for own in runs)
        pairs.append(
            Pair(
                label=point_label(first, vary),
                a=first.point_id,
                b=second.point_id,
                over=STEPS if by_step else RUNS,
                a_runs=_spent(runs[0], by_step=by_step),
                b_runs=_spent(runs[1], by_step=by_step),
                notes=_shared_cores((*runs[0], *runs[1])),
            )
        )
    left = (_labels(matched.only_a, a.vary), _labels(matched.only_b, b.vary))
    return pairs, matched.apart, left


def _runs(a: Side, b: Side) -> tuple[list[Pair], tuple[Difference, ...]]:
    """Two single runs, and the settings in which they differ, as far as they say them."""
    from paceline.analyze.changes.changes import STEPS, Pair
    from paceline.analyze.changes.matching import settings_apart

    runs = [side.runs[0] for side in (a, b)]
    told = [_settings(run) for run in runs]
    if not all(run.manifest for run in runs):
        # What only one side says is no difference: of ranks that another program started little is known.
        told = [{name: value for name, value in each.items() if all(name in other for other in told)} for each in told]
    apart = settings_apart(told[:1], told[1:])
    label = counted(runs[0].ranks, "rank") + (f" against {runs[1].ranks}" if runs[0].ranks != runs[1].ranks else "")
    pair = Pair(
        label=label,
        a=str(runs[0].folder.path),
        b=str(runs[1].folder.path),
        over=STEPS,
        a_runs=_spent(runs[:1], by_step=True),
        b_runs=_spent(runs[1:], by_step=True),
        notes=_shared_cores(runs),
    )
    return [pair], apart


def _spent(runs: Sequence[SideRun], *, by_step: bool) -> tuple[Spent, ...]:
    """What each of the runs spent: their spans are read here, one run after the other."""
    from paceline.analyze.changes.spent import spent, without_spans
    from paceline.records.run_trace import read_run

    found = []
    for run in runs:
        try:
            trace = read_run(run.folder)
            found.append(spent(trace, run.result, by_step=by_step, samples_per_step=run.samples_per_step))
        except PacelineError as error:
            if run.result is None or by_step:
                raise
            found.append(without_spans(run.result, error.what))
    return tuple(found)


def _surroundings(a: Side, b: Side) -> tuple[Difference, ...]:
    """How the machines, the versions and the commits differ."""
    from paceline.analyze.changes.matching import commits_apart, machines_apart

    return (*machines_apart(a.machine, b.machine), *commits_apart(a.commit, b.commit))


def _compared(side: Side) -> Compared:
    from paceline.records.changes import Compared

    launched = sorted(run.manifest.launched_at for run in side.runs if run.manifest)
    return Compared(
        name=str(side.folder),
        what=side.what,
        runs=len(side.runs),
        first_at=launched[0] if launched else None,
        last_at=launched[-1] if launched else None,
    )


def _settings(run: SideRun) -> Settings:
    """The settings of a run; where nobody wrote them down, its ranks and its script."""
    from paceline.analyze.changes.matching import RANKS, settings

    if run.manifest is not None:
        return settings(run.manifest.point)
    known: dict[str, object] = {RANKS: run.ranks}
    if run.scripts:
        known |= {"script.path": Path(run.scripts[0].script).name, "script.arguments": run.scripts[0].arguments}
    return known


def _shared_cores(runs: Sequence[SideRun]) -> tuple[str, ...]:
    if not any(run.result and run.result.oversubscribed for run in runs):
        return ()
    return ("There were more threads than cores: the figures are about how they took turns.",)


def _labels(points: Sequence[Point], vary: Sequence[str]) -> tuple[str, ...]:
    from paceline.records.study import point_label

    return tuple(point_label(point, vary) for point in points)


def _nothing_in_common(a: Side, b: Side) -> RequestError:
    labels = ["; ".join(_labels(side.points, side.vary)) for side in (a, b)]
    return RequestError(
        f"{a.folder} and {b.folder} have no point in common: A has {labels[0]}; B has {labels[1]}.",
        right="Points are compared that agree in ranks, and in all settings but those that set the studies apart.",
        next=f"Run a point of A in B, too: paceline study {b.folder / 'study.toml'} --ranks {a.points[0].ranks}",
    )


def _unlike(a: Side, b: Side) -> RequestError:
    run, study = (a, b) if a.what == "run" else (b, a)
    return RequestError(
        f"{run.folder} is one run, and {study.folder} a study of {counted(len(study.runs), 'run')}.",
        right="Two studies are compared, or two runs.",
        next=f"The runs of the study are in {study.folder / 'points'}: choose one of them.",
    )
