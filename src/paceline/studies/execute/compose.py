"""The records of one run: the manifest before it, the result after it, the error if its ranks refuse to start."""

from __future__ import annotations

import functools
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from paceline import units
from paceline.errors import RankError, RunError
from paceline.identity import versions
from paceline.launch import machine
from paceline.launch.launcher import Outcome, Placement
from paceline.records import process_roles
from paceline.records.allocation import AllocationCheck
from paceline.records.run import CachedFeatures, Epoch, Job, Manifest, RankReport, RunResult, ScriptFigures
from paceline.records.study import Run, Study
from paceline.storage.codec import optional_record, write_record
from paceline.storage.folder import RunFolder
from paceline.studies.load.scripts import script_figures

_Value = TypeVar("_Value", int, float)


def new_manifest(
    run: Run,
    *,
    study: Study,
    data_folder: Path | None,
    model_file: Path | None,
    placement: Placement,
    attempt: int,
    force: bool = False,
) -> Manifest:
    """The manifest of a run, with the current time as its launch."""
    return Manifest(
        study=study.name,
        point_id=run.point.point_id,
        point=run.point,
        run=run.number,
        seed=run.seed,
        data_folder="" if data_folder is None else str(data_folder.absolute()),
        model_file=None if model_file is None else str(model_file),
        cores=placement.cores,
        placement=placement.text,
        launched_at_ns=time.monotonic_ns(),
        launched_at=now(),
        attempt=attempt,
        versions=versions(),
        commit=commit(),
        launch=study.launch,
        force=force,
        oversubscribed=placement.oversubscribed,
    )


def run_result(
    manifest: Manifest,
    outcome: Outcome,
    *,
    oversubscribed: bool,
    emulated: bool = False,
    queue_s: float | None = None,
    classes: int | None = None,
) -> RunResult:
    """The result of a run from the reports of its ranks; RankError if they are inconsistent."""
    reports = sorted(outcome.reports, key=lambda report: report.rank)
    ranks = _complete(manifest, reports)
    first, script = ranks[0], manifest.point.script is not None
    training = first.training
    wall_s = units.seconds(outcome.ended_at_ns - outcome.started_at_ns)
    return RunResult(
        point_id=manifest.point_id,
        run=manifest.run,
        seed=manifest.seed,
        ranks=manifest.point.ranks,
        attempt=manifest.attempt,
        launched_at=manifest.launched_at,
        launched_at_ns=outcome.started_at_ns,
        total_s=wall_s if training.resumed_from_step is None else None,
        wall_s=wall_s,
        epochs=tuple(_slowest(lines) for lines in zip(*(report.training.epochs for report in ranks), strict=True)),
        test_loss=training.test_loss,
        test_accuracy=training.test_accuracy,
        parameters=first.parameters,
        load_s=_most(report.training.load_s for report in ranks),
        read_bytes=_most(report.training.read_bytes for report in ranks),
        steps=min(report.steps for report in ranks),
        weights_sha256=training.weights_sha256,
        oversubscribed=oversubscribed,
        emulated=emulated,
        queue_s=queue_s,
        classes=classes,
        device=first.device.split(":")[0],
        staleness_max=max((len(report.staleness) - 1 for report in reports if report.staleness), default=None),
        resumed_from_step=training.resumed_from_step,
        resume_note=training.resume_note,
        noise=training.noise,
        phases=training.phases,
        network=training.network,
        features=max(filter(None, (report.training.features for report in ranks)), key=_ready_s, default=None),
        script=script_figures(ranks) if script else ScriptFigures(),
    )


def _most(values: Iterable[_Value | None]) -> _Value | None:
    """The largest value that is not None."""
    return max((value for value in values if value is not None), default=None)


def _ready_s(features: CachedFeatures) -> float:
    return features.ready_s


