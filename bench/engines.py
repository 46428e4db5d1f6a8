"""Launchers, strategies, and the published program beside ours: python -m bench.engines [--rounds N] [--write]

All that is compared takes turns within one run (bench/groups.py). Nothing else may run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from bench.claims import Claim, aligned, machine_lines, ratio_text, table
from bench.groups import BATCH_PER_RANK, BLOCK, Seconds, against_published, launchers, over_links, strategies
from paceline.analyze.stats import ratio_interval
from paceline.data.store import prepare
from paceline.records.study import DataSettings


def launcher_claims(data: Path, rounds: int) -> list[Claim]:
    """A step under every launcher against the same step under local."""
    seconds = launchers(data, 3 * rounds)
    ratios = {name: ratio_interval(own, seconds["local"]) for name, own in seconds.items() if name != "local"}
    return [
        Claim(
            f"step of 2 ranks, ddp, launched by {name}",
            "the same, launched by local",
            ratio_text(ratio),
            "at most 1.05",
            ratio.median <= 1.05,
        )
        for name, ratio in ratios.items()
    ]


def strategy_claims(seconds: Seconds) -> list[Claim]:
    """A step of two ranks against one rank's, the ideal."""
    ratios = {name: ratio_interval(own, seconds["alone"]) for name, own in seconds.items() if name != "alone"}
    held = ("ddp", "flat", "mpi-allreduce")
    return [
        Claim(
            f"step of 2 ranks, {name}",
            "one rank's step: the ideal",
            ratio_text(ratio),
            "at most 1.08" if name in held else "shown",
            ratio.median <= 1.08 or name not in held,
        )
        for name, ratio in ratios.items()
    ]


def published_claims(data: Path, rounds: int) -> list[Claim]:
    """Samples per second of two ranks against the published program's."""
    seconds = against_published(data, rounds)
    faster = ratio_interval(seconds["published"], seconds["ddp"])
    pickled = ratio_interval(seconds["published"], seconds["mpi-reduce-broadcast-pickled"])
    peer = "TensorFlow, eager, with mpi4py's pickled reduce and broadcast, 2 ranks"
    return [
        Claim("samples/s of 2 ranks, ddp", peer, ratio_text(faster), "at least 2", faster.median >= 2),
        Claim("samples/s of 2 ranks, mpi-reduce-broadcast-pickled", peer, ratio_text(pickled), "shown", True),
    ]


def link_table(data: Path, rounds: int) -> str:
    """Every strategy's step over shaped links, as a multiple of one rank's step."""
    rates = {"1gbit": "1 Gbit/s", "100mbit": "100 Mbit/s"}
    found = over_links(data, rounds, list(rates))
    names = [name for name in found["1gbit"] if name != "alone"]
    rows = [("strategy", *rates.values())]
    for name in names:
        ratios = [ratio_interval(found[rate][name], found[rate]["alone"]) for rate in rates]
        rows.append((name, *map(ratio_text, ratios)))
    return aligned(rows)


def page(claims: list[Claim], links: str, rounds: int, load_before: float) -> str:
    """docs/benchmarks-engines.md: the tables with machine, versions and protocol."""
    return f"""# Benchmarks of launchers and strategies

Made by `make bench` on {time.strftime("%Y-%m-%d")}. Load average of the machine before it began: {load_before:.2f}.

{table(claims)}

## Strategies over slow links

A step of two ranks, one on each of two hosts, as a multiple of one rank's step. The hosts are network namespaces of
this machine, their links shaped by tc; ranks are not pinned, since both hosts have the same cores. With
`parameter-server` both ranks are on one host, and server and coordinator on the other.

{links}

## How it was measured

{machine_lines()}
- Protocol: `cnn-690k`, {BATCH_PER_RANK} samples per rank, blocks of {BLOCK} steps. Every group of ranks was started by
  its own launcher and sleeps while another has its turn; all take their turn once a round. {3 * rounds} rounds for
  launchers, {2 * rounds} for strategies and the published program, {rounds} over links. Beside each ratio of medians
  stands the interval of the ratios within rounds (docs/glossary.md: interval).
- `parameter-server` has a server and a coordinator beside its two ranks, on the same two cores.
- The published program is written afresh from its description (bench/peers/published_mpi.py), in an environment of its
  own.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.engines")
    parser.add_argument("--rounds", type=int, default=5, help="how often all take their turn (default 5)")
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/benchmarks-engines.md")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    data = prepare(DataSettings(dataset="mnist"), base=Path()).folder
    claims = launcher_claims(data, options.rounds)
    claims += strategy_claims(strategies(data, 2 * options.rounds))
    claims += published_claims(data, 2 * options.rounds)
    print(table(claims), flush=True)
    links = link_table(data, options.rounds)
    print(links)
    if options.write:
        written = Path(__file__).parents[1] / "docs" / "benchmarks-engines.md"
        written.write_text(page(claims, links, options.rounds, load_before))
    return 0 if all(claim.met for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
