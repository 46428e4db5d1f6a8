"""The truth table: fifty faults, and for each the rank and the kind of the ledger that it has to be found in.

    kind                  what is done to a real run of 2 to 4 ranks                          where it has to be found
    slow-rank             one rank takes 40 to 120 ms longer over forward, backward or        that rank, that kind
                          optimizer
    starved-input         the batches of one rank, or of all, come 40 to 120 ms late          it or all, input-wait
    stalled-checkpoint    a checkpoint of 40 to 100 MB every 5 steps, written and synced      rank 0, checkpoint
    slow-link             hosts in network namespaces, links shaped by tc to 12 to 30 Mbit/s  all, comm-transfer
    oversubscribed        3 to 6 programs that compute, on one rank's core; on all cores;     it or all, forward
                          or on all cores from the eighth step on                             or backward
    memory-bandwidth      3 to 5 programs that copy 64 MB to and fro, on one rank's core      that rank, forward
                                                                                              or backward

Everything is drawn from the seed before anything is run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from paceline.records.slow_cause import SlowCause

STEPS = 26
CHECKPOINT_EVERY = 5
COUNTS = {
    "slow-rank": 12,
    "starved-input": 9,
    "stalled-checkpoint": 7,
    "slow-link": 8,
    "oversubscribed": 8,
    "memory-bandwidth": 6,
}
KINDS = tuple(COUNTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault, and where it has to be found."""

    number: int
    kind: str
    ranks: int
    who: int | None
    """The rank that it is put into; None for all."""
    rows: tuple[str, ...]
    """Kinds of the ledger of which one has to be named."""
    strategy: str = "ddp"
    steps: int = STEPS
    delay_s: float = 0.0
    """Of every step."""
    where: str = ""
    """forward, backward, optimizer or input: what is delayed."""
    busy: bool = False
    """Whether the delay is computation; else sleep."""
    ballast_mb: int = 0
    rate_mbit: int = 0
    hosts: int = 0
    """How many links are slow, from the last host on."""
    load: str = ""
    """spin or copy."""
    programs: int = 0
    """On each core that is loaded."""
    from_step: int = 0

    @property
    def needs_hosts(self) -> bool:
        return self.kind == "slow-link"

    def is_it(self, suspect: SlowCause) -> bool:
        """Whether a suspect is this fault."""
        return suspect.rank == self.who and suspect.kind in self.rows

    @property
    def text(self) -> str:
        """What was done, in a few words."""
        if self.delay_s:
            how = "computes" if self.busy else "sleeps"
            return f"{how} {self.delay_s * 1000:.0f} ms longer in {self.where}"
        if self.ballast_mb:
            return f"checkpoints of {self.ballast_mb} MB"
        if self.rate_mbit:
            return f"{self.hosts} of {self.ranks} links at {self.rate_mbit} Mbit/s"
        since = f" from step {self.from_step} on" if self.from_step else ""
        return f"{self.programs} programs that {'compute' if self.load == 'spin' else 'copy'} on each core{since}"


def faults(seed: int) -> tuple[Fault, ...]:
    """The fifty faults of a seed."""
    chance = random.Random(seed)
    made = [fault for kind, count in COUNTS.items() for fault in _of_kind(kind, count, chance)]
    return tuple(Fault(number=number, **settings) for number, settings in enumerate(made, 1))


def _of_kind(kind: str, count: int, chance: random.Random) -> Iterator[dict]:
    for nth in range(count):
        ranks = chance.choice((2, 3, 4))
        common = {"kind": kind, "ranks": ranks, "strategy": chance.choice(("ddp", "flat"))}
        delay_s = round(chance.uniform(0.04, 0.12), 3)
        who = chance.randrange(ranks)
        if kind == "slow-rank":
            where = ("forward", "backward", "optimizer")[nth % 3]
            yield common | {"who": who, "rows": (where,), "where": where, "delay_s": delay_s, "busy": nth % 2 == 0}
        elif kind == "starved-input":
            everyone = nth % 3 == 2
            yield common | {
                "who": None if everyone else who,
                "rows": ("input-wait",),
                "where": "input",
                "delay_s": delay_s,
            }
        elif kind == "stalled-checkpoint":
            yield common | {"who": 0, "rows": ("checkpoint",), "ballast_mb": chance.randrange(40, 101, 20)}
        elif kind == "slow-link":
            ranks = chance.choice((2, 3))
            links = {"rate_mbit": chance.randrange(12, 31), "hosts": chance.randrange(1, ranks + 1)}
            yield common | {"ranks": ranks, "who": None, "rows": ("comm-transfer",)} | links
        else:
            copies = kind == "memory-bandwidth"
            everyone = not copies and nth % 2 == 1
            yield common | {
                "ranks": 2,
                "who": None if everyone else chance.randrange(2),
                "rows": ("forward", "backward"),
                "load": "copy" if copies else "spin",
                "programs": chance.randrange(3, 6 if copies else 7),
                "from_step": 8 if everyone and nth % 4 == 1 else 0,
            }
