"""A rank that runs a script: what of its outcome is reported, what is refused; with real ranks: tests/scripts_run."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch.distributed as dist

from light_ranks.light_launch import manifest, point
from paceline.errors import RunError
from paceline.identity import Identity, script_environment
from paceline.records.run import STOPPED, ScriptFigures
from paceline.records.script_outcome import ScriptOutcome
from paceline.records.settings import ScriptSettings
from paceline.storage.folder import RunFolder
from paceline.training import script_session
from paceline.training.script_session import ScriptRank

ALONE = Identity(
    rank=0,
    size=1,
    local_rank=0,
    local_size=1,
    launcher="none",
    host="here",
    store_host="127.0.0.1",
    store_port=0,
    store_fd=None,
    parent_pid=None,
)
OUTCOME = ScriptOutcome(
    script="train.py",
    arguments=(),
    rank=0,
    size=1,
    host="here",
    pid=1,
    exit_code=0,
    error=None,
    traceback=None,
    steps=11,
    samples=88,
    timed_steps=10,
    timed_samples=80,
    timed_from_ns=1_000_000_000,
    timed_to_ns=3_500_000_000,
    device="cpu",
    backend="gloo",
    found=("DDP",),
    notes=("A note.",),
)


def rank(folder: Path) -> ScriptRank:
    point_of_script = replace(point(1), script=ScriptSettings(path="train.py"))
    return ScriptRank(ALONE, RunFolder(folder), manifest(point_of_script), 0)


def failed(**how: object) -> ScriptOutcome:
    return replace(OUTCOME, **how)  # pyright: ignore[reportArgumentType]


def test_a_script_that_ended_well_is_done_with_its_timed_steps(tmp_path: Path) -> None:
    report = rank(tmp_path)._ended(OUTCOME)
    assert (report.status, report.error, report.steps) == ("done", None, 11)
    assert report.script == ScriptFigures(samples=80, timed_s=2.5, found=("DDP",), notes=("A note.",))
    assert (report.device, report.backend) == ("cpu", "gloo")
    assert script_session._exit_code(OUTCOME) == 0


def test_without_a_second_step_nothing_is_timed(tmp_path: Path) -> None:
    report = rank(tmp_path)._ended(failed(steps=1, timed_samples=None, timed_from_ns=None, timed_to_ns=None))
    assert (report.script.samples, report.script.timed_s) == (None, None)


@pytest.mark.parametrize(
    ("how", "error", "kind", "code"),
    [
        ({"exit_code": 3}, "The script ended with exit code 3.", "own", 3),
        ({"exit_code": 1, "error": "no data"}, "The script ended with exit code 1: no data", "own", 1),
        (
            {"exit_code": 1, "error": "ValueError: no", "traceback": "Traceback\nValueError: no"},
            "ValueError: no",
            "own",
            1,
        ),
        (
            {"exit_code": 1, "error": "RuntimeError: [gloo] Connection closed by peer", "traceback": "Traceback"},
            "RuntimeError: [gloo] Connection closed by peer",
            "peer",
            1,
        ),
        ({"exit_code": STOPPED}, f"The script ended with exit code {STOPPED}.", "own", 1),
    ],
)
def test_how_a_script_failed_is_told(tmp_path: Path, how: dict, error: str, kind: str, code: int) -> None:
    report = rank(tmp_path)._ended(failed(**how))
    assert (report.status, report.error, report.error_kind) == ("failed", error, kind)
    assert script_session._exit_code(failed(**how)) == code


def test_a_script_that_was_changed_meanwhile_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    with pytest.raises(RunError, match="cannot be read on this host"):
        script_session._check_unchanged(path, "")
    path.write_text("print(1)\n")
    with pytest.raises(RunError, match="was changed since this run was planned"):
        script_session._check_unchanged(path, "0" * 64)


def test_a_warned_script_is_not_killed_by_the_warning() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    signal.pthread_sigmask(signal.SIG_BLOCK, script_session.SIGNALS)  # as the wrapper of a scheduler's job leaves them
    try:
        script_session._unblock_warnings()
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & set(script_session.SIGNALS)
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_the_environment_is_torchruns_on_every_host() -> None:
    third = replace(ALONE, rank=3, size=5, local_rank=0, local_size=2)
    told = script_environment(third, (3, 2), address="10.0.0.1", port=4321)
    assert {name: told[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")} == {
        "RANK": "3",
        "WORLD_SIZE": "5",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "2",
    }
    assert (told["MASTER_ADDR"], told["MASTER_PORT"]) == ("10.0.0.1", "4321")
    assert (told["GROUP_RANK"], told["GROUP_WORLD_SIZE"]) == ("1", "2")
    assert script_environment(ALONE, (1,), address="127.0.0.1", port=1)["GROUP_RANK"] == "0"


def test_rank_0_keeps_the_store_until_every_rank_is_done() -> None:
    store, size = dist.HashStore(), 3
    ranks = [replace(ALONE, rank=number, size=size) for number in range(size)]
    first = threading.Thread(target=script_session._wait_for_other_ranks, args=(store, ranks[0]), daemon=True)
    first.start()
    script_session._wait_for_other_ranks(store, ranks[2])  # the others go when they are done
    first.join(4 * script_session._POLL_S)
    assert first.is_alive()
    script_session._wait_for_other_ranks(store, ranks[1])
    first.join(20)
    assert not first.is_alive()
