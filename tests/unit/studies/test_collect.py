import os
import stat
from pathlib import Path

import pytest
from study_help import FakeLauncher, failing_at, loaded

from paceline.errors import FolderError, StorageError
from paceline.studies.execute.execute import execute
from paceline.studies.folder.collect import collect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def go(tmp_path: Path, folder: Path):
    def run(launcher: FakeLauncher, *overrides: str) -> None:
        execute(loaded(tmp_path, *overrides), folder, launcher=launcher, preflight=False, cache=tmp_path / "cache")

    return run


def test_a_folder_tells_everything_alone(go, folder: Path, tmp_path: Path) -> None:
    go(FakeLauncher())
    study = loaded(tmp_path).study
    (tmp_path / "tiny.toml").unlink()
    elsewhere = folder.rename(tmp_path / "moved")
    found = collect(elsewhere)
    assert found.study == study
    assert [point.ranks for point in found.points] == [1, 2]
    assert [(run.result.ranks, run.result.run) for run in found.runs] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert all(run.manifest.point_id == run.result.point_id and run.folder.result.exists() for run in found.runs)
    assert found.machine == found.runs[2].machine and found.machine is not None
    assert found.failures == {} and found.commit == found.runs[0].manifest.commit


def test_only_the_current_settings_are_shown(go, folder: Path) -> None:
    go(FakeLauncher(), "run.repeats=3")
    go(FakeLauncher(), "train.lr=0.5", "run.ranks=2")
    found = collect(folder)
    assert [(run.result.ranks, run.result.run) for run in found.runs] == [(2, 1), (2, 2)]
    assert {run.manifest.point.train.lr for run in found.runs} == {0.5}


def test_failures_and_damage_say_why_runs_are_missing(go, folder: Path) -> None:
    go(FakeLauncher(before=failing_at((2, 1))))
    found = collect(folder)
    assert len(found.runs) == 2
    assert list(found.failures.values()) == ["Rank 0 of 1 died.\nRanks live.\nLook at its log."]
    found.runs[0].folder.result.write_text("{")
    found.runs[1].folder.machine.write_text("{")
    found = collect(folder)
    assert len(found.runs) == 1 and found.machine is None
    assert "is damaged" in found.failures[found.points[0].point_id]


def test_a_folder_that_is_not_a_study_is_refused(folder: Path) -> None:
    with pytest.raises(FolderError, match="There is no folder"):
        collect(folder)
    folder.mkdir()
    with pytest.raises(FolderError, match=r"is not a study: it has no study\.toml"):
        collect(folder)
    (folder / "study.toml").touch()
    with pytest.raises(FolderError, match="stopped before its first run"):
        collect(folder)
    (folder / "points.json").write_text("[]")
    with pytest.raises(StorageError, match="is damaged"):
        collect(folder)


def test_nothing_is_written(go, folder: Path) -> None:
    go(FakeLauncher())
    (next(folder.glob("points/*/runs/1/result.json"))).write_text("{")
    before = {path: (path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode)) for path in folder.rglob("*")}
    os.utime(folder, ns=(1, 1))
    collect(folder)
    assert {path: (path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode)) for path in folder.rglob("*")} == before
    assert folder.stat().st_mtime_ns == 1
