"""Servers and the coordinator, as launchers place, watch and name them."""

from dataclasses import replace
from pathlib import Path

import pytest

from light_ranks.light_launch import manifest, point
from paceline.launch.failure_cause import RankView, awaited_rank, failure_error, hang_error
from paceline.launch.machine import Processor
from paceline.launch.placement import placement_of
from paceline.launch.supervision import Watch
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import Pulse, PulseWriter

SERVED = replace(point(2), options={"servers": 1, "server_threads": 2})
FIVE = [Processor(number, number, 0) for number in range(5)]


def placed(processes: range, processors=FIVE, pin: bool = True):
    return placement_of(replace(SERVED, pin=pin), processes, processors=processors, quota=None, can_pin=True)


def test_servers_have_cores_of_their_own_and_the_coordinator_runs_on_any():
    found = placed(range(4))
    assert found.cores == ((0,), (1,), (2, 3), (0, 1, 2, 3, 4))
    assert found.text == (
        "2 ranks × 1 thread and 1 server × 2 threads on 5 cores: "
        "rank 0 on core 0, rank 1 on core 1, server 0 on cores 2+3"
    )


def test_a_host_may_have_only_some_of_the_processes():
    assert placed(range(1, 3)).cores == ((0,), (1, 2))
    assert placed(range(2, 4)).text == "1 server × 2 threads on 5 cores: server 0 on cores 0+1"
    assert placed(range(3, 4)).cores == ((0, 1, 2, 3, 4),)


@pytest.mark.parametrize(("cores", "crowded"), [(3, True), (4, False)])
def test_servers_count_among_the_threads_and_the_coordinator_does_not(cores, crowded):
    found = placed(range(4), FIVE[:cores])
    assert found.oversubscribed == crowded
    assert (found.cores is None) == crowded


def sight(process: int, phase: str = "communicate", collectives: int = 9, **seen: object) -> RankView:
    pulse = Pulse(beats=9, step=4, total_steps=0, collectives=collectives, phase=phase)
    return RankView(rank=process, host="node-a", log=Path("a.log"), pulse=pulse, point=SERVED, **seen)  # pyright: ignore[reportArgumentType]


def test_a_dead_server_is_called_one():
    error = failure_error(sight(2, code=-9), 4, "")
    assert error.what == "Server 0 (process 2 of 4) on node-a was killed by SIGKILL after step 4."
    assert failure_error(sight(1, code=-9), 4, "").what.startswith("Rank 1 of 2 on node-a")


def test_of_all_that_wait_a_rank_is_named_because_servers_only_answer():
    sights = [sight(0, collectives=50), sight(1, collectives=49), sight(2), sight(3, collectives=1)]
    assert awaited_rank(sights).rank == 1
    assert awaited_rank([*sights[:2], sight(2, state="stopped"), sights[3]]).rank == 2
    text = hang_error(sights[1], sights, silence_s=31, heartbeat_s=30, log_tail="").what
    assert "Rank 1 of 2 on node-a hangs" in text
    assert "server 0: communicate" in text and "coordinator: communicate" in text


class Idle:
    """A process that runs."""

    host, ended_at_ns = "node-a", None

    def __init__(self, number: int) -> None:
        self.number = number

    def poll(self) -> None:
        return None

    def state(self) -> str:
        return "sleeping"

    def send(self, number: int) -> None:
        pass


def test_progress_is_that_of_the_ranks(tmp_path):
    folder, told = RunFolder(tmp_path), []
    write_record(folder.manifest, manifest(SERVED))
    pulses = [PulseWriter(folder.rank_pulse(process)) for process in range(4)]
    for pulse in pulses[:2]:
        pulse.beat(phase="compute", step=7, total_steps=20)

    class Enough(Exception):
        pass

    def nap(length_s: float) -> None:
        if len(told) > 1:
            raise Enough
        pulses[2].beat(phase="communicate", step=3)
        pulses[0].beat(step=8)
        pulses[1].beat(step=9)

    with pytest.raises(Enough):
        Watch([Idle(process) for process in range(4)], folder, 30.0, told.append, nap).until_done()
    assert [(progress.step, progress.total_steps, progress.phase) for progress in told] == [
        (7, 20, "compute"),
        (8, 20, "compute"),
    ]
