"""Runs that had to give way, and runs whose ranks went on without their study."""

from dataclasses import replace
from pathlib import Path

import pytest
from study_help import FakeLauncher, loaded

from paceline.launch.launcher import Interrupted
from paceline.records.run import Job, Manifest, RunResult
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.studies.execute.events import Note, RunFailed, RunStarted
from paceline.studies.execute.execute import execute


class Queue(FakeLauncher):
    """A launcher whose jobs outlive their study; `script` says what becomes of each attempt at a run."""

    def __init__(self, *script, left=None):
        super().__init__(before=self._next)
        self.script = list(script)
        self.left: Manifest | None = left
        self.ended: list[RunFolder] = []

    def _next(self, manifest):
        step = self.script.pop(0) if self.script else "done"
        if step != "done":
            raise Interrupted("It had to give way.", step=step)

    def pending(self, folder):
        if self.left is None or not folder.manifest.exists():
            return None
        found = read_record(folder.manifest, Manifest)
        return found if found == self.left else None


@pytest.fixture
def go(tmp_path):
    def run(launcher, **options):
        events = []
        study = loaded(tmp_path, "run.ranks=[1]", "run.repeats=1")
        done = execute(
            study,
            tmp_path / "out",
            events=events.append,
            launcher=launcher,
            preflight=False,
            cache=tmp_path / "cache",
            **options,
        )
        return done, events

    return run


def folder_of(path: Path) -> RunFolder:
    return RunFolder(next(path.glob("out/points/*/runs/1")))


def test_a_run_that_gave_way_is_tried_again_as_long_as_it_gets_further(go, tmp_path):
    launcher = Queue(None, None, 10, 20, 20, 20, 30)
    done, events = go(launcher)
    assert done.failures == {} and done.ran == 1
    assert [manifest.attempt for manifest in launcher.manifests] == list(range(1, 9))
    assert len({manifest.launched_at_ns for manifest in launcher.manifests}) == 8
    assert read_record(folder_of(tmp_path).result, RunResult).attempt == 8
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes[0] == "It had to give way. Attempt 2 follows." and len(notes) == 7
    assert len([event for event in events if isinstance(event, RunStarted)]) == 1


def test_a_run_that_never_gets_further_fails_in_the_end(go):
    launcher = Queue(None, 10, None, 10, 10, 10)
    done, events = go(launcher)
    assert len(launcher.manifests) == 5
    assert list(done.failures.values()) == ["It had to give way."]
    assert [event.message for event in events if isinstance(event, RunFailed)] == ["It had to give way."]


def test_ranks_that_went_on_are_taken_over_as_the_attempt_that_they_are(go, tmp_path):
    class Killed(BaseException):
        pass

    class Dies(Queue):
        def run(self, folder, manifest, **options):
            self.left = manifest
            raise Killed

    first = Dies()
    with pytest.raises(Killed):
        go(first)
    folder = folder_of(tmp_path)
    half_written = folder.path / ".curves.csv.1-ab.tmp"
    half_written.touch()
    write_record(
        folder.job, Job(scheduler="slurm", name="x", launched_at_ns=first.left.launched_at_ns, job_id="7", queue_s=12.0)
    )
    second = Queue(left=first.left)
    done, events = go(second)
    assert done.ran == 1
    assert second.manifests == [first.left], "told nothing new"
    assert half_written.exists(), "what running ranks are writing is theirs"
    result = read_record(folder.result, RunResult)
    assert (result.attempt, result.queue_s) == (1, 12.0)
    assert [event.attempt for event in events if isinstance(event, RunStarted)] == [1]


def test_the_time_in_the_queue_of_another_attempt_is_not_taken_for_this_ones(go, tmp_path):
    class Writes(Queue):
        def run(self, folder, manifest, **options):
            write_record(folder.job, Job(scheduler="slurm", name="x", launched_at_ns=1, queue_s=12.0))
            return super().run(folder, manifest, **options)

    go(Writes())
    assert read_record(folder_of(tmp_path).result, RunResult).queue_s is None


def test_a_fresh_study_ends_the_jobs_of_the_old_one(go, tmp_path, monkeypatch):
    from paceline.launch.slurm.slurm_launcher import SlurmLauncher

    go(Queue())
    folder = folder_of(tmp_path)
    manifest = read_record(folder.manifest, Manifest)
    write_record(folder.manifest, replace(manifest, point=replace(manifest.point, launcher="slurm")))
    write_record(folder.job, Job(scheduler="slurm", name="x", launched_at_ns=manifest.launched_at_ns, job_id="7"))
    ended = []
    monkeypatch.setattr(SlurmLauncher, "cancel", lambda self, folder: ended.append(folder))
    go(Queue(), fresh=True)
    assert ended == [folder]
    assert StudyFolder(tmp_path / "out.old-1").study.exists()
