"""What is read of a process, on a tree that the test lays out in place of /proc/self."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from paceline.probe.process_counters import ProcessCounters

MAIN = "4711"
MS = 1_000_000


@pytest.fixture
def proc(tmp_path) -> Path:
    (tmp_path / "status").write_text(
        f"Name:\tpython\nTgid:\t{MAIN}\nPid:\t{MAIN}\nVmPeak:\t  9000 kB\nVmHWM:\t    6000 kB\n"
        "VmRSS:\t    5000 kB\nRssAnon:\t    3000 kB\nRssFile:\t    2000 kB\nvoluntary_ctxt_switches:\t1\n"
    )
    thread(tmp_path, MAIN, "python", cpu=900 * MS, waited=40 * MS)
    return tmp_path


def thread(proc: Path, number: str, name: str, *, cpu: int, waited: int = 0, user: int = 0, system: int = 0) -> None:
    """A thread with so many nanoseconds on a core and waiting for one, and ticks of user and system time."""
    place = proc / "task" / number
    place.mkdir(parents=True, exist_ok=True)
    (place / "comm").write_text(f"{name}\n")
    (place / "schedstat").write_text(f"{cpu} {waited} 17\n")
    ahead = " ".join(["S", *"0" * 10])
    (place / "stat").write_text(f"{number} ({name}) {ahead} {user} {system} 0 0 20 0 5 0 12345\n")


def test_memory_comes_from_the_status_in_bytes(proc) -> None:
    sample = ProcessCounters(proc).sample()
    assert (sample["resident_bytes"], sample["anonymous_bytes"]) == (5000 * 1024, 3000 * 1024)
    assert sample["peak_bytes"] == 6000 * 1024


def test_threads_are_added_up_and_those_that_move_messages_apart(proc) -> None:
    thread(proc, "4712", "pt_gloo_runloop", cpu=70 * MS, waited=5 * MS, user=4, system=3)
    thread(proc, "4713", "python", cpu=300 * MS, waited=2 * MS, user=30)
    sample = ProcessCounters(proc).sample()
    assert sample["num_threads"] == 3
    assert (sample["main_cpu_ns"], sample["main_run_queue_wait_ns"]) == (900 * MS, 40 * MS)
    assert sample["run_queue_wait_ns"] == 47 * MS
    assert (sample["comm_user_ns"], sample["comm_system_ns"]) == (40 * MS, 30 * MS)


def test_without_a_thread_that_is_known_to_move_messages_their_time_is_not_measured(proc) -> None:
    thread(proc, "4713", "python", cpu=300 * MS)
    sample = ProcessCounters(proc).sample()
    assert "comm_user_ns" not in sample and "comm_system_ns" not in sample


def test_what_an_ended_thread_used_is_kept(proc) -> None:
    process = ProcessCounters(proc)
    thread(proc, "4712", "pt_gloo_runloop", cpu=70 * MS, waited=5 * MS, user=4, system=3)
    process.sample()
    shutil.rmtree(proc / "task" / "4712")
    sample = process.sample()
    assert (sample["num_threads"], sample["run_queue_wait_ns"], sample["comm_user_ns"]) == (1, 45 * MS, 40 * MS)


def test_a_number_that_is_used_again_is_another_thread(proc) -> None:
    process = ProcessCounters(proc)
    thread(proc, "4712", "pt_gloo_runloop", cpu=70 * MS, waited=5 * MS, user=4, system=3)
    process.sample()
    thread(proc, "4712", "python", cpu=1 * MS, waited=1 * MS, user=9)
    sample = process.sample()
    assert (sample["run_queue_wait_ns"], sample["comm_user_ns"]) == (46 * MS, 40 * MS)


def test_a_name_that_a_thread_takes_after_its_first_sample_is_seen(proc) -> None:
    process = ProcessCounters(proc)
    thread(proc, "4712", "python", cpu=70 * MS, user=4)
    assert "comm_user_ns" not in process.sample()
    thread(proc, "4712", "pt_gloo_runloop", cpu=80 * MS, user=5)
    assert process.sample()["comm_user_ns"] == 50 * MS


def test_a_thread_that_ends_while_it_is_read_is_passed_over(proc) -> None:
    (proc / "task" / "4712").mkdir()
    sample = ProcessCounters(proc).sample()
    assert (sample["main_cpu_ns"], sample["run_queue_wait_ns"]) == (900 * MS, 40 * MS)


def test_a_system_without_such_a_tree_gives_what_getrusage_does(tmp_path) -> None:
    sample = ProcessCounters(tmp_path / "none").sample()
    assert sample["user_ns"] > 0 and sample["peak_bytes"] > 2**20
    assert {"voluntary_switches", "minor_faults", "children_user_ns"} <= sample.keys()
    assert not {"resident_bytes", "main_cpu_ns", "run_queue_wait_ns", "num_threads"} & sample.keys()


def test_a_kernel_that_does_not_count_waiting_leaves_threads_out(proc) -> None:
    (proc / "task" / MAIN / "schedstat").unlink()
    sample = ProcessCounters(proc).sample()
    assert sample["num_threads"] == 1
    assert "main_cpu_ns" not in sample and "run_queue_wait_ns" not in sample
