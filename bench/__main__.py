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
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench.memory import rss_anon_bytes
from paceline.analyze.stats import median_interval, ratio_interval
from paceline.data.store import prepare
from paceline.launch.machine import this_machine
from paceline.records.results import Interval
from paceline.records.study import DataSettings
from paceline.units import bytes_text, interval_text, number_text

ROOT = Path(__file__).parent.parent
SAMPLES, BATCH, EPOCHS = 12_000, 128, 3


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
    """Two ranks against one, and against a bare DDP script: whole runs that take turns."""
    times: dict[str, list[float]] = {"one": [], "two": [], "bare": [], "again": []}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
            measure = {
                "one": lambda n=number: _study_epoch_s(1, Path(scratch) / f"one-{n}"),
                "two": lambda n=number: _study_epoch_s(2, Path(scratch) / f"two-{n}"),
                "bare": lambda: _bare_ddp_epoch_s(data),
                "again": lambda n=number: _study_epoch_s(1, Path(scratch) / f"again-{n}"),
            }
            for name in measure if number % 2 else reversed(measure):
                times[name].append(measure[name]())
    speedup = ratio_interval(times["one"], times["two"])
    against_bare = ratio_interval(times["bare"], times["two"])
    efficiency = Interval(
        median=speedup.median / 2,
        low=speedup.low / 2,
        high=speedup.high / 2,
        n=speedup.n,
        coverage=speedup.coverage,
    )
    return [
        Claim(
            "noise floor of runs",
            "one rank's epoch against that of the same run again",
            _ratio(ratio_interval(times["one"], times["again"])),
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
            _study_epoch_s(2, Path(scratch) / "memory", samples=60_000, epochs=1)
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


def _study_epoch_s(ranks: int, out: Path, *, samples: int = SAMPLES, epochs: int = EPOCHS) -> float:
    """Seconds of an epoch after the first, by a run of the default study."""
    settings = [f"data.train_samples={samples}", f"train.epochs={epochs}"]
    command = [sys.executable, "-m", "paceline", "study", "mnist-scaling", "--ranks", str(ranks), "--repeats", "1"]
    command += [word for setting in settings for word in ("--set", setting)] + ["--out", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["points"][0]["epoch_s"]["median"]


def _bare_ddp_epoch_s(data: Path) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    cores = sorted(os.sched_getaffinity(0))
    script = ROOT / "bench" / "peers" / "bare_ddp.py"
    words = [str(word) for word in (2, port, data, SAMPLES, BATCH, EPOCHS)]
    ranks = [
        subprocess.Popen([sys.executable, str(script), str(rank), *words, str(cores[rank])], stdout=subprocess.PIPE)
        for rank in range(2)
    ]
    epochs = [[float(line) for line in rank.communicate(timeout=300)[0].split()] for rank in ranks]
    return statistics.median(max(pair) for pair in list(zip(*epochs, strict=True))[1:])


def _ratio(interval: Interval) -> str:
    return interval_text(interval.median, interval.low, interval.high)


def table(claims: list[Claim]) -> str:
    """The claims as a Markdown table, columns aligned."""
    rows = [("what", "against", "measured", "wanted", "met")]
    rows += [(c.what, c.peer, c.measured, c.wanted, "yes" if c.met else "no") for c in claims]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def page(claims: list[Claim], rounds: int, load_before: float) -> str:
    """docs/benchmarks.md: the table with machine, versions and protocol."""
    facts = this_machine()
    gpus = ", ".join(facts.gpus) or "no GPU"
    return f"""# Benchmarks

Made by `make bench` on {time.strftime("%Y-%m-%d")}. Load average of the machine before it began: {load_before:.2f}.

{table(claims)}

- Machine: {facts.cpu}, {facts.cores} cores, {bytes_text(facts.memory_bytes)} of memory, {platform.system()}, {gpus}.
- Versions: Python {platform.python_version()}, torch {version("torch")}, Paceline {version("paceline")}.
- Protocol: both sides of a ratio take turns within one run. The loop: blocks of 30 steps in one process pinned to one
  core, {3 * rounds} rounds. Ranks: whole runs of the default study with {EPOCHS} epochs, the first left out,
  {rounds} rounds.
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
