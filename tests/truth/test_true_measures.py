"""What the traces of real ranks say, against what is known by other means: delays, models, links, the profiler."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from bench.fault_table import Fault
from bench.live import LiveRanks

from paceline.analyze.run.arrivals import sums_until
from paceline.analyze.run.messages import messages
from paceline.analyze.run.run_summary import run_analysis, trace_summary
from paceline.analyze.run.run_timeline import WAIT
from paceline.records.rank_trace import SPAN_KINDS
from paceline.records.trace_summary import MessageKind, RunTrace, TraceSummary
from paceline.storage.folder import RunFolder
from paceline.storage.run_trace import read_run

PROGRAM = Path(__file__).with_name("truth_rank.py")
# bench/fault_model.py: two convolutions and a dense layer on 8×8 images of 10 classes.
SHAPES = ((64, 1, 3, 3), (64,), (128, 64, 3, 3), (128,), (10, 128), (10,))
GRADIENTS = sum(int(np.prod(shape)) for shape in SHAPES)
STEPS = 8
MEASUREMENTS = 3
"""Of each duration: another process may disturb one of them, so their median has to be right."""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRanks]:
    with LiveRanks(PROGRAM, 2, log=tmp_path_factory.mktemp("ranks") / "log") as live:
        yield live


def trained(ranks: LiveRanks, folder: Path, data: Path, action: str = "train", **settings) -> tuple[RunTrace, list]:
    """A run with a fault in it or none, and what its ranks said."""
    fault = Fault(**{"number": 1, "kind": "none", "ranks": 2, "who": None, "rows": (), "steps": STEPS} | settings)
    answers = ranks.ask(action, folder=str(folder), data=str(data), fault=asdict(fault))
    return read_run(RunFolder(folder)), answers


@pytest.mark.parametrize("strategy", ["ddp", "flat"])
def test_a_delayed_rank_is_waited_for_as_long_as_it_is_late(ranks, digits, tmp_path, strategy) -> None:
    """Step by step, in the median: within 5 % of what the ranks' own stamps say, or 10 ms.

    What else the machine does to them between sleep and message is in the stamps, too.
    """
    found = [waits_and_delays(ranks, tmp_path / str(n), digits, strategy) for n in range(MEASUREMENTS)]
    late_s = statistics.median(statistics.median(late) for _, late in found)
    off_s = statistics.median(statistics.median(abs(waits - late)) for waits, late in found)
    assert late_s > 0.15
    assert off_s < max(0.05 * late_s, 0.01), (off_s, found)


def waits_and_delays(ranks: LiveRanks, folder: Path, data: Path, strategy: str) -> tuple[np.ndarray, np.ndarray]:
    """How long rank 0 waited in each step by its trace, and how late rank 1 was by the ranks' own stamps; seconds."""
    run, said = trained(
        ranks, folder, data, "stamped", strategy=strategy, who=1, where="forward", delay_s=0.2, steps=STEPS
    )
    assert min(said[1]["taken_s"]) >= 0.2
    late_s = (np.array(said[1]["ready_ns"]) - np.array(said[0]["ready_ns"])) / 1e9
    prompt = run_analysis(run).lines[0]
    steps = np.flatnonzero(run.traces[0].kind == SPAN_KINDS.index("step"))
    starts, ends = run.traces[0].start_ns[steps], run.traces[0].end_ns[steps]
    waits_s = (sums_until(prompt, ends) - sums_until(prompt, starts))[WAIT] / 1e9
    assert len(waits_s) == len(late_s) == STEPS
    return waits_s, late_s


def gradients(found: TraceSummary, *, at_least: int = 1000) -> list[MessageKind]:
    """All-reduces of gradients: those of sums and losses are a few bytes."""
    return [kind for kind in found.messages if kind.operation == "allreduce_" and kind.payload_bytes >= at_least]


