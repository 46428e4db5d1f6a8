"""Folders that cannot be written to, disks that are full, two studies at once."""

import contextlib
import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from light_study import launcher

from paceline.errors import FolderError, StorageError
from paceline.studies.execute.events import Event, RunFinished
from paceline.studies.execute.execute import execute
from paceline.studies.folder.collect import collect
from paceline.studies.load.load import load_study

STUDY = Path(__file__).with_name("light_study.py")


@pytest.fixture
def go(tmp_path: Path):
    """Executes a small study of light ranks in a folder."""

    def run(folder: Path, *overrides: str, events=lambda event: None, **options):
        few = ["data.validation=0", "run.repeats=2", *overrides]
        ranks = launcher(tmp_path / "ledger", 0.0)
        told = {"preflight": False, "cache": tmp_path / "cache", **options}
        return execute(load_study("digits", few), folder, launcher=ranks, events=events, **told)

    return run


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system of half a megabyte, and a way to make it read-only."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@contextlib.contextmanager
def read_only(folder: Path, disk: Path | None):
    """Root may write everywhere but on a file system that is read-only."""
    if disk is None:
        folder.chmod(0o555)
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    yield
    if disk is None:
        folder.chmod(0o755)
    else:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@pytest.fixture
def closable(request: pytest.FixtureRequest, tmp_path: Path):
    """A folder and how to make it read-only, as root and as anybody."""
    disk = request.getfixturevalue("small_disk") if os.geteuid() == 0 else None
    folder = disk or tmp_path / "parent"
    folder.mkdir(exist_ok=True)
    return folder, lambda: read_only(folder, disk)


def state(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file but the lock, whose time moves while it is held."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def results(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {path: seen for path, seen in state(folder).items() if path.name == "result.json"}


def test_a_read_only_place_is_refused_and_can_still_be_reported_on(go, closable) -> None:
    parent, closed = closable
    folder = parent / "out"
    with closed(), pytest.raises(FolderError, match="read-only") as caught:
        go(folder)
    assert "--out" in caught.value.next and not folder.exists()
    go(folder)
    before = state(folder)
    with closed():
        if parent.stat().st_dev != parent.parent.stat().st_dev:  # the mode of a folder says nothing about those in it
            for fresh in (False, True):
                with pytest.raises(FolderError, match="cannot be written to"):
                    go(folder, "run.repeats=3", fresh=fresh)
        assert len(collect(folder).runs) == 4
    assert state(folder) == before and sorted(path.name for path in parent.iterdir()) == ["out"]


def test_a_full_disk_stops_the_study_with_a_sentence_and_costs_nothing_finished(go, small_disk: Path) -> None:
    folder, filler = small_disk / "out", small_disk / "filler"

    def fill(event: Event) -> None:
        if isinstance(event, RunFinished) and not filler.exists():
            with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(512))

    with pytest.raises(StorageError, match="No space left") as caught:
        go(folder, events=fill)
    assert "run the same command again" in caught.value.next
    finished = results(folder)
    assert len(finished) == 1
    with pytest.raises((StorageError, FolderError), match="No space left"):
        go(folder)
    filler.unlink()
    done = go(folder)
    assert (done.ran, done.skipped) == (3, 1)
    assert finished.items() <= results(folder).items()
    assert not list(folder.rglob("*.tmp"))


def test_a_second_study_in_the_same_folder_is_refused_while_the_first_lives(go, tmp_path: Path) -> None:
    folder, ledger = tmp_path / "out", tmp_path / "ledger"
    told = {"study": "digits", "folder": folder, "cache": tmp_path / "cache", "ledger": ledger, "seconds": 60}
    with subprocess.Popen([sys.executable, str(STUDY), json.dumps(told, default=str)]) as first:
        try:
            deadline = time.monotonic() + 60
            while not ledger.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            before = state(folder)
            for fresh in (False, True):
                with pytest.raises(FolderError, match=f"process {first.pid} on "):
                    go(folder, fresh=fresh)
            assert state(folder) == before
        finally:
            first.kill()
    assert go(folder).ran == 4


def test_an_error_of_the_disk_while_reading_is_not_taken_for_damage(go, tmp_path: Path, monkeypatch) -> None:
    """Nothing is moved aside, and nothing run again, because a file server did not answer."""
    folder = tmp_path / "out"
    go(folder)
    before, read_bytes = results(folder), Path.read_bytes

    def broken(path: Path) -> bytes:
        if path.name == "result.json":
            raise OSError(errno.EIO, "Input/output error")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", broken)
    with pytest.raises(StorageError, match="Input/output error"):
        go(folder)
    monkeypatch.undo()
    assert results(folder) == before
    assert go(folder).skipped == 4
