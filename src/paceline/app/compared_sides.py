"""The comparison of folders with the first one: read the sides, match their points, test the changes.

A  ─┬─ B   points that agree in all settings that A and B share ─▶ changes ─┐
    └─ C   points that agree in all settings that A and C share ─▶ changes ─┴─▶ tested as one family
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import PacelineError, RequestError
from paceline.units import counted

if TYPE_CHECKING:
    from paceline.analyze.compare.point_matching import Settings
    from paceline.analyze.compare.side_changes import Pair
    from paceline.analyze.compare.spent import RunCosts
    from paceline.records.changes import Change, Changes, Compared, Comparison, Difference, SideFigures
    from paceline.records.study import Point
    from paceline.studies.folder.compared_side import Side, SideRun

LETTERS = "ABCDEFGHIJKL"
"""Names of the sides; more would not fit in a table."""


@dataclass(slots=True, kw_only=True)
class _Versus:
    """A side that is compared with A."""

    letter: str
    side: Side
    matched: list[_Matched]
    apart: tuple[Difference, ...] = ()
    only: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    refusal: RequestError | None = None
    """Why it cannot be compared with A; None if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matched:
    """A pair of points, and the runs of both."""

    pair: Pair
    runs: tuple[tuple[SideRun, ...], tuple[SideRun, ...]]


def compared(folders: Sequence[Path]) -> Comparison:
    """The changes from the first folder to each of the others; RequestError if nothing can be compared.

    With three or more folders, one that cannot be compared with the first gets a note.
    """
    from paceline.analyze.compare.side_changes import changes_of_sides
    from paceline.analyze.compare.side_figures import joined_figures
    from paceline.records.changes import Comparison
    from paceline.studies.folder.compared_side import read_side

    first, *others = (read_side(folder) for folder in folders)
    reader = _Reader()
    found = [_versus(first, side, letter, reader) for letter, side in zip(LETTERS[1:], others, strict=False)]
    refusals = [each.refusal for each in found if each.refusal is not None]
    if len(refusals) == len(found):
        raise refusals[0]
    tested = changes_of_sides([[matched.pair for matched in each.matched] for each in found])
    figures: list[SideFigures] = []
    against = []
    for each, (own, untimed) in zip(found, tested, strict=True):
        against.append(_changes(first, each, own, untimed))
        figures += _figures(each, own)
    return Comparison(against=tuple(against), figures=joined_figures(figures))


def _versus(first: Side, other: Side, letter: str, reader: _Reader) -> _Versus:
    """A side with its points matched to those of A."""
    from paceline.studies.folder.compared_side import STUDY

    found = _Versus(letter=letter, side=other, matched=[])
    try:
        if first.single and other.single:
            found.matched, found.apart = _runs(first, other, reader)
        elif first.what == other.what == STUDY:
            found.matched, found.apart, found.only = _points(first, other, letter, reader)
        else:
            raise _unlike(first, other)
    except RequestError as error:
        found.refusal = error
    found.matched = [replace(each, pair=replace(each.pair, letter=letter)) for each in found.matched]
    return found


def _changes(first: Side, other: _Versus, own: tuple[Change, ...], untimed: tuple[str, ...]) -> Changes:
    from paceline.analyze.compare.caveats import standing_caveats
    from paceline.records.changes import Changes

    differences = (*other.apart, *_environment_differences(first, other.side))
    sides = (_compared(first), _compared(other.side))
    refused = (other.refusal.what,) if other.refusal else ()
    return Changes(
        a=sides[0],
        b=sides[1],
        letter=other.letter,
        differences=differences,
        changes=own,
        only_a=other.only[0],
        only_b=other.only[1],
        notes=(*refused, *standing_caveats(*sides, own, differences, other.letter), *untimed),
    )


def _figures(other: _Versus, own: Sequence[Change]) -> list[SideFigures]:
    """The figures of A and of the other side for every compared pair."""
    from paceline.analyze.compare.side_figures import side_figures

    by_pair = {(matched.pair.a, matched.pair.b): matched for matched in other.matched}
    figures = []
    for change in own:
        matched = by_pair[change.a, change.b]
        for letter, runs, spent in zip(
            ("A", other.letter), matched.runs, (matched.pair.a_runs, matched.pair.b_runs), strict=True
        ):
            results = [run.result for run in runs]
            figures.append(side_figures(letter, change, results, spent, first=letter == "A"))
    return figures


