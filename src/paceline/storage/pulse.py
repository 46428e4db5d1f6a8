"""A rank's heartbeat: 40 memory-mapped bytes with its position in the run.

    offset  0   int64   beats: incremented with every heartbeat
    offset  8   int64   step: optimizer steps taken
    offset 16   int64   total steps of the run; 0 until known
    offset 24   int64   collectives issued
    offset 32   int64   phase: index into PHASES

The rank writes without system calls; the launcher reads. When no rank makes progress, the straggler
is the rank that is not waiting in a collective, or that has issued the fewest.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from paceline.records.rank_pulse import PHASES, Pulse

_NUMBER = {phase: number for number, phase in enumerate(PHASES)}
_LAYOUT = struct.Struct("=5q")


class PulseWriter:
    """The writer of a rank. A beat takes well under a microsecond."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb+") as file:
            file.write(bytes(_LAYOUT.size))
            file.flush()
            # Native byte order: the reader is on a machine of the same kind.
            self._values = memoryview(mmap.mmap(file.fileno(), _LAYOUT.size)).cast("q")

    def beat(
        self,
        *,
        phase: str | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        collectives: int | None = None,
    ) -> None:
        """Count a heartbeat, and update the values that are not None."""
        values = self._values
        values[0] += 1
        if step is not None:
            values[1] = step
        if total_steps is not None:
            values[2] = total_steps
        if collectives is not None:
            values[3] = collectives
        if phase is not None:
            values[4] = _NUMBER[phase]


def pulse(path: Path) -> Pulse | None:
    """The last heartbeat of a rank; None before the first."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) < _LAYOUT.size:
        return None
    beats, step, total_steps, collectives, phase = _LAYOUT.unpack_from(data)
    if beats <= 0:
        return None
    return Pulse(beats, step, total_steps, collectives, PHASES[phase] if 0 <= phase < len(PHASES) else "startup")
