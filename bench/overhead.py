"""What the probe costs: python -m bench.overhead [--rounds N] [--write]

The same steps with the probe on and off, in blocks that take turns within one process (bench/overhead_rank.py);
torch.profiler on the same loop beside it. With 4 ranks on fewer cores, waiting hides what a rank loses: there CPU time
is compared. Nothing else may run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.claims import Claim, machine_lines, ratio_text, table
from paceline.analyze.stats.intervals import median_interval
from paceline.data.store import prepare
from paceline.identity import local_environment
from paceline.records.results import Interval
from paceline.records.settings import DataSettings

ROOT = Path(__file__).parents[1]
PATIENCE_S = 1800
BLOCK = 4
"""Steps: a quarter of a second."""
MOST = 1.01
"""One per cent of a step."""
PROFILED = 10
"""torch.profiler takes seconds to start and stop: it has so many times fewer rounds."""


def ranks(data: Path, size: int, rounds: int, *ways: str) -> list[dict[str, dict[str, list[float]]]]:
    """What every rank of a group measured."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.overhead_rank", str(data), str(rounds), *ways],
            cwd=ROOT,
            env=os.environ | local_environment(rank, size, store_port=port, store_fd=None, parent_pid=os.getpid()),
            stdout=subprocess.PIPE,
        )
        for rank in range(size)
    ]
    try:
        return [json.loads(rank.communicate(timeout=PATIENCE_S)[0]) for rank in started]
    finally:
        for rank in started:
            rank.kill()


def time_claims(data: Path, rounds: int) -> list[Claim]:
    """The time of a step of two ranks."""

    def measured(rounds: int, *ways: str) -> dict[str, list[float]]:
        return ranks(data, 2, rounds, *ways)[0]["wall"]

    return _claims("time of a step of 2 ranks", measured, rounds)


def cpu_claims(data: Path, rounds: int) -> list[Claim]:
    """CPU seconds of a step of four ranks, all threads of all of them."""

    def measured(rounds: int, *ways: str) -> dict[str, list[float]]:
        said = [rank["cpu"] for rank in ranks(data, 4, rounds, *ways)]
        return {way: [sum(block) for block in zip(*(own[way] for own in said), strict=True)] for way in ways}

    return _claims("CPU time of a step of 4 ranks", measured, rounds)


def _claims(what: str, measured: Callable[..., dict[str, list[float]]], rounds: int) -> list[Claim]:
    took = measured(rounds, "off", "on", "again")
    either_off = [math.sqrt(first * second) for first, second in zip(took["off"], took["again"], strict=True)]
    beside = measured(max(rounds // PROFILED, 1), "off", "profiler")
    on, again = _paired(took["on"], either_off), _paired(took["again"], took["off"])
    profiler = _paired(beside["profiler"], beside["off"])
    against = "the same steps, probe off"
    return [
        Claim(f"{what}, probe off again", against, ratio_text(again), "noise", True),
        Claim(f"{what}, probe on", against, ratio_text(on), f"at most {MOST}", on.median <= MOST),
        Claim(f"{what}, torch.profiler on", against, ratio_text(profiler), "shown", True),
    ]


def _paired(over: Sequence[float], under: Sequence[float]) -> Interval:
    """The median of the ratios within each round."""
    return median_interval([above / below for above, below in zip(over, under, strict=True)])


def page(claims: list[Claim], rounds: int, load_before: float) -> str:
    """docs/benchmarks-overhead.md: the table with machine, versions and protocol."""
    return f"""# Benchmark of the probe's cost

Made by `python -m bench.overhead --write` on {time.strftime("%Y-%m-%d")}. Load average of the machine before it began:
{load_before:.2f}.

{table(claims)}

{machine_lines()}
- Protocol: `cnn-690k` with ddp, global batch 128, one thread a rank. Blocks of {BLOCK} steps with the probe on (spans,
  every message with its completion, counters once a second) and off (none of it) take turns within one process, in an
  order drawn for each of {rounds} rounds. What is written every ten seconds falls on all alike. torch.profiler has
  {rounds // PROFILED} rounds of its own; starting and stopping it is not in its time.
- Every rank is pinned to a core. Where four share two, a rank's loss can hide in another's wait: there CPU time of all
  threads of all ranks is compared.
- A figure is the median of the ratios within each round, with its interval (docs/glossary.md: interval); the probe is
  compared with the geometric mean of the two blocks without it. *Noise*: how far a thing's ratio to itself is from 1.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.overhead")
    parser.add_argument("--rounds", type=int, default=600, help="how often all take turns (default 600)")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/benchmarks-overhead.md")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    data = prepare(DataSettings(dataset="mnist"), base=Path()).folder
    claims = [*time_claims(data, options.rounds), *cpu_claims(data, options.rounds)]
    print(table(claims))
    if options.write:
        (ROOT / "docs" / "benchmarks-overhead.md").write_text(page(claims, options.rounds, load_before))
    return 0 if all(claim.met for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
