"""How often causes are named rightly: python -m bench.faults [--only KIND] [--seed N] [--write]

Fifty faults of six kinds, drawn from a seed (bench/fault_table.py), are put into real runs one after the other; the
rank and the kind of the ledger that their traces name are compared with what was done. Nothing else should run
meanwhile: whatever else slows a run down is a fault, too.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.claims import aligned, machine_lines
from bench.fault_runs import FaultRuns, Found, by_group
from bench.fault_table import COUNTS, KINDS, STEPS, faults
from bench.groups import two_hosts
from paceline.data.store import prepare
from paceline.records.settings import DataSettings
from paceline.units import duration_text

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-faults.md"
WANTED_FIRST, WANTED_IN_TWO = 0.96, 1.0


def run_all(wanted: Sequence, data: Path) -> list[Found]:
    """What was found of every fault, in the order of the table."""
    found = []
    with contextlib.ExitStack() as stack:
        made: list = []

        def hosts():
            if not made:
                made.append(stack.enter_context(two_hosts()))
            return made[0]

        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paceline-faults-")))
        runs = stack.enter_context(FaultRuns(data, folder, hosts))
        for fault in by_group(wanted):
            found.append(runs.run(fault))
            print(line(found[-1]), file=sys.stderr, flush=True)
    return sorted(found, key=lambda each: each.fault.number)


def line(found: Found) -> str:
    """One fault as a line of progress."""
    fault = found.fault
    first = found.slow_causes[0] if found.slow_causes else None
    said = f"{named(first.rank, (first.kind,))}, {duration_text(first.lost_s)}" if first else "nothing"
    return (
        f"{fault.number:2d} {fault.kind:20s} {named(fault.who, fault.rows):35s} found at {found.place}; first: {said}"
    )


def named(rank: int | None, kinds: Sequence[str]) -> str:
    return f"{'all ranks' if rank is None else f'rank {rank}'}, {' or '.join(kinds)}"


def summary(found: Sequence[Found]) -> str:
    """How often each kind was named first, and among the first two."""
    rows = [("kind", "faults", "named first", "among the first two")]
    for kind in (*KINDS, "all"):
        own = [each for each in found if kind in (each.fault.kind, "all")]
        if own:
            rows.append((kind, str(len(own)), str(_within(own, 1)), str(_within(own, 2))))
    return aligned(rows)


def details(found: Sequence[Found]) -> str:
    """Every fault with what was said first."""
    rows = [
        ("", "fault", "ranks", "what was done", "to be found", "named", "held up", "time lost, as found", "named first")
    ]
    for each in found:
        fault, place = each.fault, each.place
        rows.append(
            (
                str(fault.number),
                fault.kind,
                f"{fault.ranks}, {fault.strategy}",
                fault.text,
                named(fault.who, fault.rows),
                "not" if place is None else f"{place}.",
                duration_text(each.held_up_s),
                "–" if place is None else duration_text(each.slow_causes[place - 1].lost_s),
                "nothing" if not each.slow_causes else named(each.slow_causes[0].rank, (each.slow_causes[0].kind,)),
            )
        )
    return aligned(rows)


def page(found: Sequence[Found], seed: int, load_before: float) -> str:
    """docs/benchmarks-faults.md: the tables with machine, versions and protocol."""
    return f"""# Benchmark of causes found

Made by `python -m bench.faults --seed {seed} --write` on {time.strftime("%Y-%m-%d")}. Load average of the machine
before it began: {load_before:.2f}. What the faults are, and how causes are found, is in [truth.md](truth.md#causes).

{summary(found)}

## Fault by fault

{details(found)}

*Held up* is what the slowed rank measured itself, over all {STEPS} steps; *time lost* is what the trace
says, over the steps after the first.

## How it was measured

{machine_lines()}
- Protocol: digits, a network of two convolutions, {STEPS} steps of 40 images over all ranks. Two ranks are
  pinned to a core each, more share the cores. Rank, kind, strength and strategy are drawn from the seed before
  the first run.
"""


def _within(found: Sequence[Found], places: int) -> int:
    return sum(each.place is not None and each.place <= places for each in found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.faults")
    parser.add_argument("--only", choices=KINDS, help="faults of one kind")
    parser.add_argument("--count", type=int, default=max(COUNTS.values()), help="at most so many of each kind")
    parser.add_argument("--seed", type=int, default=1, help="what the faults are drawn from (default 1)")
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/benchmarks-faults.md")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    table = [fault for fault in faults(options.seed) if options.only in (None, fault.kind)]
    wanted = [fault for fault in table if [f for f in table if f.kind == fault.kind].index(fault) < options.count]
    found = run_all(wanted, prepare(DataSettings(dataset="digits"), base=Path()).folder)
    print(summary(found))
    if options.write:
        PAGE.write_text(page(found, options.seed, load_before))
    good = _within(found, 1) >= WANTED_FIRST * len(found) and _within(found, 2) >= WANTED_IN_TWO * len(found)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
