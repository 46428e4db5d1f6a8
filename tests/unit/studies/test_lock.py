import errno
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from paceline.errors import FolderError
from paceline.storage.codec import write_record
from paceline.studies.folder import lock as lock_module
from paceline.studies.folder.lock import StudyLock, holder_of
from paceline.studies.folder.lock_holder import Holder, read_holder, this_process

RACER = Path(__file__).with_name("lock_racer.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def leave(path: Path, *, silent_s: float = 0.0, **changes) -> Holder:
    """A lock of somebody else, with a heartbeat so long ago."""
    holder = replace(this_process(), **changes)
    write_record(path, holder)
    os.utime(path, (time.time() - silent_s,) * 2)
    return holder


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def files(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


def test_the_lock_says_who_holds_it_and_goes_with_its_end(path: Path) -> None:
    with StudyLock(path):
        holder = holder_of(path)
        assert holder is not None
        assert (holder.host, holder.pid) == (socket.gethostname(), os.getpid())
        assert files(path) == ["lock"]
    assert files(path) == [] and holder_of(path) is None


def test_it_goes_when_the_study_fails(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), StudyLock(path):
        raise KeyboardInterrupt
    assert files(path) == []


def test_the_second_is_refused_with_who_and_what_to_do(path: Path) -> None:
    with StudyLock(path) as held:
        with pytest.raises(FolderError) as caught, StudyLock(path):
            pass
        for word in (str(path.parent), f"process {os.getpid()} on {socket.gethostname()}", "since 20"):
            assert word in caught.value.what
        assert f"kill {os.getpid()}" in caught.value.next and "--out" in caught.value.next
        held.check()
        assert files(path) == ["lock"]


def test_a_dead_process_of_this_machine_is_succeeded_silently_and_at_once(path: Path) -> None:
    leave(path, pid=dead_process())
    said: list[str] = []
    assert holder_of(path) is None
    with StudyLock(path, say=said.append):
        assert holder_of(path).pid == os.getpid()  # pyright: ignore[reportOptionalMemberAccess]
        assert files(path) == ["lock"]
    assert said == [] and files(path) == []


def test_a_zombie_is_dead(path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    leave(path, pid=process.pid, started_at=psutil.Process(process.pid).create_time())
    with StudyLock(path):
        pass
    process.wait()


@pytest.mark.parametrize(("silent_s", "free"), [(0, False), (30, True)])
def test_a_process_number_that_is_used_again_is_another_process(path: Path, silent_s: float, free: bool) -> None:
    leave(path, pid=os.getppid(), started_at=1.0, silent_s=silent_s)
    assert (holder_of(path) is None) == free


@pytest.mark.parametrize("place", [{"host": "elsewhere"}, {"boot_id": "its namesake"}, {"pid_space": "a container"}])
def test_a_process_of_another_machine_is_judged_by_its_heartbeat(path: Path, place: dict[str, str]) -> None:
    leave(path, pid=dead_process(), silent_s=50, **place)
    with pytest.raises(FolderError, match="is in use"), StudyLock(path):
        pass
    holder = leave(path, silent_s=70, **place)
    said: list[str] = []
    with StudyLock(path, say=said.append):
        assert files(path) == ["lock"]
    assert len(said) == 1 and f"process {holder.pid} on {holder.host}" in said[0] and "1 min 10 s" in said[0]


@pytest.mark.parametrize("contents", [b"", b"{", b"[1]", b'{"schema": "paceline.lock/1", "pid": 1}'])
def test_a_lock_that_cannot_be_read_is_waited_for_and_then_succeeded(path: Path, contents: bytes) -> None:
    path.write_bytes(contents)
    with pytest.raises(FolderError, match="not readable yet"), StudyLock(path):
        pass
    os.utime(path, (time.time() - 70,) * 2)
    with StudyLock(path):
        assert files(path) == ["lock"]


def test_hostile_values_in_a_lock_are_not_followed(path: Path) -> None:
    leave(path, token="../../x", pid=dead_process())
    with pytest.raises(FolderError, match="not readable yet"), StudyLock(path):
        pass
    leave(path, pid=-1)
    assert holder_of(path) is not None


def test_a_successor_that_died_before_it_took_over_is_succeeded_itself(path: Path) -> None:
    first = leave(path, pid=dead_process())
    leave(path.with_name(f"lock.{first.token}"), pid=dead_process())
    with StudyLock(path):
        assert files(path) == ["lock"]


def test_a_successor_that_lives_goes_first(path: Path) -> None:
    first = leave(path, pid=dead_process())
    successor = leave(path.with_name(f"lock.{first.token}"), pid=os.getpid())
    with pytest.raises(FolderError, match=f"process {successor.pid} "), StudyLock(path):
        pass
    assert read_holder(path) == first


def test_one_who_comes_late_withdraws(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes the lock over, all of it, while this one believes it to be left behind."""
    stale = leave(path, pid=dead_process())
    create, taken = lock_module._create, []

    def create_late(draft: Path, place: Path) -> bool:
        if place.name == f"lock.{stale.token}" and not taken:
            taken.append(leave(path, pid=os.getppid(), started_at=psutil.Process(os.getppid()).create_time()))
        return create(draft, place)

    monkeypatch.setattr(lock_module, "_create", create_late)
    with pytest.raises(FolderError, match=f"process {os.getppid()} "), StudyLock(path):
        pass
    assert read_holder(path) == taken[0] and files(path) == ["lock"]


def test_without_hard_links_the_lock_is_exclusive_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    leave(path, pid=dead_process())
    with StudyLock(path):
        with pytest.raises(FolderError, match="is in use"), StudyLock(path):
            pass
        assert files(path) == ["lock"]
    assert files(path) == []


def test_the_heart_beats_while_the_study_is_busy(path: Path) -> None:
    with StudyLock(path, beat_s=0.01):
        os.utime(path, (1, 1))
        deadline = time.monotonic() + 10
        while path.stat().st_mtime < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert time.time() - path.stat().st_mtime < 10


@pytest.mark.parametrize("how", ["removed", "taken over"])
def test_a_lost_lock_is_noticed_and_not_released_for_its_new_holder(path: Path, how: str) -> None:
    with StudyLock(path, beat_s=0.01) as held:
        path.unlink() if how == "removed" else leave(path, host="elsewhere")
        deadline = time.monotonic() + 10
        with pytest.raises(FolderError, match="removed or taken over"):
            while time.monotonic() < deadline:
                held.check()
                time.sleep(0.01)
    assert files(path) == ([] if how == "removed" else ["lock"])


def test_a_killed_holder_is_succeeded(path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from paceline.studies.folder.lock import StudyLock\n"
        f"with StudyLock(Path({str(path)!r})): print('held', flush=True); time.sleep(100)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        with pytest.raises(FolderError, match=f"process {process.pid} "), StudyLock(path):
            pass
        process.kill()
    with StudyLock(path):
        assert files(path) == ["lock"]


def test_many_racing_processes_never_hold_it_together(tmp_path: Path) -> None:
    command = [sys.executable, str(RACER), str(tmp_path), "8", "25"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    counts = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert len(counts) == 8, done.stderr
    held, not_alone = (sum(column) for column in zip(*counts, strict=True))
    assert not_alone == 0
    assert held >= 25
