"""Run every benchmark and keep the table: python -m bench [--rounds N] [--write]

Each claim is a ratio against a named peer. The two sides take turns within one run, because the
machine is never quite quiet; beside each ratio stands its interval, and the ratio of a thing to
itself shows the noise floor. Nothing else may run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench import engines
from bench.memory import rss_anon_bytes
from paceline.analyze.stats import median_interval, ratio_interval
from paceline.data.store import prepare
from paceline.identity import local_environment
from paceline.launch.machine import this_machine
from paceline.records.results import Interval
from paceline.records.study import DataSettings
from paceline.units import bytes_text, interval_text, number_text

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of the table."""

    what: str
    peer: str
    measured: str
    wanted: str
    met: bool


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
        Claim("noise floor of the loop", "the plain loop's next block against its last", _ratio(again), "1", True),
        Claim(
            f"samples/s of the loop, 1 rank × 1 thread ({speed})",
            "a plain PyTorch loop: eager, NCHW, DataLoader over tensors, Adam",
            _ratio(faster),
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
            _ratio(ratio_interval(rates["one"], rates["again"])),
            "1",
            True,
        ),
        Claim(
            "efficiency of 2 ranks × 1 thread, ddp",
            "one rank of one thread",
            _ratio(efficiency),
            "at least 0.90",
            efficiency.median >= 0.90,
        ),
        Claim(
            "samples/s of 2 ranks, ddp, probe and records on",
            "a bare DDP script with the same tricks",
            _ratio(against_bare),
            "at least 0.97",
            against_bare.median >= 0.97,
        ),
    ]


def launcher_claims(data: Path, rounds: int) -> list[Claim]:
    """A step under every launcher against the same step under local."""
    seconds = engines.launchers(data, 3 * rounds)
    ratios = {name: ratio_interval(own, seconds["local"]) for name, own in seconds.items() if name != "local"}
    return [
        Claim(
            f"step of 2 ranks, ddp, launched by {name}",
            "the same, launched by local",
            _ratio(ratio),
            "at most 1.05",
            ratio.median <= 1.05,
        )
        for name, ratio in ratios.items()
    ]


def strategy_claims(seconds: engines.Seconds) -> list[Claim]:
    """A step of two ranks against one rank's, the ideal."""
    ratios = {name: ratio_interval(own, seconds["alone"]) for name, own in seconds.items() if name != "alone"}
    held = ("ddp", "flat", "mpi-allreduce")
    return [
        Claim(
            f"step of 2 ranks, {name}",
            "one rank's step: the ideal",
            _ratio(ratio),
            "at most 1.08" if name in held else "shown",
            ratio.median <= 1.08 or name not in held,
        )
        for name, ratio in ratios.items()
    ]


def published_claims(data: Path, rounds: int) -> list[Claim]:
    """Samples per second of two ranks against the published program's."""
    seconds = engines.against_published(data, rounds)
    faster = ratio_interval(seconds["published"], seconds["ddp"])
    pickled = ratio_interval(seconds["published"], seconds["mpi-reduce-broadcast-pickled"])
    peer = "TensorFlow, eager, with mpi4py's pickled reduce and broadcast, 2 ranks"
    return [
        Claim("samples/s of 2 ranks, ddp", peer, _ratio(faster), "at least 2", faster.median >= 2),
        Claim("samples/s of 2 ranks, mpi-reduce-broadcast-pickled", peer, _ratio(pickled), "shown", True),
    ]


def link_table(data: Path, rounds: int) -> str:
    """Every strategy's step over shaped links, as a multiple of one rank's step."""
    rates = {"1gbit": "1 Gbit/s", "100mbit": "100 Mbit/s"}
    found = engines.over_links(data, rounds, list(rates))
    names = [name for name in found["1gbit"] if name != "alone"]
    rows = [("strategy", *rates.values())]
    for name in names:
        ratios = [ratio_interval(found[rate][name], found[rate]["alone"]) for rate in rates]
        rows.append((name, *map(_ratio, ratios)))
    return aligned(rows)


def memory_claims() -> list[Claim]:
    """What a rank holds for itself while it trains on all 60,000 images."""
    peer = int(subprocess.run([sys.executable, "-m", "bench.memory"], cwd=ROOT, stdout=subprocess.PIPE).stdout)
    peaks: dict[int, int] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for status in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    is_rank = b"paceline.train.worker" in status.read_bytes()
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


def _ratio(interval: Interval) -> str:
    return interval_text(interval.median, interval.low, interval.high)


def table(claims: list[Claim]) -> str:
    """The claims as a Markdown table."""
    rows = [("what", "against", "measured", "wanted", "met")]
    return aligned(rows + [(c.what, c.peer, c.measured, c.wanted, "yes" if c.met else "no") for c in claims])


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table with its columns aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def page(claims: list[Claim], links: str, rounds: int, load_before: float) -> str:
    """docs/benchmarks.md: the table with machine, versions and protocol."""
    facts = this_machine()
    gpus = ", ".join(facts.gpus) or "no GPU"
    return f"""# Benchmarks

Made by `make bench` on {time.strftime("%Y-%m-%d")}. Load average of the machine before it began: {load_before:.2f}.

{table(claims)}

## Strategies over slow links

A step of two ranks, one on each of two hosts, as a multiple of one rank's step. The hosts are network namespaces of
this machine, their links shaped by tc; ranks are not pinned, since both hosts have the same cores. With
`parameter-server` both ranks are on one host, and server and coordinator on the other.

{links}

## How it was measured

- Machine: {facts.cpu}, {facts.cores} cores, {bytes_text(facts.memory_bytes)} of memory, {platform.system()}, {gpus}.
- Versions: Python {platform.python_version()}, torch {version("torch")}, Paceline {version("paceline")}.
- Protocol: both sides of a ratio take turns within one run. The loop: blocks of 30 steps in one process pinned to one
  core. Ranks: blocks of 20 steps in one pair of processes, each pinned to a core, global batch 128; one rank alone
  while the other sleeps in a barrier. {3 * rounds} rounds each.
  Beside each ratio of medians stands the interval of the paired ratios (docs/glossary.md: interval).
- Launchers and strategies: {engines.BATCH_PER_RANK} samples per rank, blocks of {engines.BLOCK} steps. Every group of
  ranks was started by its own launcher and sleeps while another has its turn. `parameter-server` has a server and a
  coordinator beside its two ranks, on the same two cores. The published program is written afresh from its description.
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
    claims += launcher_claims(data, options.rounds)
    claims += strategy_claims(engines.strategies(data, 2 * options.rounds))
    claims += published_claims(data, 2 * options.rounds)
    links = link_table(data, options.rounds)
    print(table(claims), links, sep="\n\n")
    if options.write:
        (ROOT / "docs" / "benchmarks.md").write_text(page(claims, links, options.rounds, load_before))
    return 0 if all(claim.met for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
