"""What the processes of a run are to one another."""

from dataclasses import replace

from light_ranks.light_launch import point
from paceline.records import process_roles

SERVED = replace(point(3, threads=2), options={"servers": 2, "server_threads": 4})


def test_ranks_come_first_then_servers_then_the_coordinator():
    assert [SERVED.role(process) for process in range(6)] == ["rank"] * 3 + ["server"] * 2 + ["coordinator"]
    assert [process_roles.threads(SERVED, process) for process in range(6)] == [2, 2, 2, 4, 4, 1]
    assert [process_roles.cores(SERVED, process) for process in range(6)] == [2, 2, 2, 4, 4, 0]


def test_they_are_called_by_their_role_and_their_number_in_it():
    assert [process_roles.name(SERVED, process) for process in (2, 3, 4, 5)] == [
        "rank 2",
        "server 0",
        "server 1",
        "coordinator",
    ]
    assert process_roles.title(SERVED, 2) == "Rank 2 of 3"
    assert process_roles.title(SERVED, 4) == "Server 1 (process 4 of 6)"
    assert process_roles.title(SERVED, 5) == "Coordinator (process 5 of 6)"


def test_without_servers_all_are_ranks():
    plain = point(2)
    assert [(process_roles.name(plain, rank), process_roles.cores(plain, rank)) for rank in (0, 1)] == [
        ("rank 0", 1),
        ("rank 1", 1),
    ]
    assert process_roles.title(plain, 1) == "Rank 1 of 2"