def _complete(manifest: Manifest, reports: Sequence[RankReport]) -> list[RankReport]:
    """The reports of the training ranks; RankError if a report is incomplete, or if replicas differ."""
    point = manifest.point
    if [report.rank for report in reports] != list(range(point.processes)):
        found = ", ".join(str(report.rank) for report in reports) or "none"
        kind = "processes" if point.servers else "ranks"
        raise _doubtful(manifest, f"{point.processes} {kind} were started, but reports came from: {found}.")
    ranks, first = list(reports[: point.ranks]), reports[0]
    for report in reports[point.ranks :]:
        if report.status != "done":
            raise _doubtful(manifest, f"{process_roles.title(point, report.rank)} ended without a complete report.")
    for report in ranks:
        own = report.training
        wanted = (own.test_loss, own.test_accuracy, report.parameters, own.load_s, own.weights_sha256)
        if report.status != "done" or (point.script is None and None in wanted):
            raise _doubtful(manifest, f"Rank {report.rank} ended without a complete report.")
        if point.script is not None:
            continue  # ranks of a script may do different things
        replica = ranks[point.layout.replicas(report.rank)[0]]
        if own.weights_sha256 != replica.training.weights_sha256:
            raise _doubtful(manifest, f"Rank {report.rank} ended with other weights than rank {replica.rank}.")
        if (report.steps, _numbers(report)) != (first.steps, _numbers(first)):
            raise _doubtful(manifest, f"Rank {report.rank} took {report.steps} steps, rank 0 took {first.steps}.")
    return ranks


def _numbers(report: RankReport) -> list[int]:
    """The epochs that a rank has finished."""
    return [line.epoch for line in report.training.epochs]


def _doubtful(manifest: Manifest, what: str) -> RankError:
    return RankError(
        f"{what} (run {manifest.run} of {manifest.point_id})",
        right="All ranks of a run have to end with the same weights after the same steps: no result was kept.",
        next="Run it again with --set run.strategy=flat; if that helps, the strategy or the model is at fault "
        "(a model that draws its weights without torch's seed, for instance).",
    )


def _slowest(lines: Sequence[Epoch]) -> Epoch:
    """Rank 0's record of an epoch with the times of the slowest rank."""
    return replace(
        lines[0],
        epoch_s=max(line.epoch_s for line in lines),
        evaluate_s=max(line.evaluate_s for line in lines),
        resumed=any(line.resumed for line in lines),
    )


def refused(folder: RunFolder) -> RunError | None:
    """The error of a run that the preflight check refused, with `machine.json` written; None if it did not refuse."""
    check = machine.allocation_record(folder)
    if check is None or not check.refused:
        return None
    write_record(folder.machine, machine.machine((), check))
    fatal = [complaint for complaint in check.complaints if complaint.severity == "fatal"]
    right, remedies = (dict.fromkeys(texts) for texts in zip(*((f.right, f.next) for f in fatal), strict=True))
    return RunError(
        "\n".join(complaint.what for complaint in fatal),
        right=" ".join(right),
        next=" ".join(remedies) + " To measure all the same, with this on record: --force.",
    )


def shares_cores(check: AllocationCheck | None) -> bool:
    """Whether the preflight check found threads that share cores: such runs are excluded from fits."""
    return _complains(check, "more-threads-than-cores", "threads-beyond-affinity", "ranks-share-cores")


def emulated(check: AllocationCheck | None) -> bool:
    """Whether the preflight check found that several hosts are one machine."""
    return _complains(check, "emulated-hosts")


def _complains(check: AllocationCheck | None, *names: str) -> bool:
    return check is not None and any(complaint.name in names for complaint in check.complaints)


def queue_s(folder: RunFolder, manifest: Manifest) -> float | None:
    """Seconds that the job of this attempt waited in the queue; None without a job."""
    job = optional_record(folder.job, Job)
    return job.queue_s if job is not None and job.launched_at_ns == manifest.launched_at_ns else None


def now() -> str:
    """The wall-clock time, ISO 8601 with its zone."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


@functools.cache
def commit() -> str | None:
    """The commit of Paceline's checkout, with `-dirty` if files were changed; None if it is installed."""
    checkout = Path(__file__).parents[4]
    if not (checkout / ".git").exists():  # a file in a worktree
        return None
    command = ("git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
