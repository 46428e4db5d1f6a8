"""Tracks: the spans of a run for export to other programs.

    Track       a rank's spans on one time line, those of a lane never overlapping but by nesting: views/tracks.py
    RankGraph   a rank's computation and messages as nodes with dependencies: views/graph.py

All instants are nanoseconds since the start of the run; -1 is what is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from paceline.records.rank_trace import RankTrace, Words

FLOW_FIRST, FLOW_BETWEEN, FLOW_LAST = 1, 2, 3
"""Position of a rank among the ranks that issued a message; 0 if the others are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The spans of one rank, from the outermost to the innermost, as columns of equal length."""

    trace: RankTrace
    """Its rows in the order of their starts."""
    host: str | None
    message: np.ndarray
    """Number of a message, equal on all ranks that take part in it."""
    gathered_ns: np.ndarray
    """When all participants had issued it."""
    completed_ns: np.ndarray
    """Latest possible completion."""
    lane: np.ndarray
    """0 for spans of the main thread, from 1 on for messages: as many lanes as were ever under way at once."""
    drawn_end_ns: np.ndarray
    """Where to draw the end: at the enclosing span's at the latest, and there for one that was never seen to end. Of a
    message that was never seen to end, its start."""
    flow: np.ndarray
    flow_at_ns: np.ndarray
    """Where an arrow between ranks touches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGraph:
    """What one rank did, as nodes in the order of their starts; columns of equal length but for the edges.

    A node begins when `after` is over, and every message whose edge leads to it.
    """

    rank: int
    host: str | None
    start_ns: np.ndarray
    length_ns: np.ndarray
    """Of a message from its issue until the rank was notified of its end; 0 if it never was."""
    kind: np.ndarray
    """Index into LEDGER_KINDS; -1 for a message."""
    after: np.ndarray
    """The computation before it; -1 for the first."""
    edge_from: np.ndarray
    """Nodes that are messages."""
    edge_to: np.ndarray
    """The node that depends on each, in ascending order."""
    operation: Words
    payload: np.ndarray
    group: Words
    dtype: Words
    peer: np.ndarray
    sequence: np.ndarray
    message: np.ndarray
    """As in `Track`."""
    wait_ns: np.ndarray
    """Of a message: until all participants had issued it."""
