"""What the machine or cluster at hand cannot hold is left out, with its reason, where a study says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.errors import RequestError
from paceline.records.results import NotRun
from paceline.records.settings import LaunchSettings, RunSettings, TrainSettings
from paceline.records.study import Point, Study
from paceline.studies.execute.fits import fitting_points
from paceline.studies.expand.expand import expand

STUDY = Study(
    name="s",
    fits="machine",
    train=TrainSettings(batch_per_rank=4, epochs=1),
    run=RunSettings(ranks=(1, 2, 4, 5, 8)),
)


class Launcher:
    """Refuses points with as many ranks as it is told."""

    def __init__(self, *refused: int) -> None:
        self._refused = refused

    def check(self, point: Point) -> None:
        if point.ranks in self._refused:
            raise RequestError(f"{point.ranks} ranks need more memory than there is.")


def divided(study: Study, *refused: int, cores: int = 2) -> tuple[list[int], tuple[NotRun, ...]]:
    points = expand(study, data_digest="", model_digest="")
    kept, left_out = fitting_points(study, points, lambda point: Launcher(*refused), cores=cores)
    assert len(kept) + len(left_out) == len(points)
    return [point.ranks for point in kept], left_out


def test_up_to_twice_the_cores_are_run_and_more_are_listed_with_their_reason() -> None:
    kept, left_out = divided(STUDY)
    assert kept == [1, 2, 4]
    assert [each.label for each in left_out] == ["5 ranks", "8 ranks"]
    assert left_out[0].settings == {"run.ranks": 5}
    assert left_out[0].reason == "It has 5 ranks, and this machine 2 cores: more than twice as many are not run."


def test_otherwise_every_point_is_run() -> None:
    assert divided(replace(STUDY, fits="")) == ([1, 2, 4, 5, 8], ())


def test_servers_count_and_what_varies_is_named() -> None:
    run = replace(STUDY.run, ranks=(2,), strategy="parameter-server")
    kept, left_out = divided(replace(STUDY, run=run, vary={"run.servers": (1, 2, 3)}))
    assert kept == [2, 2]
    assert left_out[0].settings == {"run.ranks": 2, "run.servers": 3}
    assert left_out[0].reason.startswith("It has 2 ranks and 3 servers, and this machine 2 cores")


def test_every_thread_counts() -> None:
    run = replace(STUDY.run, ranks=(1, 2))
    kept, left_out = divided(replace(STUDY, run=run, vary={"run.threads": (1, 2, 4, 16)}))
    assert kept == [1, 2, 1, 2, 1], "up to four threads on two cores"
    assert [each.settings["run.threads"] for each in left_out] == [4, 16, 16]
    assert left_out[1].reason == (
        "It has 1 rank of 16 threads, and this machine 2 cores: more than twice as many are not run."
    )


def test_threads_of_servers_count_too() -> None:
    run = replace(STUDY.run, ranks=(2,), strategy="parameter-server")
    kept, left_out = divided(replace(STUDY, run=run, vary={"run.server_threads": (1, 2, 3)}))
    assert kept == [2, 2]
    assert left_out[0].reason.startswith("It has 2 ranks and 1 server of 3 threads, and this machine 2 cores")


@pytest.mark.parametrize(
    ("launcher", "machines", "hosts", "said"),
    [
        ("local", (), [1], "It needs 2 hosts, and the launcher local has this machine alone."),
        ("mpi", (), [1], "It needs 2 hosts, and launch.machines names none."),
        ("mpi", ("a", "b"), [1, 2], "It needs 4 hosts, and launch.machines names 2 hosts."),
        ("slurm", (), [1, 2, 4], ""),  # how many there are is the scheduler's to say
    ],
)
def test_more_hosts_than_there_are(launcher: str, machines: tuple[str, ...], hosts: list[int], said: str) -> None:
    study = replace(
        STUDY,
        run=replace(STUDY.run, ranks=(4,), launcher=launcher),
        launch=LaunchSettings(machines=machines),
        vary={"run.hosts": (1, 2, 4)},
    )
    points = expand(study, data_digest="", model_digest="")
    kept, left_out = fitting_points(study, points, lambda point: Launcher(), cores=4)
    assert [point.hosts for point in kept] == hosts
    assert [each.reason for each in left_out][:1] == ([said] if said else [])


def test_what_a_launcher_refuses_is_left_out_with_its_words() -> None:
    kept, left_out = divided(STUDY, 4)
    assert kept == [1, 2] and left_out[0].reason == "4 ranks need more memory than there is."


def test_nothing_may_be_left() -> None:
    kept, left_out = divided(replace(STUDY, run=replace(STUDY.run, ranks=(5, 8))))
    assert not kept and len(left_out) == 2
