"""machine.json: what the ranks said, and their clocks against the launcher's."""

from __future__ import annotations

import pytest

from paceline.launch import machine
from paceline.launch.machine import LauncherClock, launcher_clocks
from paceline.records.allocation import AllocationCheck, Clock, Complaint, ProcessFacts
from paceline.records.run import Machine
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder

SECOND = 1_000_000_000


def rank(
    number: int, machine_name: str, *, wall_s: int = 500, monotonic_s: int = 100, space: str = "t", **more
) -> ProcessFacts:
    return ProcessFacts(
        rank=number,
        host=f"on-{machine_name}",
        boot_id=machine_name,
        time_namespace=space,
        wall_ns=wall_s * SECOND,
        monotonic_ns=monotonic_s * SECOND,
        cpu="a processor",
        cores=8,
        physical_cores=4,
        memory_bytes=16,
        gpus=("A100",),
        platform="Linux",
        **more,
    )


def roll(*ranks: ProcessFacts, offsets_s: tuple[int, ...] = (), **more) -> AllocationCheck:
    offsets_s = offsets_s or (0,) * len(ranks)
    clocks = tuple(
        Clock(rank=number, offset_ns=s * SECOND, error_ns=5 if s else 0, method="exchange" if s else "same")
        for number, s in enumerate(offsets_s)
    )
    return AllocationCheck(refused=False, ranks=ranks, complaints=(), clocks=clocks, **more)


def here(clock: str, wall_s: int = 500, monotonic_s: int = 100) -> LauncherClock:
    return LauncherClock(clock=clock, wall_ns=wall_s * SECOND, monotonic_ns=monotonic_s * SECOND)


@pytest.mark.parametrize(
    ("clock", "offsets", "errors", "methods"),
    [
        pytest.param("a t", (0, 1000), (0, 5), ("same", "exchange"), id="rank 0 reads the launcher's clock"),
        pytest.param("b t", (-1000, 0), (5, 0), ("exchange", "same"), id="rank 1 does"),
        # Rank 0's shows 100 s at the wall's 500, the launcher's 130 s at the wall's 510: 20 s less at one instant.
        pytest.param("c t", (-20, 980), (None, None), ("wall", "wall"), id="neither: wall clocks are taken to agree"),
        pytest.param(
            "a u", (-20, 980), (None, None), ("wall", "wall"), id="another time namespace of rank 0's machine"
        ),
    ],
)
def test_clocks_against_the_launchers(clock, offsets, errors, methods) -> None:
    said = roll(rank(0, "a"), rank(1, "b", monotonic_s=1100), offsets_s=(0, 1000))
    found = launcher_clocks(said, said.clocks, here(clock, wall_s=510, monotonic_s=130))
    assert tuple(one.offset_ns // SECOND for one in found) == offsets
    assert tuple(one.error_ns for one in found) == errors
    assert tuple(one.method for one in found) == methods


def test_other_machines_are_told_of_all_together() -> None:
    record = machine.machine((), roll(rank(0, "a"), rank(1, "a"), rank(2, "b")))
    assert record.hosts == ("on-a", "on-b")
    assert (record.cores, record.logical_cores, record.memory_bytes) == (8, 16, 32)
    assert (record.cpu, record.platform, record.gpus) == ("a processor", "Linux", ("A100", "A100"))


def test_this_machine_is_told_of_as_before() -> None:
    from paceline import host

    record = machine.machine((), roll(rank(0, host.boot_id())))
    assert record.cores == machine.this_machine().cores and record.cpu == machine.this_machine().cpu
    assert record.clocks[0].method == ("same" if host.time_namespace() == "t" else "wall")


def test_what_was_said_survives_the_disk(tmp_path) -> None:
    folder = RunFolder(tmp_path)
    assert machine.allocation_record(folder) is None
    complaint = Complaint(name="n", severity="info", what="w", right="r", next="x", ranks=(1,))
    said = roll(rank(0, "a", versions={"torch": "2"}, variables={"RANK": "0"}), rank(1, "b"))
    write_record(folder.allocation_check, said)
    assert machine.allocation_record(folder) == said
    record = machine.machine(
        (), AllocationCheck(refused=True, ranks=said.ranks, complaints=(complaint,), clocks=said.clocks)
    )
    write_record(folder.machine, record)
    assert read_record(folder.machine, Machine) == record
    folder.allocation_check.write_text("{")
    assert machine.allocation_record(folder) is None