@pytest.mark.parametrize(
    ("strategy", "dtype", "width"), [("flat", "float32", 4), ("ddp", "float32", 4), ("ddp-fp16", "float16", 2)]
)
def test_messages_are_as_many_and_as_large_as_model_and_strategy_imply(
    ranks, digits, tmp_path, strategy, dtype, width
) -> None:
    """The whole gradient once a step, DDP's warm-up pass included; between two ranks a ring sends it once each way."""
    run, _ = trained(ranks, tmp_path, digits, strategy=strategy)
    found = trace_summary(run)
    (kind,) = gradients(found)
    passes = STEPS + (strategy != "flat")
    assert (kind.payload_bytes, kind.count, kind.dtype) == (GRADIENTS * width, passes, dtype)
    sent = {(cell.source, cell.target): cell for cell in found.matrix}
    assert sent[1, 0].estimated
    assert 0 <= sent[1, 0].payload_bytes - kind.payload_bytes * passes < 1000, (
        "besides gradients there are sums of losses"
    )
    broadcast = sum(k.payload_bytes * k.count for k in found.messages if k.operation == "broadcast_")
    assert broadcast >= GRADIENTS * 4, "rank 0's parameters are the first that all have"
    assert sent[0, 1].payload_bytes == sent[1, 0].payload_bytes + broadcast
    assert found.steps == STEPS


def test_local_sgd_sends_parameters_and_state_every_few_steps(ranks, digits, tmp_path) -> None:
    """Adam's two moments go along: three copies of the parameters, every eighth step, and none between."""
    run, _ = trained(ranks, tmp_path, digits, strategy="local-sgd", steps=17)
    sent = gradients(trace_summary(run))
    assert sum(kind.payload_bytes * kind.count for kind in sent) == 3 * GRADIENTS * 4 * 3, sent  # and once at the end


def test_completions_are_the_profilers(ranks, tmp_path) -> None:
    """At or after what Kineto saw in gloo's thread, and no later than completions are seen late here."""
    found = [lateness_to_profiler(ranks, tmp_path / str(n), repeats=16) for n in range(MEASUREMENTS)]
    off_s = statistics.median(off for off, _ in found)
    assert off_s > -0.001, "over before it was"
    assert off_s < max(statistics.median(p99 for _, p99 in found), 0.005), found


def lateness_to_profiler(ranks: LiveRanks, folder: Path, *, repeats: int) -> tuple[float, float]:
    """How much later than by the profiler messages are completed, in the median, and the run's own p99; seconds."""
    said = ranks.ask("profiled", folder=str(folder), payload_bytes=1 << 20, repeats=repeats)
    run = read_run(RunFolder(folder))
    own = messages(run.traces, 2)[0]
    reduced = np.flatnonzero(np.array([run.traces[0].operation[row] == "allreduce_" for row in own.row]))
    ours = own.completed_ns[reduced]
    theirs = np.min(np.array(said), axis=0)  # over for all when it is for one
    assert len(ours) == len(theirs) == repeats
    late = trace_summary(run).lateness
    assert late is not None and late.messages == 2 * (repeats + 2)  # and barriers
    return statistics.median((ours - theirs) / 1e9), late.p99_s


@pytest.fixture(scope="module")
def far_ranks(net_hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRanks]:
    with LiveRanks(PROGRAM, 2, log=tmp_path_factory.mktemp("far") / "log", hosts=net_hosts) as live:
        yield live


@pytest.mark.parametrize(("rate", "bits_per_s", "payload"), [("1gbit", 1e9, 16 << 20), ("100mbit", 1e8, 4 << 20)])
def test_bus_bandwidth_is_that_of_the_wire(net_hosts, far_ranks, tmp_path, rate, bits_per_s, payload) -> None:
    """Within 15 % of the rate that tc shapes the links to, headers included, in the median of five."""
    found = []
    with net_hosts.shaped(rate):
        for measurement in range(5):
            folder = tmp_path / str(measurement)
            far_ranks.ask("exchange", folder=str(folder), payload_bytes=payload, repeats=4)
            (kind,) = (
                kind for kind in trace_summary(read_run(RunFolder(folder))).messages if kind.payload_bytes == payload
            )
            assert kind.count == 4 and kind.bus_bytes_per_s is not None
            found.append(kind.bus_bytes_per_s * 8 / bits_per_s)
    assert 0.85 < statistics.median(found) < 1.15, found
