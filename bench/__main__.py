"""Run every benchmark and keep the table: python -m bench [--rounds N] [--write]

Each claim is a ratio against a named peer. The two sides take turns within one run, because the
machine is never quite quiet; beside each ratio stands its interval, and the ratio of a thing to
itself shows the noise floor. Nothing else may run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.claims import Claim, machine_lines, ratio_text, table
from bench.memory import rss_anon_bytes
from paceline.analyze.stats.intervals import median_interval, ratio_interval
from paceline.data.store import prepare
from paceline.identity import local_environment
from paceline.records.results import Interval
from paceline.records.settings import DataSettings
from paceline.units import bytes_text, number_text

ROOT = Path(__file__).parent.parent


def loop_claims(data: Path, rounds: int) -> list[Claim]:
    """Our loop against the plain one; and the plain one against itself."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.loop_speed", str(data), str(3 * rounds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rates = json.loads(done.stdout)
    faster = ratio_interval(rates["ours"], rates["plain"])
    again = median_interval([b / a for a, b in zip(rates["plain"][::2], rates["plain"][1::2], strict=False)])
    speed = number_text(statistics.median(rates["ours"]))
    return [
        Claim("noise floor of the loop", "the plain loop's next block against its last", ratio_text(again), "1", True),
        Claim(
            f"samples/s of the loop, 1 rank × 1 thread ({speed})",
            "a plain PyTorch loop: eager, NCHW, DataLoader over tensors, Adam",
            ratio_text(faster),
            "at least 1.3",
            faster.median >= 1.3,
        ),
    ]


def rank_claims(data: Path, rounds: int) -> list[Claim]:
    """Two ranks against one, and against bare DDP: blocks that take turns in one pair of processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.rank_speed", str(data), str(3 * rounds)],
            cwd=ROOT,
            env=os.environ | local_environment(rank, 2, store_port=port, store_fd=None, parent_pid=os.getpid()),
            stdout=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=1800)[0] for rank in ranks]
    rates = json.loads(said[0])
    speedup = ratio_interval(rates["two"], rates["one"])
    against_bare = ratio_interval(rates["two"], rates["bare"])
    efficiency = Interval(
        median=speedup.median / 2,
        low=speedup.low / 2,
        high=speedup.high / 2,
        n=speedup.n,
        coverage=speedup.coverage,
    )
    return [
        Claim(
            "noise floor of ranks",
            "one rank alone against the same again",
            ratio_text(ratio_interval(rates["one"], rates["again"])),
            "1",
            True,
        ),
        Claim(
            "efficiency of 2 ranks × 1 thread, ddp",
            "one rank of one thread",
            ratio_text(efficiency),
            "at least 0.90",
            efficiency.median >= 0.90,
        ),
        Claim(
            "samples/s of 2 ranks, ddp, probe and records on",
            "a bare DDP script with the same tricks",
            ratio_text(against_bare),
            "at least 0.97",
            against_bare.median >= 0.97,
        ),
    ]


def memory_claims() -> list[Claim]:
    """What a rank holds for itself while it trains on all 60,000 images."""
    peer = int(subprocess.run([sys.executable, "-m", "bench.memory"], cwd=ROOT, stdout=subprocess.PIPE).stdout)
    peaks: dict[int, int] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for status in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    is_rank = b"paceline.training.worker" in status.read_bytes()
                except OSError:
                    continue
                if is_rank:
                    pid = int(status.parent.name)
                    peaks[pid] = max(peaks.get(pid, 0), rss_anon_bytes(pid))
            time.sleep(0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            _train(2, Path(scratch) / "memory", samples=60_000, epochs=1)
    finally:
        over.set()
        watcher.join()
    more = max(peaks.values()) - peer
    return [
        Claim(
            f"anonymous memory of a rank at its peak ({bytes_text(max(peaks.values()))}), 60,000 images of 47 MB",
            f"a process with torch, the same model and optimizer ({bytes_text(peer)})",
            f"{bytes_text(more)} more",
            "at most 150 MB more",
            more <= 150e6,
        )
    ]


def _train(ranks: int, out: Path, *, samples: int, epochs: int) -> None:
    """One run of the default study."""
    settings = [f"data.train_samples={samples}", f"train.epochs={epochs}"]
    command = [sys.executable, "-m", "paceline", "study", "mnist-scaling", "--ranks", str(ranks), "--repeats", "1"]
    command += [word for setting in settings for word in ("--set", setting)] + ["--out", str(out), "--json"]
    subprocess.run(command, capture_output=True, check=True)


def page(claims: list[Claim], rounds: int, load_before: float) -> str:
    """docs/benchmarks.md: the table with machine, versions and protocol."""
    return f"""# Benchmarks

Made by `make bench` on {time.strftime("%Y-%m-%d")}. Load average of the machine before it began: {load_before:.2f}.

{table(claims)}

{machine_lines()}
- Protocol: both sides of a ratio take turns within one run. The loop: blocks of 30 steps in one process pinned to one
  core. Ranks: blocks of 20 steps in one pair of processes, each pinned to a core, global batch 128; one rank alone
  while the other sleeps in a barrier. {3 * rounds} rounds each.
  Beside each ratio of medians stands the interval of the paired ratios (docs/glossary.md: interval).
- Noise floor: how far the ratio of a thing to itself is from 1.
- Memory: RssAnon of /proc, sampled ten times a second, the larger of two ranks.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--rounds", type=int, default=5, help="how often the two sides take turns (default 5)")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/benchmarks.md")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    data = prepare(DataSettings(dataset="mnist"), base=Path()).folder
    claims = [*loop_claims(data, options.rounds), *memory_claims(), *rank_claims(data, options.rounds)]
    print(table(claims))
    if options.write:
        (ROOT / "docs" / "benchmarks.md").write_text(page(claims, options.rounds, load_before))
    return 0 if all(claim.met for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
