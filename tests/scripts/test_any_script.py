"""Scripts that know nothing of Paceline, with the probe and without: the same results, and everything found.

Most ranks are forked from one process that has loaded torch (forked_ranks.py); what needs a process of its own has one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from paceline.analyze.run.run_summary import trace_summary
from paceline.records.rank_trace import SPAN_KINDS, RankTrace
from paceline.records.script_outcome import ScriptOutcome
from paceline.records.trace_summary import RunTrace, TraceSummary
from paceline.storage.codec import read_record
from paceline.storage.folder import RunFolder
from paceline.storage.run_trace import read_run

HERE = Path(__file__).parent
PATIENCE_S = 200


@dataclass(frozen=True)
class Ran:
    """A script that has ended, on all its ranks."""

    codes: list[int]
    folder: Path

    @property
    def outputs(self) -> list[str]:
        return [path.read_text() for path in sorted(self.folder.glob("out-*.txt"))]

    @property
    def checksums(self) -> list[str]:
        return [line for output in self.outputs for line in re.findall(r"^checksum .*", output, re.MULTILINE)]

    @property
    def record(self) -> RunFolder:
        (found,) = (self.folder / "runs").iterdir()
        return RunFolder(found)

    @property
    def run(self) -> RunTrace:
        return read_run(self.record)

    @property
    def anatomy(self) -> TraceSummary:
        return trace_summary(self.run)

    def outcome(self, rank: int = 0) -> ScriptOutcome:
        return read_record(self.record.rank_script(rank), ScriptOutcome)


class Ranks:
    """Runs scripts on ranks that are forked from one process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        # No threads of torch's own: what is compared bit by bit must not depend on how busy the machine is.
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, HERE / "own_network.py", HERE / "forked_ranks.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __call__(self, script: str, *arguments: str, size: int = 1, probed: bool = True) -> Ran:
        assert self.process.stdin is not None and self.process.stdout is not None
        self._number += 1
        folder = self._folder / f"{self._number}-{script}"
        folder.mkdir()
        told = {"script": str(HERE / f"{script}.py"), "arguments": arguments, "size": size, "probed": probed}
        self.process.stdin.write(json.dumps(told | {"folder": str(folder)}) + "\n")
        self.process.stdin.flush()
        return Ran(json.loads(self.process.stdout.readline()), folder)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    started = Ranks(tmp_path_factory.mktemp("scripts"))
    yield started
    try:
        started.process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        started.process.kill()
        started.process.communicate()


def kinds(trace: RankTrace, *, step: int | None = None) -> Counter[str]:
    rows = trace.kind if step is None else trace.kind[trace.step == step]
    return Counter(SPAN_KINDS[kind] for kind in rows)


def messages(trace: RankTrace) -> Counter[str | None]:
    return Counter(trace.operation[row] for row in range(len(trace)) if SPAN_KINDS[trace.kind[row]] == "collective")


