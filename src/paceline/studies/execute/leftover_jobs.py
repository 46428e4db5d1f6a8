"""Jobs that a study has left with a scheduler: what they waited, and their end where nobody wants them any more."""

from __future__ import annotations

from paceline import catalog
from paceline.errors import StorageError
from paceline.launch.launcher import Launcher
from paceline.records.run import Job, Manifest
from paceline.storage.codec import read_record
from paceline.storage.folder import RunFolder, StudyFolder


def queue_s(folder: RunFolder, manifest: Manifest) -> float | None:
    """Seconds that the job of this attempt waited in the queue; None where there was none."""
    try:
        job = read_record(folder.job, Job) if folder.job.exists() else None
    except StorageError:
        return None
    return job.queue_s if job is not None and job.launched_at_ns == manifest.launched_at_ns else None


def end_jobs(folder: StudyFolder) -> None:
    """End every job that still runs or waits for a run of this study."""
    for path in sorted(folder.path.glob("points/*/runs/*/job.json")):
        run = RunFolder(path.parent)
        try:
            manifest = read_record(run.manifest, Manifest)
        except StorageError:
            continue
        launcher: Launcher = catalog.load("launcher", manifest.point.launcher)(settings=manifest.launch)
        launcher.cancel(run)
