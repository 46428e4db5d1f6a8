"""The run of a folder: the folder of one run, or a run of a study, by default the median run with the most ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import FolderError, RequestError, StorageError
from paceline.storage.folder import RunFolder, StudyFolder

if TYPE_CHECKING:
    from paceline.records.run import RunResult
    from paceline.records.trace_summary import RunTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traced:
    """A run of a study that has spans."""

    point_id: str
    label: str
    processes: int
    number: int
    folder: RunFolder
    result: RunResult | None
    """None if it is not finished."""


def read_chosen(folder: Path, point: str | None, run: int | None) -> tuple[RunTrace, str]:
    """The spans of the selected run, and a text about the selection; empty if the run was named."""
    from paceline.storage.run_trace import read_run

    chosen, why = chosen_run(folder.expanduser(), point, run)
    found = read_run(chosen)
    if not found.traces:
        raise StorageError(
            f"No spans in {chosen.spans} can be read.",
            right="\n".join(found.problems),
            next="Run it again with `paceline run` or `paceline study`.",
        )
    return found, why


def chosen_run(folder: Path, point: str | None, run: int | None) -> tuple[RunFolder, str]:
    """The folder of the selected run, and a text about the selection; an error if there is none."""
    if RunFolder(folder).spans.is_dir():
        if point is not None or run is not None:
            raise RequestError(
                f"{folder} is the folder of one run: a point and a run can only be selected in a study folder.",
                next=f"Leave them out: paceline trace {folder}",
            )
        return RunFolder(folder), ""
    if not StudyFolder(folder).study.is_file():
        what = f"{folder} is neither a run folder nor a study folder."
        raise FolderError(
            what if folder.exists() else f"There is no folder {folder}.",
            right="A run folder has spans/ in it, a study folder has study.toml.",
            next="`paceline run` and `paceline study` create such folders.",
        )
    runs = _traced(folder)
    found = _of_run(_of_point(runs, point), run)
    named = point is not None and run is not None
    return found.folder, "" if named else _selection_text(found, runs, median=run is None)


def _traced(folder: Path) -> list[_Traced]:
    """The runs of a study that have spans, by point."""
    from paceline.records.study import point_label
    from paceline.studies.folder.collect import collect

    study = collect(folder)
    finished = {(run.result.point_id, run.result.run): run.result for run in study.runs}
    runs = [
        _Traced(
            point_id=point.point_id,
            label=point_label(point, study.study.vary),
            processes=point.ranks + point.servers,
            number=number,
            folder=place,
            result=finished.get((point.point_id, number)),
        )
        for point in study.points
        for number in range(1, study.study.run.repeats + 1)
        if (place := StudyFolder(folder).run(point.point_id, number)).spans.is_dir()
    ]
    if not runs:
        raise FolderError(
            f"No run of the study in {folder} has spans.",
            right="A run records spans while it trains.",
            next=f"Continue it: paceline study {StudyFolder(folder).study} --out {folder}",
        )
    return runs


def _of_point(runs: Sequence[_Traced], name: str | None) -> list[_Traced]:
    """The runs of the point with this name; without a name, of the point with the most ranks, finished ones first."""
    if name is None:
        widest = max(runs, key=lambda run: (run.result is not None, run.processes))
        return [run for run in runs if run.point_id == widest.point_id]
    exact = [run for run in runs if name in (run.point_id, run.label)]
    found = exact or [run for run in runs if run.point_id.startswith(name)]
    points = dict.fromkeys(run.point_id for run in found)
    if len(points) == 1:
        return found
    what = f"The point {name!r} is ambiguous: {' or '.join(points)}." if points else f"No point {name!r} has spans."
    raise RequestError(
        what,
        right=f"Points: {', '.join(dict.fromkeys(run.point_id for run in runs))}.",
        next=f"For example: --point {runs[0].point_id}, or point={runs[0].point_id!r} in Python.",
    )


def _of_run(runs: Sequence[_Traced], number: int | None) -> _Traced:
    """The run with this number; without one, the median of the finished runs, or the last run."""
    from paceline.analyze.points.median_run import median_result

    if number is None:
        median = median_result([run.result for run in runs if run.result is not None])
        return next((run for run in runs if median is not None and run.number == median.run), runs[-1])
    found = next((run for run in runs if run.number == number), None)
    if found is None:
        raise RequestError(
            f"{runs[0].point_id} has no run {number} with spans.",
            right=f"Runs: {', '.join(str(run.number) for run in runs)}.",
            next=f"For example: --run {runs[0].number}, or run={runs[0].number} in Python.",
        )
    return found


def _selection_text(taken: _Traced, runs: Sequence[_Traced], *, median: bool) -> str:
    """The selected run, the reason, and the other runs."""
    numbers: dict[str, list[str]] = {}
    for run in runs:
        if run is not taken:
            numbers.setdefault(f"{run.point_id} ({run.label})", []).append(str(run.number))
    finished = sum(run.point_id == taken.point_id and run.result is not None for run in runs)
    why = f", the median of {finished} by speed" if median and finished > 1 else ""
    state = why if taken.result is not None else ", which is not finished"
    lines = [f"This is run {taken.number} of {taken.point_id} ({taken.label}){state}."]
    if numbers:
        lines.append("Select another run with --point and --run (in Python: point=, run=):")
        lines += [f"  {point}: run {', '.join(found)}" for point, found in numbers.items()]
    return "\n".join(lines)