def alone(folder: Path, *words: str, expected: int = 0) -> subprocess.CompletedProcess[str]:
    """A process of its own."""
    ended = subprocess.run(
        [sys.executable, HERE / "own_network.py", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == expected, ended.stderr
    return ended


def test_ddp_under_torchrun(ranks, tmp_path):
    """Two ranks that torchrun started, whose DataLoader has workers: they agree on a folder."""
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    torchrun += ["--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]
    script = str(HERE / "plain_ddp.py")
    ended = alone(tmp_path, *torchrun, "-m", "paceline.probe", script, "1", str(tmp_path / "weights"))
    ran, plain = Ran([0, 0], tmp_path), ranks("plain_ddp", "0", size=2, probed=False)
    assert plain.codes == [0, 0]
    # Both write to one pipe, and a line's end after its text: two texts may come before two ends.
    assert sorted(re.findall(r"checksum [-+.\de]+", ended.stdout)) == sorted(plain.checksums)
    assert f"paceline trace {ran.record.path}" in ended.stderr
    assert ended.stderr.count("12 steps, DDP, DataLoader, 1 optimizer.") == 1
    assert [trace.rank for trace in ran.run.traces] == [0, 1]
    gradient_bytes = 4 * (64 * 128 + 128 + 128 * 10 + 10)
    for trace in ran.run.traces:
        outcome = ran.outcome(trace.rank)
        assert (outcome.steps, outcome.samples, outcome.timed_samples) == (12, 96, 88)
        assert (outcome.rank, outcome.size, outcome.backend, outcome.exit_code) == (trace.rank, 2, "gloo", 0)
        assert outcome.found == ("DDP", "DataLoader", "1 optimizer") and outcome.notes == ()
        found = kinds(trace)
        assert found["step"] == found["backward"] == found["optimizer"] == 12
        assert found["forward"] == 24, "the model and the loss"
        assert found["input-wait"] == 14, "starting, 12 batches, and the end"
        assert found["evaluate"] == 1 and found["checkpoint"] == (trace.rank == 0)
        sent = [trace.bytes[row] for row in range(len(trace)) if trace.operation[row] == "allreduce_"]
        assert sent == [gradient_bytes] * 12
        assert {"imports", "rendezvous", "model"} == {trace.operation[row] for row in (trace.kind == 0).nonzero()[0]}
    assert ran.anatomy.steps == 12 and ran.anatomy.efficiencies is not None


def test_steps_follow_one_another(ranks):
    trace = ranks("accumulated", size=2).run.traces[0]
    steps = (trace.kind == SPAN_KINDS.index("step")).nonzero()[0]
    assert trace.start_ns[steps[1:]].tolist() == trace.end_ns[steps[:-1]].tolist()
    assert trace.step[steps].tolist() == list(range(5))


def test_gradient_accumulation(ranks):
    ran, plain = ranks("accumulated", size=2), ranks("accumulated", size=2, probed=False)
    assert (ran.codes, ran.checksums) == ([0, 0], plain.checksums)
    assert (ran.outcome().steps, ran.outcome().samples) == (5, 60)
    for trace in ran.run.traces:
        assert messages(trace)["allreduce_"] == 5, "once a step, not once a micro-batch"
        for step in range(1, 5):
            found = kinds(trace, step=step)
            assert (found["forward"], found["backward"], found["optimizer"], found["step"]) == (3, 3, 1, 1)


def test_optimizers_that_take_turns(ranks):
    ran, plain = ranks("adversarial", size=2), ranks("adversarial", size=2, probed=False)
    assert (ran.codes, ran.checksums) == ([0, 0], plain.checksums)
    outcome = ran.outcome()
    assert (outcome.steps, outcome.samples) == (6, 6 * 12), "a sample counts once, whatever it passes"
    assert outcome.found == ("DDP", "2 optimizers")
    trace = ran.run.traces[0]
    assert kinds(trace)["optimizer"] == 12 and kinds(trace, step=3)["optimizer"] == 2


def test_fully_sharded(ranks):
    ran, plain = ranks("fsdp2", size=2), ranks("fsdp2", size=2, probed=False)
    assert (ran.codes, ran.checksums) == ([0, 0], plain.checksums)
    assert (ran.outcome().steps, ran.outcome().samples, ran.outcome().found) == (6, 96, ("FSDP2", "1 optimizer"))
    for trace in ran.run.traces:
        sent, found = messages(trace), kinds(trace)
        assert (sent["_allgather_base_"], sent["_reduce_scatter_base_"]) == (6 * 4, 6 * 2)
        assert found["forward"] == 6 and found["communicate"] >= 6 * 6, "waits for the shards are seen"
    assert all(ledger["comm-transfer"] for ledger in ran.anatomy.ledgers_s)
    assert all(kind.total_s is not None for kind in ran.anatomy.messages), "the end of every message is known"


def test_messages_that_cannot_say_when_they_are_over_are_when_they_were_waited_for(ranks):
    ran = ranks("pairs", size=2)
    assert ran.codes == [0, 0] and ran.checksums == ["checksum 4.0"] * 2
    for trace, operation in zip(ran.run.traces, ("send", "recv_"), strict=True):
        assert messages(trace) == {operation: 3, "_reduce_scatter_base_": 1}
        sent = trace.kind == SPAN_KINDS.index("collective")
        assert (trace.end_ns[sent] >= trace.start_ns[sent]).all(), "all have an end"
    received = ran.run.traces[1]
    assert ((received.end_ns - received.start_ns)[received.kind == SPAN_KINDS.index("communicate")]).max() > 0.25e9


def test_mixed_precision_says_what_was_skipped(ranks):
    ran, plain = ranks("mixed_precision"), ranks("mixed_precision", probed=False)
    assert (ran.codes, ran.checksums) == ([0], plain.checksums)
    outcome = ran.outcome()
    assert (outcome.steps, outcome.samples) == (7, 8 * 16), "nothing that was computed is lost"
    assert outcome.notes == ("GradScaler skipped 1 update: the time before it is part of the next step.",)


@pytest.mark.parametrize("how", ["wrapped", "in-place", "function"])
def test_compiled_models_stay_whole(ranks, how):
    """Graphs, breaks and weights as without the probe; forward passes are seen unless they are inside a function."""
    ran, plain = ranks("compiled", how), ranks("compiled", how, probed=False)
    assert ran.outputs[0].splitlines()[:3] == plain.outputs[0].splitlines()
    assert "graphs 1 frames {'total': 1, 'ok': 1}" in plain.outputs[0], "nothing was compiled, so nothing was tested"
    found = kinds(ran.run.traces[0])
    assert (found["step"], found["backward"]) == (4, 4)
    if how == "function":
        assert found["forward"] == 0 and ran.outcome().samples is None
        assert ran.outcome().notes[0].startswith("No forward pass was found")
    else:
        assert found["forward"] == 8 and ran.outcome().samples == 4 * 16 and ran.outcome().notes == ()
    assert "torch.compile" in ran.outcome().found


def test_a_distributed_checkpoint_is_saved_and_loaded(ranks, tmp_path):
    ran = ranks("distributed_checkpoint", str(tmp_path / "probed"), size=2)
    plain = ranks("distributed_checkpoint", str(tmp_path / "plain"), size=2, probed=False)
    assert (ran.codes, ran.checksums) == ([0, 0], plain.checksums), ran.outputs


def test_exit_codes_are_the_scripts_own(ranks):
    ran = ranks("endings", "exits")
    assert ran.codes == [3] and ran.outcome().exit_code == 3 and ran.outcome().error is None
    assert ran.outcome().steps == 2
    ran = ranks("endings", "says")
    assert ran.codes == [1] and ran.outcome().error == "No data."
    assert ran.outputs[0].count("No data.") == 1


def test_an_error_on_one_rank(ranks):
    ran = ranks("endings", "raises", size=2)
    assert ran.codes == [1, 1]
    failed, told = ran.outcome(1), ran.outputs[1]
    assert failed.error == "Oops: on purpose" and failed.steps == 2
    assert told.count("Traceback (most recent call last)") == 1 and "on purpose" in told
    assert "paceline/probe" not in told and failed.traceback is not None and "paceline/probe" not in failed.traceback
    assert ran.outcome(0).error is not None and "Connection" in ran.outcome(0).error
    assert [kinds(trace)["step"] for trace in ran.run.traces] == [2, 2]


def test_an_error_inside_what_is_watched(ranks):
    ran = ranks("endings", "raises-in-forward")
    assert ran.codes == [1] and "mat1 and mat2" in ran.outputs[0]
    assert "paceline/probe" not in ran.outputs[0]
    assert kinds(ran.run.traces[0])["forward"] == 1


def test_a_child_that_the_script_forks_records_nothing(ranks):
    ran = ranks("endings", "forks")
    assert ran.codes == [0] and ran.outcome().steps == 2
    assert kinds(ran.run.traces[0])["step"] == 2


def test_a_script_without_steps_says_so(ranks):
    ran = ranks("endings", "idle")
    assert ran.codes == [0] and ran.outcome().steps == 0 and ran.outcome().timed_from_ns is None
    assert ran.outcome().notes[0].startswith("No steps were found: no optimizer of torch.optim")
    assert "paceline: 0 steps. No steps were found" in ran.outputs[0]


def test_an_interrupt_ends_it_by_the_signal(tmp_path):
    out = tmp_path / "run"
    words = ("-m", "paceline.probe", "--out", str(out), str(HERE / "endings.py"), "interrupted")
    ended = alone(tmp_path, *words, expected=-signal.SIGINT)
    assert ended.stderr.count("KeyboardInterrupt") == 1
    assert read_record(RunFolder(out).rank_script(0), ScriptOutcome).exit_code == 130
    again = alone(tmp_path, *words, expected=2)
    assert "has the spans of a run already" in again.stderr


def test_spawned_workers_do_not_run_the_script_again(tmp_path):
    (tmp_path / "spawning.py").write_text((HERE / "spawning.py").read_text())
    ended = alone(tmp_path, "-m", "paceline.probe", "--out", "run", "spawning.py")
    assert ended.stdout.splitlines() == ["imported as __main__", "imported as __mp_main__"]
    outcome = read_record(RunFolder(tmp_path / "run").rank_script(0), ScriptOutcome)
    assert (outcome.steps, outcome.samples) == (4, 20)


def frameworks_only(name: str):
    missing = importlib.util.find_spec(name) is None
    return pytest.mark.skipif(missing, reason=f"{name} is not installed")


@frameworks_only("lightning")
@pytest.mark.parametrize("size", [1, 2])
def test_lightning(ranks, size):
    ran, plain = (
        ranks("lightning_fit", str(size), size=size),
        ranks("lightning_fit", str(size), size=size, probed=False),
    )
    assert (ran.codes, ran.checksums) == ([0] * size, plain.checksums)
    assert (ran.outcome().steps, ran.outcome().samples) == (6, 96)
    found = kinds(ran.run.traces[0])
    assert found["backward"] == found["optimizer"] == 6
    assert found["forward"] == (12 if size == 1 else 6), "encoder and decoder are called one by one, or all by DDP"


@frameworks_only("accelerate")
def test_accelerate(ranks):
    ran, plain = ranks("accelerate_loop", size=2), ranks("accelerate_loop", size=2, probed=False)
    assert (ran.codes, ran.checksums) == ([0, 0], plain.checksums)
    assert (ran.outcome().steps, ran.outcome().samples) == (4, 64)
    found = kinds(ran.run.traces[0])
    assert (found["forward"], found["backward"], found["optimizer"]) == (8, 8, 4)


@frameworks_only("keras")
def test_keras(ranks):
    ran, plain = ranks("keras_fit"), ranks("keras_fit", probed=False)
    assert (ran.codes, ran.checksums) == ([0], plain.checksums)
    assert (ran.outcome().steps, ran.outcome().samples) == (10, 160)
    found = kinds(ran.run.traces[0])
    assert (found["forward"], found["backward"], found["optimizer"], found["evaluate"]) == (10, 10, 10, 5)