class _Reader:
    """Reads the spans of a run once, also if it is part of several comparisons."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, bool], RunCosts] = {}

    def spent(self, runs: Sequence[SideRun], *, by_step: bool) -> tuple[RunCosts, ...]:
        """The time of each run by kind of work."""
        return tuple(self._one(run, by_step=by_step) for run in runs)

    def _one(self, run: SideRun, *, by_step: bool) -> RunCosts:
        from paceline.analyze.compare.spent import costs_without_spans, run_costs
        from paceline.storage.run_trace import read_run

        key = (run.folder.path, by_step)
        if key not in self._known:
            try:
                trace = read_run(run.folder)
                found = run_costs(trace, run.result, by_step=by_step, samples_per_step=run.samples_per_step)
            except PacelineError as error:
                if run.result is None or by_step:
                    raise
                found = costs_without_spans(run.result, error.what)
            self._known[key] = found
        return self._known[key]


def _points(
    a: Side, b: Side, letter: str, reader: _Reader
) -> tuple[list[_Matched], tuple[Difference, ...], tuple[tuple[str, ...], tuple[str, ...]]]:
    """The matched points of two studies, the settings that differ, and the labels of unmatched points."""
    from paceline.analyze.compare.point_matching import matching
    from paceline.analyze.compare.side_changes import RUNS, STEPS, Pair
    from paceline.analyze.compare.spent import median_index
    from paceline.records.study import point_label

    matched = matching(a.points, b.points)
    if not matched.pairs:
        raise _nothing_in_common(a, b, letter)
    apart = {difference.name for difference in matched.apart}
    vary = [path for path in dict.fromkeys((*a.vary, *b.vary)) if path not in apart]
    pairs = []
    for first, second in matched.pairs:
        runs = (a.runs_of(first), b.runs_of(second))
        by_step = bool(min(map(len, runs)) == 1)
        if by_step:
            # One run against several: the median run represents them.
            runs = tuple((own[median_index([run.result for run in own if run.result])],) for own in runs)
        pair = Pair(
            label=point_label(first, vary),
            a=first.point_id,
            b=second.point_id,
            over=STEPS if by_step else RUNS,
            a_runs=reader.spent(runs[0], by_step=by_step),
            b_runs=reader.spent(runs[1], by_step=by_step),
            notes=_shared_cores((*runs[0], *runs[1])),
        )
        pairs.append(_Matched(pair=pair, runs=(runs[0], runs[1])))
    return pairs, matched.apart, (_labels(matched.only_a, a.vary), _labels(matched.only_b, b.vary))


def _runs(a: Side, b: Side, reader: _Reader) -> tuple[list[_Matched], tuple[Difference, ...]]:
    """Two single runs as one pair, and the recorded settings that differ."""
    from paceline.analyze.compare.point_matching import settings_apart
    from paceline.analyze.compare.side_changes import STEPS, Pair

    runs = [side.runs[0] for side in (a, b)]
    known = [_settings(run) for run in runs]
    if not all(run.manifest for run in runs):
        # Ranks that another program started record few settings: compare only those that both sides have.
        shared = known[0].keys() & known[1].keys()
        known = [{name: value for name, value in each.items() if name in shared} for each in known]
    apart = settings_apart(known[:1], known[1:])
    label = counted(runs[0].ranks, "rank") + (f" against {runs[1].ranks}" if runs[0].ranks != runs[1].ranks else "")
    pair = Pair(
        label=label,
        a=str(runs[0].folder.path),
        b=str(runs[1].folder.path),
        over=STEPS,
        a_runs=reader.spent(runs[:1], by_step=True),
        b_runs=reader.spent(runs[1:], by_step=True),
        notes=_shared_cores(runs),
    )
    return [_Matched(pair=pair, runs=((runs[0],), (runs[1],)))], apart


def _environment_differences(a: Side, b: Side) -> tuple[Difference, ...]:
    """Differences of machines, versions and commits."""
    from paceline.analyze.compare.point_matching import commits_apart, machines_apart

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
    """The settings of a run; without a manifest, its ranks and its script."""
    from paceline.analyze.compare.point_matching import RANKS, settings

    if run.manifest is not None:
        return settings(run.manifest.point)
    known: dict[str, object] = {RANKS: run.ranks}
    if run.scripts:
        known |= {"script.path": Path(run.scripts[0].script).name, "script.arguments": run.scripts[0].arguments}
    return known


def _shared_cores(runs: Sequence[SideRun]) -> tuple[str, ...]:
    if not any(run.result and run.result.oversubscribed for run in runs):
        return ()
    return ("There were more threads than cores: the times depend on the scheduling of the operating system.",)


def _labels(points: Sequence[Point], vary: Sequence[str]) -> tuple[str, ...]:
    from paceline.records.study import point_label

    return tuple(point_label(point, vary) for point in points)


def _nothing_in_common(a: Side, b: Side, letter: str) -> RequestError:
    labels = ["; ".join(_labels(side.points, side.vary)) for side in (a, b)]
    return RequestError(
        f"{a.folder} and {b.folder} have no matching points: A has {labels[0]}; {letter} has {labels[1]}.",
        right="Points match if they have the same ranks and agree in all settings that both studies share.",
        next=f"Also run a point of A in {letter}: paceline study {b.folder / 'study.toml'} --ranks {a.points[0].ranks}",
    )


def _unlike(a: Side, b: Side) -> RequestError:
    run, study = (a, b) if a.what == "run" else (b, a)
    return RequestError(
        f"{run.folder} is one run, but {study.folder} is a study of {counted(len(study.runs), 'run')}.",
        right="Compare studies with studies, or runs with runs.",
        next=f"The runs of the study are in {study.folder / 'points'}: choose one of them.",
    )
