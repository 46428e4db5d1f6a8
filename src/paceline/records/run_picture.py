"""The timeline of a run: activity and messages of every rank, small enough to be embedded in a page.

A picture has lanes: one for each rank's main thread, and below it rows for its messages, several if messages
overlap. A lane is divided into parts without gaps, so a part is stored as its start: it lasts until the next.

    rank 0              forward │ backward            │ comm-wait │ comm-transfer │ optimizer │ ...
      messages, row 0   none            │ comm-wait               │ comm-transfer │ none
      messages, row 1   none                  │ comm-wait         │ comm-transfer │ none

If a run has too many parts for a page, short neighbours are merged into a bundle: an interval of the lane in
which each kind has its exact share of the time, and no order is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from paceline.records.rank_trace import LEDGER_KINDS

if TYPE_CHECKING:
    import numpy as np

# `message`: in flight, with unknown shares of wait and transfer. `none`: no message.
PICTURE_KINDS = (*LEDGER_KINDS, "message", "none")

NOT_SEEN = 2**32 - 1
"""An unknown instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One lane of a picture, and the range of its parts in the columns."""

    rank: int
    row: int
    """-1 for the main thread; else which row of messages."""
    first: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLabel:
    """Properties of a message without its times."""

    operation: str
    group: str
    dtype: str | None
    payload_bytes: int | None
    peer: int | None
    """The other process of a message between two, the root of a collective that has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One run, drawn. Instants are ticks since the run's start; all arrays are little-endian."""

    name: str
    ranks: int
    """Of the run; lanes may be those of the first of them."""
    hosts: tuple[str, ...]
    """Of each rank; empty if unknown."""
    tick_ns: int
    """Resolution for the window in 32 bits: 1 ns up to four seconds, 0.84 µs for an hour."""
    window: int
    """Length of the run in ticks."""
    clock_error_ns: int
    """Upper bound of the clock error between two ranks."""
    lanes: tuple[Lane, ...]
    start: np.ndarray
    """Of every part, uint32."""
    kind: np.ndarray
    """Index into PICTURE_KINDS, uint8."""
    step: np.ndarray
    """Optimizer steps taken before it, int32; -1 outside the loop."""
    ref: np.ndarray
    """The row of the message that a part belongs to, int32; -1 for none, -2 - b for bundle b."""
    bundles: np.ndarray
    """Number of parts of each bundle, uint32."""
    issued: np.ndarray
    """Of every message that a part refers to, uint32."""
    gathered: np.ndarray
    """When the last rank issued it; NOT_SEEN if unknown."""
    completed: np.ndarray
    """Latest possible completion; NOT_SEEN if unknown."""
    label: np.ndarray
    """Index into `labels`, uint32."""
    labels: tuple[MessageLabel, ...]
    steps_at: np.ndarray
    """Starts of the first rank's steps, uint32; a subset if there are very many."""
    steps: np.ndarray
    """Their numbers, int32."""
    loop: tuple[int, int]
    """From the first step of any rank to the end of the last; the whole window without steps."""
    parts: int
    """Number of parts in the traces."""
    shown: int
    """Parts that are drawn separately; the others are in bundles."""
    merged_below_ns: int
    """Parts shorter than this are in bundles; 0 if none is."""
    in_full: tuple[tuple[int, int], ...]
    """Intervals in which all parts are drawn separately, spread over the run; empty without bundles."""
