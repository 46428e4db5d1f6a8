"""What a benchmark claims, and how it is written down."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from paceline.launch.machine import this_machine
from paceline.records.results import Interval
from paceline.units import bytes_text, interval_text


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of the table."""

    what: str
    peer: str
    measured: str
    wanted: str
    met: bool


def ratio_text(interval: Interval) -> str:
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


def machine_lines() -> str:
    """The machine and the versions, as two items of a list."""
    facts = this_machine()
    gpus = ", ".join(facts.gpus) or "no GPU"
    return (
        f"- Machine: {facts.cpu}, {facts.cores} cores, {bytes_text(facts.memory_bytes)} of memory, "
        f"{platform.system()}, {gpus}.\n"
        f"- Versions: Python {platform.python_version()}, torch {version('torch')}, Paceline {version('paceline')}."
    )
