"""Spans: what a rank did, when; and the kinds of the ledger that they are divided into.

A rank's main thread opens and closes spans that nest; a `collective` span is a message as the
probe saw it, from whatever thread issued it. `spans/rank-0003.arrows` is an Arrow IPC stream of

    kind       dictionary<string>   one of SPAN_KINDS
    start_ns   int64                instant on the host's monotonic clock
    end_ns     int64, null          instant; null where it was never seen to end
    step       int32                optimizer steps taken before it; -1 outside the loop
    operation  dictionary<string>   of a collective: allreduce_, broadcast_, ...; else null
    bytes      int64, null          payload of a collective on this rank
    sequence   int32, null          number of the collective within its group, equal on all ranks
    group      dictionary<string>   of a collective: the process group's name; else null
    peer       int32, null          of a message between two processes: the other one's number
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

SPAN_SCHEMA = "paceline.spans/1"

# `communicate`: the main thread is blocked in communication.
SPAN_KINDS = (
    "startup",
    "load",
    "input-wait",
    "forward",
    "backward",
    "communicate",
    "optimizer",
    "evaluate",
    "checkpoint",
    "collective",
)

# A rank's wall time is divided into these without remainder. The list is fixed: a kind that is
# not measured is null, never missing.
LEDGER_KINDS = (
    "startup",
    "load",
    "input-wait",
    "forward",
    "backward",
    "comm-wait",
    "comm-transfer",
    "optimizer",
    "evaluate",
    "checkpoint",
    "other",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTrace:
    """The spans of one rank, as columns of equal length."""

    rank: int
    kind: np.ndarray
    """Index into SPAN_KINDS, int8."""
    start_ns: np.ndarray
    end_ns: np.ndarray
    """-1 where the span was never seen to end."""
    step: np.ndarray
    operation: tuple[str | None, ...]
    bytes: np.ndarray
    """-1 where not a collective."""
    sequence: np.ndarray
    """-1 where not a collective."""
    group: tuple[str | None, ...]
    peer: np.ndarray | None = None
    """The other process of a message between two, -1 for all else; None in a trace without this column."""
    truncated: bool = False
    """Whether the file broke off: what stands here is what was flushed before."""

    def __len__(self) -> int:
        return len(self.kind)
