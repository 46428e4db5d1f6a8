"""Launchers, strategies, and the published program beside ours: python -m bench.engines [--starts N] [--write]

All that is compared takes turns within one run (bench/groups.py). Nothing else may run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from bench.claims import Claim, aligned, machine_lines, ratio_text, table
from bench.groups import BATCH_PER_RANK, BLOCK, against_published, launchers, over_links, ratios, strategies
from paceline.data.store import prepare
from paceline.records.settings import DataSettings

ROUNDS = 5
LINK_STARTS, LINK_ROUNDS = 2, 3
"""Over slow links a step takes seconds, and differs by more than any noise."""


def launcher_claims(data: Path, starts: int) -> list[Claim]:
    """A step under every launcher against the same step under local."""
    found = ratios([launchers(data, ROUNDS) for _ in range(starts)], "local")
    return [
        Claim(
            f"step of 2 ranks, ddp, launched by {name}",
            "the same, launched by local",
            ratio_text(ratio),
            "noise" if name == "local, again" else "at most 1.05",
            ratio.median <= 1.05 or name == "local, again",
        )
        for name, ratio in found.items()
    ]


def strategy_claims(data: Path, starts: int) -> list[Claim]:
    """A step of two ranks against one rank's, the ideal; and against two ranks that tell each other nothing."""
    seconds = [strategies(data, ROUNDS) for _ in range(starts)]
    held = ("ddp", "flat", "mpi-allreduce")
    claims = []
    for name, ratio in ratios(seconds, "alone").items():
        what = "step of 2 ranks that do not talk" if name == "apart" else f"step of 2 ranks, {name}"
        wanted = "at most 1.08" if name in held else "shown"
        met = ratio.median <= 1.08 or name not in held
        claims.append(Claim(what, "one rank's step: the ideal", ratio_text(ratio), wanted, met))
    against_apart = ratios(seconds, "apart")
    for name in held:
        measured = ratio_text(against_apart[name])
        claims.append(Claim(f"step of 2 ranks, {name}", "2 ranks that do not talk", measured, "shown", True))
    return claims


def published_claims(data: Path, starts: int) -> list[Claim]:
    """Samples per second of two ranks against the published program's."""
    seconds = [against_published(data, ROUNDS) for _ in range(starts)]
    peer = "TensorFlow, eager, with mpi4py's pickled reduce and broadcast, 2 ranks"
    faster, pickled = (ratios(seconds, name)["published"] for name in ("ddp", "mpi-reduce-broadcast-pickled"))
    return [
        Claim("samples/s of 2 ranks, ddp", peer, ratio_text(faster), "at least 2", faster.median >= 2),
        Claim("samples/s of 2 ranks, mpi-reduce-broadcast-pickled", peer, ratio_text(pickled), "shown", True),
    ]


def link_table(data: Path, starts: int) -> str:
    """Every strategy's step over shaped links, as a multiple of one rank's step."""
    rates = {"1gbit": "1 Gbit/s", "100mbit": "100 Mbit/s"}
    seconds = [over_links(data, LINK_ROUNDS, list(rates)) for _ in range(starts)]
    found = {rate: ratios([start[rate] for start in seconds], "alone") for rate in rates}
    names = [name for name in found["1gbit"] if name != "apart"]
    return aligned([("strategy", *rates.values()), *((n, *(ratio_text(found[r][n]) for r in rates)) for n in names)])


def page(claims: list[Claim], links: str, starts: int, load_before: float) -> str:
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
- Protocol: `cnn-690k`, {BATCH_PER_RANK} samples per rank, blocks of {BLOCK} steps. Every group of ranks is started by
  its own launcher and sleeps while another has its turn; all take their turn once a round, in an order drawn for each.
  {starts} starts of {ROUNDS} rounds ({LINK_ROUNDS} over links); each start gives one ratio of medians. Shown are their
  median and its interval, or their range where there are fewer than five (docs/glossary.md).
- `local, again` is a second group of local's: how far two groups that do the same differ. `do not talk`: both ranks
  take steps of their own at the same time: what two busy cores cost each other on this machine.
- `parameter-server` has a server and a coordinator beside its two ranks, on the same two cores.
- The published program is written afresh from its description (bench/peers/published_mpi.py), in an environment of its
  own.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.engines")
    parser.add_argument("--starts", type=int, default=5, help="how often everything is started (default 5)")
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/benchmarks-engines.md")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    data = prepare(DataSettings(dataset="mnist"), base=Path()).folder
    claims = []
    for measured in (launcher_claims, strategy_claims, published_claims):
        claims += measured(data, options.starts)
        print(table(claims), flush=True)
    links = link_table(data, min(options.starts, LINK_STARTS))
    print(links)
    if options.write:
        written = Path(__file__).parents[1] / "docs" / "benchmarks-engines.md"
        written.write_text(page(claims, links, options.starts, load_before))
    return 0 if all(claim.met for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
