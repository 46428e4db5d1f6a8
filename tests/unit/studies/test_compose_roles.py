"""The result of a run with servers."""

from dataclasses import replace

import pytest
from study_help import changed, report

from light_ranks.light_launch import manifest, point
from paceline.errors import RankError
from paceline.launch.launcher import Outcome
from paceline.records.run import RankReport
from paceline.studies.execute.compose import run_result

SERVED = replace(point(2), options={"servers": 2, "server_threads": 1, "staleness": 4})


def other(process: int, role: str, **said: object) -> RankReport:
    nothing = {"epochs": (), "test_loss": None, "test_accuracy": None, "load_s": None, "weights_sha256": None}
    return changed(report(process), **{"role": role, "steps": 99, **nothing, **said})


def composed(*reports: RankReport):
    told = manifest(SERVED)
    outcome = Outcome(started_at_ns=told.launched_at_ns, ended_at_ns=told.launched_at_ns + 10**9, reports=reports)
    return run_result(told, outcome, oversubscribed=False)


SERVERS = (other(2, "server", staleness=(9, 3, 4)), other(3, "server", staleness=(10, 6)), other(4, "coordinator"))


def test_only_ranks_that_train_make_the_result():
    result = composed(report(0), report(1), *SERVERS)
    assert (result.ranks, result.steps, result.parameters, result.load_s) == (2, 16, 170, 0.2)
    assert [line.epoch_s for line in result.epochs] == [2.0, 2.0]
    assert result.staleness_max == 2, "the stalest gradient of any server"


def test_a_run_without_staleness_says_none():
    assert composed(report(0), report(1), *(replace(each, staleness=()) for each in SERVERS)).staleness_max is None


def test_a_server_has_to_be_done():
    with pytest.raises(RankError, match=r"Server 1 \(process 3 of 5\) ended without a complete report"):
        composed(report(0), report(1), SERVERS[0], replace(SERVERS[1], status="failed"), SERVERS[2])


def test_a_missing_coordinator_is_noticed():
    with pytest.raises(RankError, match="5 processes were started, but reports came from: 0, 1, 2, 3"):
        composed(report(0), report(1), *SERVERS[:2])
