"""One wrapper and its rank, started as mpiexec would: what it says about the rank, and what it does for other hosts."""

import os
import signal
import subprocess
import sys

import pytest

from light_ranks.light_launch import light, manifest, point, running_ranks, wait_for
from paceline.launch.wrapper.unreachable_hosts import HostAnswer, answer_file, question_file
from paceline.launch.wrapper.wrapped_ranks import wrapper_command
from paceline.records.run import RankEnd, RankStart
from paceline.records.settings import LaunchSettings
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path)
    for place in (folder.ranks, folder.logs):
        place.mkdir()
    return folder


class Kept:
    """A wrapper in the place of rank 0 of `size`."""

    def __init__(self, folder, told, command, size=1):
        write_record(folder.manifest, told)
        environment = os.environ | {"PMI_RANK": "0", "PMI_SIZE": str(size)}
        self.process = subprocess.Popen(
            wrapper_command(folder, command), env=environment, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self.process

    def __exit__(self, *failure):
        self.process.kill()
        self.process.communicate()


def finished(folder, told, command, **place):
    with Kept(folder, told, command, **place) as process:
        said = process.stderr.read()
        return process.wait(60), said


def test_a_good_end_is_said_with_host_and_code(folder):
    assert finished(folder, manifest(point(1)), light("--steps", 2)) == (0, "")
    start, end = read_record(folder.rank_start(0), RankStart), read_record(folder.rank_end(0), RankEnd)
    assert (start.rank, end.rank, end.code) == (0, 0, 0)
    assert start.host == end.host
    assert "rank 0 of 1, run 1, attempt 1" in folder.rank_log(0).read_text()


def test_the_signal_that_ended_a_rank_is_kept(folder):
    folder.stop.touch()  # so that it does not wait for what the others saw
    code, _ = finished(folder, manifest(point(1)), (sys.executable, "-c", "import os; os.abort()"))
    assert code == 128 + signal.SIGABRT
    assert read_record(folder.rank_end(0), RankEnd).code == -signal.SIGABRT


def test_a_wrong_number_of_processes_is_refused_where_its_launcher_looks(folder):
    code, said = finished(folder, manifest(point(2)), light(), size=1)
    assert code == 1
    assert said.startswith("1 processes were started, and this run has 2.")
    assert said in folder.rank_log(0).read_text()
    assert read_record(folder.rank_end(0), RankEnd).code == 1
    assert not folder.rank_start(0).exists()


def test_a_file_ends_the_rank_and_then_the_keeper(folder):
    with Kept(folder, manifest(point(1)), light("--steps", 100000)) as process:
        assert wait_for(lambda: running_ranks(folder.path), 30)
        folder.stop.touch()
        assert process.wait(30) == 128 + signal.SIGTERM
    assert read_record(folder.rank_end(0), RankEnd).code == -signal.SIGTERM


def test_between_hosts_it_answers_when_it_is_asked(folder):
    told = manifest(point(1, hosts=2), settings=LaunchSettings(interface="lo"))
    with Kept(folder, told, light("--steps", 100000)) as process:
        assert wait_for(lambda: running_ranks(folder.path), 30)
        assert not answer_file(folder, 0).exists()
        question_file(folder).touch()
        assert wait_for(answer_file(folder, 0).exists, 30)
        folder.stop.touch()
        process.wait(30)
    assert read_record(answer_file(folder, 0), HostAnswer).reaches


def test_on_one_host_nobody_asks(folder):
    question_file(folder).touch()
    finished(folder, manifest(point(1)), light("--steps", 200))
    assert not answer_file(folder, 0).exists()
