"""Watcher of a folder: a study, or a single run, also of ranks that another program started."""

from __future__ import annotations

import shlex
from pathlib import Path

from paceline.records.live_study import FAILED, FINISHED, RUNNING, SILENT, STOPPED, RunLook, StudyLook
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.studies.folder import bookkeeping
from paceline.studies.folder.watched_run import RunWatcher
from paceline.studies.folder.watching import StudyWatcher, no_study


class SingleWatcher:
    """Polls the folder of one run."""

    def __init__(self, folder: Path) -> None:
        self._folder = RunFolder(folder)
        self._run = RunWatcher(self._folder)
        self._study = folder.absolute().parents[3] if len(folder.absolute().parents) > 3 else folder

    def look(self, *, whole: bool = False) -> StudyLook:
        """The current state of the run."""
        run = self._run.look()
        state, told = self._state(run)
        following = shlex.join(["paceline", "trace", str(self._folder.path)])
        path = str(self._folder.path)
        return StudyLook(folder=path, name=path, state=state, told=told, run=run, next=following)

    def _state(self, run: RunLook) -> tuple[str, str]:
        if self._folder.result.exists():
            return FINISHED, "The run is finished."
        failure = bookkeeping.failure_of(self._folder)
        if failure is not None:
            return FAILED, f"The run has failed: {failure.message}"
        ended = [rank.ended for rank in run.ranks if rank.ended]
        if run.ranks and len(ended) == len(run.ranks):
            bad = [f"rank {rank.rank} {rank.ended}" for rank in run.ranks if rank.ended != "done"]
            return (
                (FAILED, f"Its ranks have ended: {'; '.join(bad[:4])}.") if bad else (FINISHED, "Its ranks are done.")
            )
        if bookkeeping.is_study(self._study):
            study = StudyWatcher(self._study).look()
            if study.state not in (RUNNING, SILENT):
                return (STOPPED if study.state == FINISHED else study.state), study.told
        return RUNNING, "Its ranks have not ended."


def watcher(folder: Path) -> StudyWatcher | SingleWatcher:
    """The watcher of a folder; FolderError if it has neither a study nor a run."""
    if bookkeeping.is_study(folder) or StudyFolder(folder).points_file.is_file():
        return StudyWatcher(folder)
    place = RunFolder(folder)
    if place.spans.is_dir() or place.ranks.is_dir() or place.manifest.is_file():
        return SingleWatcher(folder)
    raise no_study(folder, None)
