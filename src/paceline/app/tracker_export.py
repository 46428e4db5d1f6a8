"""Export of finished runs to experiment trackers: TensorBoard and MLflow."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.app.shown import NOTEBOOK_WIDTH, ShownText
from paceline.errors import FolderError, RequestError
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.units import counted

if TYPE_CHECKING:
    from paceline.reporting.export.tracked import TrackedRun
    from paceline.studies.folder.collect import FinishedRun

TRACKERS = {"tensorboard": "tensorboard", "mlflow": "mlruns"}
"""Format -> default output folder."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrackedExport(ShownText):
    """Finished runs of a study, written for an experiment tracker."""

    folder: str
    format: str
    target: Path
    study: str
    runs: tuple[str, ...]
    """The files or run ids in the tracker."""
    chosen: str = ""
    problems: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        return f"{self.format}, {self.target}"

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """The written runs, and how to open them, as text."""
        opening = _opening(self.format, self.target)
        return f"Wrote {counted(len(self.runs), 'run')} of {self.study} into {self.target}.\n{opening}"

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`."""
        return {"folder": self.folder, "format": self.format, "out": str(self.target), "runs": list(self.runs)}


def export_runs(
    folder: Path, format: str, out: Path | None, point: str | None, run: int | None, *, force: bool
) -> TrackedExport:
    """Write every finished run of a study, or those of one point, or one run, for an experiment tracker."""
    found = _chosen(folder, point, run)
    target = out or Path(TRACKERS[format])
    if target.exists() and not target.is_dir():
        raise FolderError(
            f"{target} is a file.",
            right="Runs are written into a folder.",
            next="Use a folder as output, with --out DIR.",
        )
    write = _to_tensorboard if format == "tensorboard" else _to_mlflow
    names = write(target, found, force=force)
    return TrackedExport(folder=str(folder), format=format, target=target, study=found[0][0].study, runs=tuple(names))


def _chosen(folder: Path, point: str | None, number: int | None) -> list[tuple[TrackedRun, RunFolder]]:
    """The selected finished runs."""
    from paceline.records.study import point_label
    from paceline.reporting.export.tracked import tracked_run
    from paceline.studies.folder.collect import collect

    if RunFolder(folder).result.is_file():
        return [_single(RunFolder(folder))]
    study = collect(folder)
    points = {each.point_id: each for each in study.points}
    labels = {point_id: point_label(each, study.study.vary) for point_id, each in points.items()}
    runs = [run for run in study.runs if _wanted(run, labels[run.result.point_id], point, number)]
    if not runs:
        which = "" if point is None and number is None else " that matches the selected point and run"
        command = shlex.join(("paceline", "study", str(StudyFolder(folder).study), "--out", str(folder)))
        raise RequestError(
            f"{folder} has no finished run{which}.",
            right=f"Points: {', '.join(points)}.",
            next=f"Continue it: {command}",
        )
    found = []
    for run in runs:
        point_id = run.result.point_id
        tracked = tracked_run(study.study.name, labels[point_id], points[point_id], run.result, run.manifest.commit)
        found.append((tracked, run.folder))
    return found


def _single(folder: RunFolder) -> tuple[TrackedRun, RunFolder]:
    """One run, from its run folder."""
    from paceline.records.run import Manifest, RunResult
    from paceline.records.study import point_label
    from paceline.reporting.export.tracked import tracked_run
    from paceline.storage.codec import read_record

    manifest, result = read_record(folder.manifest, Manifest), read_record(folder.result, RunResult)
    label = point_label(manifest.point, ("run.strategy",))
    return tracked_run(manifest.study, label, manifest.point, result, manifest.commit), folder


def _wanted(run: FinishedRun, label: str, point: str | None, number: int | None) -> bool:
    named = point is None or run.result.point_id.startswith(point) or label == point
    return named and number in (None, run.result.run)


def _to_tensorboard(target: Path, runs: list[tuple[TrackedRun, RunFolder]], *, force: bool) -> list[str]:
    from paceline.reporting.export.tensorboard import earlier_files, event_file, write_events
    from paceline.storage.codec import whole_file

    earlier = earlier_files(target, [run for run, _ in runs])
    _refuse(target, len(earlier), force=force)
    written = []
    for run, _ in runs:
        path = event_file(target, run)
        with whole_file(path) as file:
            write_events(run, file)
        written.append(path)
    for path in earlier:
        if path not in written:
            path.unlink()
    return [str(path) for path in written]


def _to_mlflow(target: Path, runs: list[tuple[TrackedRun, RunFolder]], *, force: bool) -> list[str]:
    from paceline.reporting.export.mlflow import earlier_runs, log_run, remove_runs, store

    with store(target) as client:
        earlier = earlier_runs(client, [run for run, _ in runs])
        _refuse(target, len(earlier), force=force)
        written = [
            log_run(client, run, (place.manifest, place.machine, place.result, place.curves)) for run, place in runs
        ]
        remove_runs(client, earlier)
    return written


def _refuse(target: Path, existing: int, *, force: bool) -> None:
    """Raise FolderError if runs of this study were exported before: they would appear twice."""
    if existing and not force:
        raise FolderError(
            f"{target} already has {counted(existing, 'run')} of this study.",
            right="An export does not replace runs unless it is forced.",
            next="Use another folder (--out DIR), or replace them (--force; in Python: force=True).",
        )


def _opening(format: str, target: Path) -> str:
    place = shlex.quote(str(target))
    if format == "tensorboard":
        return f"Next    See them in a browser.\n        tensorboard --logdir {place}"
    return (
        "Next    See them in a browser, with MLflow itself installed.\n"
        f"        MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {place}"
    )
