"""What the probe costs: python -m bench.overhead [--rounds N] [--write]

The same steps with the probe on and off, in blocks that take turns within one process (bench/overhead_rank.py);
torch.profiler on the same loop beside it. With 4 ranks on fewer cores, waiting hides what a rank loses: there CPU time
is compared. Nothing else may run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from bench.claims import Claim, machine_lines, ratio_text, table
from paceline.analyze.study.stats import ratio_interval
from paceline.data.store import prepare
from paceline.identity import local_environment
from paceline.records.study import DataSettings

ROOT = Path(__file__).parents[1]
PATIENCE_S = 1800
BLOCK = 30
"""Steps of one block: more than a second, so that counters are sampled in it."""
MOST = 1.01
"""One per cent of a step."""


def ranks(data: Path, size: int, rounds: int) -> list[dict[str, dict[str, list[float]]]]:
    """What every rank of a group measured."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.overhead_rank", str(data), str(rounds), str(BLOCK)],
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
    wall = ranks(data, 2, rounds)[0]["wall"]
    against = "the same steps, probe off"
    on, again, profiler = (ratio_interval(wall[way], wall["off"]) for way in ("on", "again", "profiler"))
    return [
        Claim("step of 2 ranks, ddp, probe off again", against, ratio_text(again), "noise", True),
        Claim("step of 2 ranks, ddp, probe on", against, ratio_text(on), f"at most {MOST}", on.median <= MOST),
        Claim("step of 2 ranks, ddp, torch.profiler on", against, ratio_text(profiler), "shown", True),
    ]


def cpu_claims(data: Path, rounds: int) -> list[Claim]:
    """CPU seconds of a step of four ranks, all threads of all of them."""
    said = [rank["cpu"] for rank in ranks(data, 4, rounds)]
    cpu = {way: [sum(block) for block in zip(*(own[way] for own in said), strict=True)] for way in said[0]}
    against = "the same steps, probe off"
    on, again, profiler = (ratio_interval(cpu[way], cpu["off"]) for way in ("on", "again", "profiler"))
    return [
        Claim("CPU time of a step of 4 ranks, probe off again", against, ratio_text(again), "noise", True),
        Claim("CPU time of a step of 4 ranks, probe on", against, ratio_text(on), f"at most {MOST}", on.median <= MOST),
        Claim("CPU time of a step of 4 ranks, torch.profiler on", against, ratio_text(profiler), "shown", True),
    ]


def page(claims: list[Claim], rounds: int, load_before: float) -> str:
    """docs/benchmarks-overhead.md: the table with machine, versions and protocol."""
    return f"""# Benchmark of the probe's cost

Made by `python -m bench.overhead --write` on {time.strftime("%Y-%m-%d")}. Load average of the machine before it began:
{load_before:.2f}.

{table(claims)}

{machine_lines()}
- Protocol: `cnn-690k` with ddp, global batch 128, one thread a rank. Blocks of {BLOCK} steps with the probe on (spans,
  every message with its completion, counters, the threads that write them) and off (none of it) take turns within one
  process, in an order drawn for each of {rounds} rounds. Starting and stopping torch.profiler is not in its time,
  only the steps meanwhile.
- Two ranks are pinned to a core each; four share what there is, so that a rank's loss can hide in another's wait: there
  CPU time of all threads of all ranks is compared.
- Beside each ratio of medians stands the interval of the ratios within each round (docs/glossary.md: interval).
  *Noise*: how far the ratio of a thing to itself is from 1.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.overhead")
    parser.add_argument("--rounds", type=int, default=25, help="how often all take turns (default 25)")
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
