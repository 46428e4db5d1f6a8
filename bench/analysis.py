"""A million spans, analysed and drawn: python -m bench.analysis [--rounds N] [--write]

A study of 4 ranks is run, and the traces of its only run are replaced by made-up ones of 250,000 spans each that fill
the same time. Then `paceline trace` and `paceline report` read them, as processes of their own, in turn with Python's
json parser over the same spans as a Chrome trace: what a tool that reads that format does first of all.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.claims import Claim, machine_lines, ratio_text, table
from paceline.analyze.stats.intervals import ratio_interval
from paceline.records.rank_trace import SPAN_KINDS
from paceline.records.run import RunResult
from paceline.storage.codec import read_record
from paceline.storage.folder import RunFolder
from paceline.storage.span_stream import SpanWriter
from paceline.units import bytes_text, duration_text, nanoseconds

ROOT = Path(__file__).parents[1]
RANKS, STEPS, MESSAGES = 4, 25_000, 5
SPANS = RANKS * STEPS * (5 + MESSAGES)
PASSED = 10_000
"""Spans that a writer is given at a time, as many as a run flushes in a minute or two."""
PARSE = "import json, sys; json.load(open(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took."""

    wall_s: float
    peak_bytes: int


def made_study(folder: Path) -> Path:
    """A study of one point and one run; its folder."""
    words = ("--ranks", str(RANKS), "--repeats", "1", "--out", str(folder), "--set", "train.epochs=2", "--json")
    subprocess.run([sys.executable, "-m", "paceline", "study", "digits", *words], capture_output=True, check=True)
    return folder


def fill(run: RunFolder) -> None:
    """Put a million spans in place of those of the run."""
    result = read_record(run.result, RunResult)
    step_ns = nanoseconds(result.wall_s) // (STEPS + 1)
    chance = np.random.default_rng(0)
    for rank in range(RANKS):
        late = chance.integers(0, step_ns // 20, STEPS)
        rows = [
            row for step in range(STEPS) for row in _step(step, result.launched_at_ns + step * step_ns, step_ns, late)
        ]
        writer = SpanWriter(run.rank_spans(rank))
        everyone = " ".join(map(str, range(RANKS)))
        writer.write([(SPAN_KINDS.index("group"), result.launched_at_ns, -1, -1, everyone, -1, -1, "0", -1, -1, None)])
        for first in range(0, len(rows), PASSED):
            writer.write(rows[first : first + PASSED])
        writer.close()


def _step(step: int, begin: int, length: int, late: np.ndarray) -> list[tuple]:
    """The spans of one step: four parts, and messages that begin late and end in the second half."""
    at = [begin + length * part // 100 for part in (0, 5, 30, 90, 99)]
    parts = [("input-wait", at[0], at[1]), ("forward", at[1], at[2]), ("backward", at[2], at[3])]
    parts += [("optimizer", at[3], at[4]), ("step", at[0], at[4])]
    rows = [(SPAN_KINDS.index(kind), start, end, step, None, -1, -1, None, -1, -1, None) for kind, start, end in parts]
    for n in range(MESSAGES):
        start, end = begin + length * (35 + 10 * n) // 100 + int(late[step]), begin + length * (44 + 10 * n) // 100
        size, sequence = 1000 * (n + 1), step * MESSAGES + n
        kind = SPAN_KINDS.index("collective")
        rows.append((kind, start, end, step, "allreduce_", size, sequence, "0", -1, -1, "float32"))
    return rows


def cost(words: Sequence[str]) -> Cost:
    """Run a command, and say what it took."""
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, *words], stdout=said, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(words)} ended with {process.returncode}:\n{said.read().decode()}")
    return Cost(wall_s, used.ru_maxrss * 1024)


def claims(rounds: int) -> list[Claim]:
    """The three commands in turn."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = made_study(Path(scratch) / "study")
        (path,) = folder.glob("points/*/runs/1")
        fill(RunFolder(path))
        chrome = Path(scratch) / "chrome.json"
        cost(["-m", "paceline", "export", str(path), "--format", "chrome", "--out", str(chrome)])
        commands = {
            "trace": ["-m", "paceline", "trace", str(path), "--json"],
            "report": ["-m", "paceline", "report", str(folder)],
            "parse": ["-c", PARSE, str(chrome)],
        }
        took: dict[str, list[Cost]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, words in commands.items():
                took[name].append(cost(words))
        page_bytes = (folder / "report.html").stat().st_size
    return [
        _claim("paceline trace", took["trace"], took["parse"], most_s=5, most_bytes=1e9),
        _claim("paceline report", took["report"], took["parse"], most_s=10, most_bytes=1e9),
        Claim("size of that report", "–", bytes_text(page_bytes), "at most 10 MB", page_bytes <= 10e6),
    ]


def _claim(what: str, ours: Sequence[Cost], peer: Sequence[Cost], *, most_s: float, most_bytes: float) -> Claim:
    wall_s = statistics.median(each.wall_s for each in ours)
    peak = max(each.peak_bytes for each in ours)
    ratio = ratio_text(ratio_interval([each.wall_s for each in ours], [each.wall_s for each in peer]))
    return Claim(
        f"{what}, {SPANS:,} spans of {RANKS} ranks, the whole command",
        f"json.load of the same as a Chrome trace ({duration_text(statistics.median(p.wall_s for p in peer))}, "
        f"{bytes_text(max(p.peak_bytes for p in peer))})",
        f"{ratio}: {duration_text(wall_s)}, {bytes_text(peak)}",
        f"at most {most_s:g} s and {bytes_text(most_bytes)}",
        wall_s <= most_s and peak <= most_bytes,
    )


def page(found: list[Claim], rounds: int, load_before: float) -> str:
    """docs/benchmarks-analysis.md: the table with machine, versions and protocol."""
    return f"""# Benchmark of analysis

Made by `python -m bench.analysis --write` on {time.strftime("%Y-%m-%d")}. Load average of the machine before it began:
{load_before:.2f}.

{table(found)}

{machine_lines()}
- Protocol: a study of {RANKS} ranks is run, and its traces are replaced by made-up ones of {SPANS:,} spans in all,
  which fill the same time. The commands take turns, {rounds} rounds; each is a process of its own, from its start to
  its end. Median of the times, the most memory of any round; beside the ratio of medians the interval of the ratios
  within a round (docs/glossary.md: interval).
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.analysis")
    parser.add_argument("--rounds", type=int, default=5, help="how often the commands take turns (default 5)")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/benchmarks-analysis.md")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    found = claims(options.rounds)
    print(table(found))
    if options.write:
        (ROOT / "docs" / "benchmarks-analysis.md").write_text(page(found, options.rounds, load_before))
    return 0 if all(claim.met for claim in found) else 1


if __name__ == "__main__":
    sys.exit(main())
