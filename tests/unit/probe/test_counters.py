"""The sampler: when it reads and writes, that nothing stops training, and that real processes are counted rightly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from light_ranks.light_launch import wait_for
from paceline.probe.counter_sampler import WRITE_EVERY, Counters
from paceline.storage.counter_stream import read_counter_file
from paceline.units import seconds

HERE = Path(__file__).parent
WITHIN_S = 60.0


def counting(step: int = 1):
    """A source whose one counter grows with every sample."""
    taken = iter(range(0, 10**9, step))
    return lambda: {"user_ns": next(taken)}


def sampler(path: Path, *sources, every_s: float = 3600.0) -> Counters:
    return Counters(path, host_energy=False, every_s=every_s, sources=sources)


def test_there_is_a_sample_at_the_start_and_one_at_the_end(tmp_path) -> None:
    with sampler(tmp_path / "c", counting()):
        assert len(read_counter_file(tmp_path / "c", 0)) == 1
        between_ns = time.monotonic_ns()
    counters = read_counter_file(tmp_path / "c", 0)
    assert counters.values["user_ns"].tolist() == [0, 1]
    assert counters.at_ns[0] < between_ns < counters.at_ns[1]


def test_it_goes_on_by_itself_and_writes_ten_at_a_time(tmp_path) -> None:
    seen = []
    count = counting()
    with sampler(tmp_path / "c", lambda: seen.append(0) or count(), every_s=0.001) as counters:
        assert wait_for(lambda: len(seen) > 2 * WRITE_EVERY, WITHIN_S)
        written = len(read_counter_file(tmp_path / "c", 0))
        assert written % WRITE_EVERY == 1 and written > WRITE_EVERY
    assert read_counter_file(tmp_path / "c", 0).values["user_ns"].tolist() == list(range(len(seen)))
    assert counters.problem is None


def test_a_costly_sample_is_taken_less_often(tmp_path) -> None:
    seen = []

    def costly() -> dict[str, int]:
        seen.append(0)
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return {}

    with sampler(tmp_path / "c", costly, every_s=0.001):
        assert wait_for(lambda: len(seen) >= 2, WITHIN_S)
        time.sleep(0.3)  # the next is due after 20 s
        assert len(seen) == 2


def test_a_look_out_of_turn_is_a_sample(tmp_path) -> None:
    with sampler(tmp_path / "c", counting()) as counters:
        counters.look()
    counters.look()  # too late: the file has its end
    assert read_counter_file(tmp_path / "c", 0).values["user_ns"].tolist() == [0, 1, 2]


def test_a_source_that_fails_ends_sampling_and_says_so(tmp_path, capfd) -> None:
    def fails() -> dict[str, int]:
        if next(turns):
            raise ValueError("the meter is gone")
        return {"user_ns": 1}

    turns = iter((0, 1, 1))
    with sampler(tmp_path / "c", fails, every_s=0.001) as counters:
        assert wait_for(lambda: counters.problem is not None, WITHIN_S)
    assert "the meter is gone" in capfd.readouterr().err
    assert len(read_counter_file(tmp_path / "c", 0)) == 1
    assert next(turns) == 1, "it was asked again after it had failed"


def test_a_folder_that_cannot_be_written_does_not_stop_training(tmp_path, capfd) -> None:
    (tmp_path / "file").write_text("")
    with sampler(tmp_path / "file" / "c", counting()) as counters:
        pass
    assert counters.problem is not None
    assert str(tmp_path / "file") in capfd.readouterr().err


def test_a_full_disk_does_not_stop_training(capfd) -> None:
    with sampler(Path("/dev/full"), counting()) as counters:
        pass
    assert "No space left" in (counters.problem or "")
    assert capfd.readouterr().err.count("\n") < 5


def test_closing_twice_or_before_the_start_does_nothing(tmp_path) -> None:
    counters = sampler(tmp_path / "c", counting())
    counters.close()
    counters.start()
    counters.close()
    size = (tmp_path / "c").stat().st_size
    counters.close()
    assert (tmp_path / "c").stat().st_size == size


def test_a_process_that_was_forked_off_leaves_the_file_alone(tmp_path) -> None:
    counters = sampler(tmp_path / "c", counting())
    counters.start()
    size = (tmp_path / "c").stat().st_size
    child = os.fork()
    if child == 0:
        counters.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (tmp_path / "c").stat().st_size == size
    counters.close()
    assert read_counter_file(tmp_path / "c", 0).values["user_ns"].tolist() == [0, 1]


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, dict]:
    """What real processes said of themselves, and their counters; all at once, so that they disturb one another."""
    folder = tmp_path_factory.mktemp("counted")
    started = {}
    for what in ("spin", "sleep", "write", "threads"):
        (folder / what).mkdir()
        command = [sys.executable, str(HERE / "counted_process.py"), what, str(folder / what / "rank-0000.arrows")]
        started[what] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    found = {}
    for what, process in started.items():
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        found[what] = json.loads(out) | {"counters": read_counter_file(folder / what / "rank-0000.arrows", 0)}
    return found


@pytest.mark.parametrize("what", ["spin", "sleep", "write", "threads"])
def test_the_last_sample_lies_between_what_the_process_measured_before_and_after_it(said, what) -> None:
    before, after, counters = said[what]["before"], said[what]["after"], said[what]["counters"]
    sampled = {name: seconds(counters.last(name)) for name in ("user_ns", "system_ns", "main_cpu_ns")}
    tick_s = (
        0.011  # os.times counts in ticks of 10 ms; the scheduler's figure of a running thread is as old as its tick
    )
    assert before["cpu_s"] - tick_s <= sampled["user_ns"] + sampled["system_ns"] <= after["cpu_s"] + tick_s
    assert before["user_s"] - tick_s <= sampled["user_ns"] <= after["user_s"] + tick_s
    assert before["system_s"] - tick_s <= sampled["system_ns"] <= after["system_s"] + tick_s
    assert before["main_s"] - tick_s <= sampled["main_cpu_ns"] <= after["main_s"] + tick_s
    assert said[what]["first"]["at_ns"] <= counters.at_ns[0] and counters.at_ns[-1] <= after["at_ns"]


def grown_s(said: dict, name: str) -> float:
    """By how much a counter grew from the first sample to the last."""
    values = said["counters"].values[name]
    return seconds(int(values[-1] - values[0]))


def test_what_a_process_did_shows_in_its_counters(said) -> None:
    assert grown_s(said["spin"], "user_ns") > 0.8 > 0.5 > grown_s(said["sleep"], "user_ns")
    assert grown_s(said["write"], "system_ns") > 0.2
    assert grown_s(said["threads"], "main_cpu_ns") < 0.5 * grown_s(said["threads"], "user_ns")
    faults = said["write"]["counters"].values["minor_faults"]
    assert grows(faults)
    for each in said.values():
        counters = each["counters"]
        assert (
            counters.last("peak_bytes") >= counters.last("resident_bytes") >= counters.last("anonymous_bytes") > 2**20
        )
        assert all(grows(counters.values[name]) for name in ("voluntary_switches", "run_queue_wait_ns"))
        assert counters.last("comm_user_ns") is None and counters.last("gpu_memory_bytes") is None
        assert counters.last("package_uj") is None, "another rank reads the meters of this host"


def grows(values) -> bool:
    return bool((values[1:] >= values[:-1]).all()) and values[0] >= 0


def test_a_sample_reads_one_file_per_thread_and_one_besides(said) -> None:
    """This, not a clock, is what bounds the cost of a sample."""
    for each in said.values():
        assert each["opened"] == {"open": 1 + each["threads"], "os.listdir": 1}
