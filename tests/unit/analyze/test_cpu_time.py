"""Real, user and sys from counters by hand. Instants and times in milliseconds unless said otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paceline.analyze.run.cpu_time import cpu_times
from paceline.analyze.run.run_summary import run_analysis
from paceline.records.counters import COUNTERS, CpuTimes, RankCounters
from samples.trace_samples import Row, allreduce, run_of, trace_of

MS = 1_000_000
TIMES = tuple(name for name in COUNTERS if name.endswith("_ns"))


def counters_of(rank: int, at: list[float], **columns: list[float]) -> RankCounters:
    """The counters of one process; what is not named was not measured."""
    values = dict.fromkeys(COUNTERS, np.full(len(at), -1, np.int64))
    for name, column in columns.items():
        values[name] = np.array(column) * (MS if name in TIMES else 1)
        values[name] = np.where(np.array(column) < 0, -1, values[name]).astype(np.int64)
    return RankCounters(rank=rank, at_ns=(np.array(at) * MS).astype(np.int64), values=values)


def busy(rank: int, *, user: float, system: float = 0, main: float | None = None, **more: float) -> RankCounters:
    """A process that was sampled at 0 and at 10 s."""
    last = {"user_ns": user, "system_ns": system, "main_cpu_ns": user + system if main is None else main} | more
    return counters_of(rank, [0, 10_000], **{name: [0, value] for name, value in last.items()})


def times(*counters: RankCounters, ranks: int | None = None, **more) -> CpuTimes:
    ranks = len(counters) if ranks is None else ranks
    found = cpu_times(counters, ranks=ranks, started_at_ns=0, ended_at_ns=10_000 * MS, **more)
    assert found is not None
    return found


def test_a_process_and_all_of_them_together() -> None:
    whole = {"voluntary_switches": 50, "minor_faults": 7, "run_queue_wait_ns": 400, "peak_bytes": 900}
    found = times(
        busy(0, user=8_000, system=1_000, comm_user_ns=300, comm_system_ns=150, anonymous_bytes=30, **whole),
        busy(1, user=6_000, system=500, comm_user_ns=0, comm_system_ns=200, anonymous_bytes=50, **whole),
    )
    first, second = found.processes
    assert (first.process, second.process, found.whole.process) == (0, 1, None)
    assert (first.user_s, first.system_s, first.real_s) == (8.0, 1.0, 10.0)
    assert (first.cores, second.cores, found.whole.cores) == pytest.approx((0.9, 0.65, 1.55))
    assert (found.whole.user_s, found.whole.system_s, found.whole.real_s) == (14.0, 1.5, 10.0)
    assert first.comm_share == pytest.approx(0.45 / 9) and found.whole.comm_s == pytest.approx(0.65)
    assert (first.voluntary_switches_per_s, found.whole.voluntary_switches_per_s) == (5.0, 10.0)
    assert (found.whole.minor_faults, found.whole.run_queue_wait_s) == (14, 0.8)
    assert (found.whole.peak_bytes, found.whole.anonymous_bytes) == (900, 80)
    assert found.problems == () and found.energy == ()


def test_what_one_process_did_not_measure_is_not_measured_for_all() -> None:
    found = times(busy(0, user=1, major_faults=3, comm_user_ns=1, comm_system_ns=1), busy(1, user=1))
    assert found.processes[0].major_faults == 3
    assert (found.whole.major_faults, found.whole.comm_s, found.whole.gpu_peak_bytes) == (None, None, None)


def test_real_time_of_a_process_ends_with_its_last_sample() -> None:
    """It was killed: its rates are of the time in which it was seen."""
    early = counters_of(0, [0, 2_000], user_ns=[0, 2_000], system_ns=[0, 0])
    found = times(replace(early, truncated=True), ranks=2)
    assert (found.processes[0].real_s, found.processes[0].cores) == (2.0, 1.0)
    assert found.whole.real_s == 10.0
    assert found.problems == (
        "There are no counters of rank 1.",
        "The counters of process 0 are truncated: later samples are missing.",
    )


def test_a_run_without_a_sample_has_no_times() -> None:
    window = {"ranks": 1, "started_at_ns": 0, "ended_at_ns": 1}
    assert cpu_times((), **window) is None
    assert cpu_times((counters_of(0, []),), **window) is None


def line_of(*spans: tuple[str, int, int], until: int = 10_000):
    """The time line of rank 0 of two: spans with start and end; an all-reduce is issued at the start of each wait."""
    traces = []
    for rank in (0, 1):
        rows = [Row("group", 0, 0, -1, "0 1", group="0")]
        rows += [Row(kind, start * MS, end * MS) for kind, start, end in spans]
        waits = [(start, end) for kind, start, end in spans if kind == "communicate"]
        rows += [allreduce(start * MS, n, end * MS) for n, (start, end) in enumerate(waits)]
        traces.append(trace_of(rows, rank))
    return run_analysis(run_of(traces, 2, (0, until * MS))).lines[:1]


def test_exposed_time_beyond_that_off_a_core_was_spent_on_one() -> None:
    """Of every second 0.4 s are exposed. In the first the rank is on its core all the time, in the second off it for
    0.3 s, in the third for 0.6 s: then nothing says that it communicated on a core."""
    line = line_of(*(("communicate", at, at + 400) for at in (500, 1_500, 2_500)), until=3_000)
    sampled = counters_of(0, [0, 1_000, 2_000, 3_000], main_cpu_ns=[0, 1_000, 1_700, 2_100])
    process = times(sampled, ranks=1, lines=line).processes[0]
    assert process.exposed_s == pytest.approx(1.2)
    assert process.exposed_on_core_s == pytest.approx(0.4 + 0.1 + 0.0)


def test_exposed_time_is_divided_between_two_samples_at_their_instants() -> None:
    line = line_of(("communicate", 500, 1_500), until=2_000)
    sampled = counters_of(0, [250, 1_000, 1_250], main_cpu_ns=[0, 250, 500])
    process = times(sampled, ranks=1, lines=line).processes[0]
    assert process.exposed_s == pytest.approx(0.75)
    assert process.exposed_on_core_s == pytest.approx(0.0 + 0.25)


def test_without_time_lines_or_the_main_thread_nothing_is_said_of_exposed_time() -> None:
    line = line_of(("communicate", 500, 1_500))
    assert times(busy(0, user=1)).whole.exposed_s is None
    unseen = times(counters_of(0, [0, 10_000], user_ns=[0, 1], system_ns=[0, 0]), lines=line)
    assert (unseen.whole.exposed_s, unseen.whole.exposed_on_core_s) == (1.0, None)


def test_servers_count_in_cpu_time_and_not_in_exposed_time() -> None:
    line = line_of(("communicate", 500, 1_500))
    found = times(busy(0, user=9_000), busy(1, user=4_000), ranks=1, lines=line)
    assert (found.whole.user_s, found.whole.exposed_s) == (13.0, 1.0)
    assert "1 rank and 1 other process" in found.sentence


def metered(rank: int, machine: str, host: str, **columns: list[float]) -> RankCounters:
    return replace(counters_of(rank, [0, 5_000], **columns), machine=machine, host=host)


def test_energy_is_counted_once_for_each_machine() -> None:
    """Hosts h2 and h3 are namespaces of one machine, and read the same meters."""
    found = times(
        metered(0, "m1", "h1", package_uj=[0, 2_500_000], memory_uj=[0, 500_000]),
        metered(1, "m1", "h1"),
        metered(2, "m2", "h2", package_uj=[0, 7_000_000], gpu_uj=[0, 1_000_000], gpu_use_percent=[50, 100]),
        metered(3, "m2", "h3", package_uj=[0, 7_100_000]),
    )
    first, second = found.energy
    assert (first.host, first.package_j, first.memory_j, first.gpu_j, first.gpu_use) == ("h1", 2.5, 0.5, None, None)
    assert (second.host, second.package_j, second.gpu_j, second.gpu_use) == ("h2", 7.0, 1.0, 0.75)
    assert first.sampled_s == 5.0


def test_a_meter_that_was_given_up_on_the_way_is_not_measured() -> None:
    found = times(metered(0, "m", "h", package_uj=[0, -1], memory_uj=[0, 5_000_000]))
    assert (found.energy[0].package_j, found.energy[0].memory_j) == (None, 5.0)


def test_a_file_that_cannot_be_read_is_named() -> None:
    found = times(busy(0, user=1), counters_of(1, []))
    assert found.problems == ("The counters of process 1 cannot be read, or contain no sample.",)


def with_threads(counters: RankCounters, threads: int) -> RankCounters:
    return replace(counters, threads=threads)


def test_the_sentence_of_ranks_that_run_at_once() -> None:
    found = times(*(with_threads(busy(rank, user=9_500, system=500), 1) for rank in (0, 1)))
    assert found.sentence == (
        "Real 10.0 s, user 19.0 s, sys 1.00 s: user and sys add up to 2.00 times real because 2 ranks ran on several "
        "cores at once; sys, 5 % of the CPU time, is the kernel's work for them: memory, files, messages."
    )


def test_the_sentence_names_threads_beside_the_main_ones() -> None:
    said = times(with_threads(busy(0, user=18_000, main=9_900, comm_user_ns=900, comm_system_ns=0), 2)).sentence
    assert "1 rank of 2 threads ran on several cores at once" in said
    assert "(of the CPU time 900 ms in threads that move messages and 7.20 s in others than the main ones)" in said
    assert "sys" not in said.split(":", 1)[1].replace("user and sys", "")


def test_the_sentence_of_a_rank_that_is_blocked() -> None:
    said = times(busy(0, user=2_500)).sentence
    assert "user and sys add up to 25 % of real because 1 rank was on a core for only 25 % of the time" in said
    assert "its main thread was off a core for 7.50 s of 10.0 s, blocked or not yet started" in said


def test_the_sentence_of_a_rank_that_is_always_busy() -> None:
    assert "as long as real because 1 rank kept one core busy" in times(busy(0, user=9_900)).sentence


def test_the_sentence_says_why_a_rank_was_off_its_core() -> None:
    line = line_of(("communicate", 1_000, 4_000))
    said = times(busy(0, user=5_000, main_run_queue_wait_ns=1_500), lines=line).sentence
    assert (
        "off a core for 5.00 s of 10.0 s, 1.50 s of it because none was free and up to 3.00 s of it blocked in exposed "
        "communication"
    ) in said
    assert "spinning" not in said


def test_no_more_is_said_to_be_blocked_than_was_neither_on_a_core_nor_ready_for_one() -> None:
    line = line_of(("communicate", 1_000, 5_000))
    said = times(busy(0, user=5_000, main_run_queue_wait_ns=2_000), lines=line).sentence
    assert "2.00 s of it because none was free and up to 3.00 s of it blocked in exposed communication" in said


def test_the_sentence_says_that_ranks_spin() -> None:
    line = line_of(("communicate", 1_000, 4_000))
    said = times(busy(0, user=9_800), lines=line).sentence
    assert "at least 2.80 s of the 3.00 s of exposed communication were spent on a core, spinning or copying" in said


def test_the_sentence_without_user_and_system_time() -> None:
    assert times(counters_of(0, [0, 10_000])).sentence == "Real 10.0 s; user and sys were not measured."
