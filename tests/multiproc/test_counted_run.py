"""A real run with a server: every process is counted, and its account of real time adds up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from light_ranks.light_launch import launch, manifest, point
from paceline.analyze.run.cpu_time import cpu_times
from paceline.analyze.run.run_summary import run_analysis
from paceline.launch.launcher import Outcome
from paceline.launch.local import LocalLauncher
from paceline.storage.folder import RunFolder
from paceline.storage.run_counters import read_counters
from paceline.storage.run_trace import read_run
from paceline.units import seconds


@pytest.fixture(scope="module")
def ran(tmp_path_factory, digits_folder) -> tuple[RunFolder, Outcome]:
    """One rank, one server, one coordinator, for an epoch; counters of an earlier attempt lay in the folder."""
    path = tmp_path_factory.mktemp("counted")
    asked = replace(point(1), strategy="parameter-server", options={"servers": 1}, data_digest="")
    asked = replace(asked, train=replace(asked.train, batch_global=256, lr=0.01))
    folder = RunFolder(Path(path))
    folder.counters.mkdir()
    folder.rank_counters(7).write_bytes(b"of an earlier attempt")
    told = replace(manifest(asked), data_folder=digits_folder)
    return folder, launch(path, told, LocalLauncher(), heartbeat_s=120)


def test_every_process_is_counted_from_its_start_to_its_end(ran) -> None:
    folder, outcome = ran
    counters = read_counters(folder)
    assert [each.rank for each in counters] == [0, 1, 2]
    assert [report.role for report in outcome.reports] == ["rank", "server", "coordinator"]
    for each, report in zip(counters, outcome.reports, strict=True):
        assert len(each) >= 2 and not each.truncated
        assert outcome.started_at_ns < each.at_ns[0] < each.at_ns[-1] < outcome.ended_at_ns
        assert each.at_ns[-1] >= report.ended_at_ns, "the last sample is taken when all is done"
        assert each.last("comm_user_ns") is not None, "gloo's threads were not found by their names"
        assert each.last("peak_bytes") > 50e6


def test_the_account_of_real_time_adds_up(ran) -> None:
    folder, outcome = ran
    run = read_run(folder)
    found = cpu_times(
        read_counters(folder),
        ranks=run.ranks,
        started_at_ns=outcome.started_at_ns,
        ended_at_ns=outcome.ended_at_ns,
        lines=run_analysis(run).lines,
    )
    assert found is not None and found.problems == ()
    assert found.whole.real_s == pytest.approx(seconds(outcome.ended_at_ns - outcome.started_at_ns))
    for each in found.processes:
        assert each.user_s > 0.1, "importing torch takes longer"
        assert each.main_s + each.main_run_queue_wait_s <= each.real_s * 1.02 + 0.1
        assert each.main_s + (each.comm_s or 0.0) <= (each.user_s + each.system_s) * 1.02 + 0.1
    assert found.processes[0].exposed_s is not None and found.processes[1].exposed_s is None
    assert "1 rank and 2 other processes" in found.sentence


def test_what_an_earlier_attempt_counted_is_gone(ran) -> None:
    folder, _ = ran
    assert not folder.rank_counters(7).exists()
