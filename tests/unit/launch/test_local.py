"""What the local launcher alone does: one socket, sessions, logs. What all launchers share is in tests/contract."""

import json
import os

import pytest

from light_ranks.light_launch import launch, light, manifest, point
from paceline.errors import RequestError, StorageError
from paceline.launch import local
from paceline.launch.local import LocalLauncher
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What three ranks saw of themselves, after a run in an environment with another launcher's words in it."""
    path = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"RANK": "7", "WORLD_SIZE": "9", "OMP_NUM_THREADS": "64", "MY_OWN": "kept"}.items():
            patch.setenv(name, value)
        launch(path, manifest(point(3)), LocalLauncher(light()))
    return [json.loads((path / f"seen-{rank}.json").read_text()) for rank in range(3)]


def test_only_rank_0_gets_the_socket(seen):
    assert [at["has_store"] for at in seen] == [True, False, False]
    assert [len(at["sockets"]) for at in seen] == [1, 0, 0]
    assert len({at["environment"]["MASTER_PORT"] for at in seen}) == 1


def test_every_rank_leads_a_session_and_reads_nothing(seen):
    assert [at["session"] for at in seen] == [at["pid"] for at in seen]
    assert {at["stdin"] for at in seen} == {""}


def test_the_environment_is_the_users_without_other_launchers_words(seen):
    for at in seen:
        assert not {"RANK", "WORLD_SIZE"} & set(at["environment"])
        assert (at["environment"]["OMP_NUM_THREADS"], at["environment"]["MY_OWN"]) == ("1", "kept")
        assert at["environment"]["PACELINE_PARENT_PID"] == str(os.getpid())


def test_no_descriptor_is_left_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    launch(tmp_path, manifest(point(2)), LocalLauncher(light()))
    assert len(os.listdir("/proc/self/fd")) == before


def test_it_works_where_the_kernel_has_no_process_descriptors(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.delattr(os, "waitid")
    assert len(launch(tmp_path, manifest(point(2)), LocalLauncher(light())).reports) == 2


def test_a_relative_folder_reaches_the_ranks_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = manifest(point(1))
    folder = RunFolder(tmp_path.relative_to(tmp_path) / "run")
    write_record(folder.manifest, told)
    assert len(LocalLauncher(light()).run(folder, told, heartbeat_s=20).reports) == 1


def test_a_folder_that_cannot_be_cleared_is_told_in_a_sentence(tmp_path):
    RunFolder(tmp_path).ranks.write_text("a file in its place")
    with pytest.raises(StorageError, match="File exists"):
        LocalLauncher(light()).run(RunFolder(tmp_path), manifest(point(1)), heartbeat_s=20)


def test_a_log_that_cannot_be_written_is_told_in_a_sentence(tmp_path):
    RunFolder(tmp_path).rank_log(0).mkdir(parents=True)
    with pytest.raises(StorageError, match=r"rank-0000\.log failed"):
        LocalLauncher(light()).run(RunFolder(tmp_path), manifest(point(1)), heartbeat_s=20)


def test_the_worker_is_started_as_a_module():
    assert LocalLauncher().command[1:] == ("-P", "-m", "paceline.training.worker")
    assert local.WORKER == "paceline.training.worker"


def test_a_point_that_no_memory_holds_is_refused():
    LocalLauncher().check(point(1))
    with pytest.raises(RequestError, match="1,000,000 ranks need at least 300 TB of memory"):
        LocalLauncher().check(point(1_000_000))
