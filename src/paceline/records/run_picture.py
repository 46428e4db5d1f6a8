"""The picture of a run: what every rank did and which messages it had under way, small enough to be put into a page.

A picture has lanes: one for each rank's main thread, and below it rows for its messages, several where messages
overlap. A lane is a run's window cut into parts without a gap, so a part is its start alone: it lasts until the next.

    rank 0              forward │ backward            │ comm-wait │ comm-transfer │ optimizer │ ...
      messages, row 0   none            │ comm-wait               │ comm-transfer │ none
      messages, row 1   none                  │ comm-wait         │ comm-transfer │ none

Where a run has more parts than a page can hold, short neighbours are merged into a bundle: a stretch of the lane in
which each kind has its exact share of the time, and no order is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from paceline.records.rank_trace import LEDGER_KINDS

if TYPE_CHECKING:
    import numpy as np

# `message`: under way, and nothing says until when it waited for others. `none`: no message at all.
PICTURE_KINDS = (*LEDGER_KINDS, "message", "none")

NOT_SEEN = 2**32 - 1
"""An instant in ticks that the traces do not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One strip of a picture, and where its parts stand in the columns."""

    rank: int
    row: int
    """-1 for the main thread; else which row of messages."""
    first: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLabel:
    """What a message is, apart from when."""

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
    """As fine as the window allows with 32 bits: 1 ns up to four seconds, 0.84 µs for an hour."""
    window: int
    """Length of the run in ticks."""
    clock_error_ns: int
    """By how much two ranks' instants may be misplaced against each other."""
    lanes: tuple[Lane, ...]
    start: np.ndarray
    """Of every part, uint32."""
    kind: np.ndarray
    """Index into PICTURE_KINDS, uint8."""
    step: np.ndarray
    """Optimizer steps taken before it, int32; -1 outside the loop."""
    ref: np.ndarray
    """The row of the message that a part belongs to, int32; -1 if to none, and -2 - b where it is in bundle b."""
    bundles: np.ndarray
    """How many parts each bundle stands for, uint32."""
    issued: np.ndarray
    """Of every message that a part refers to, uint32."""
    gathered: np.ndarray
    """When the last rank had issued it; NOT_SEEN where a trace does not show it."""
    completed: np.ndarray
    """When it was over, at the latest; NOT_SEEN likewise."""
    label: np.ndarray
    """Index into `labels`, uint32."""
    labels: tuple[MessageLabel, ...]
    steps_at: np.ndarray
    """Starts of the first rank's steps, uint32; thinned where there are very many."""
    steps: np.ndarray
    """Their numbers, int32."""
    loop: tuple[int, int]
    """From the first step of any rank to the end of the last; the whole window where there are no steps."""
    parts: int
    """Parts that the traces show."""
    shown: int
    """Those of them that are drawn one by one; the others are in bundles."""
    merged_below_ns: int
    """Parts shorter than this are in bundles; 0 if none is."""
    in_full: tuple[tuple[int, int], ...]
    """Stretches in which all parts are drawn one by one, spread over the run; none where that is so everywhere."""
