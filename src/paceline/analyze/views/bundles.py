"""Fewer parts for a picture: short neighbours become a bundle, which keeps the time of each kind and not the order.

    before   │a│b│a│c│    long    │b│a│b│        kinds of parts, in one lane
    after    │a  │b│c│    long    │a│b  │        a bundle for each stretch of short ones, at most as long as the bound

So the time of every kind in every lane is the same as before, to the nanosecond, and whatever is longer than the bound
is as it was. Some stretches of the run are kept in full, so that single steps can still be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paceline.records.run_picture import PICTURE_KINDS

_NONE = PICTURE_KINDS.index("none")
_KINDS = len(PICTURE_KINDS)
_STRETCHES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of all lanes, one lane after the other, as columns of equal length."""

    lane: np.ndarray
    start_ns: np.ndarray
    length_ns: np.ndarray
    kind: np.ndarray
    """Index into PICTURE_KINDS."""
    step: np.ndarray
    ref: np.ndarray
    """A message's row, -1 for none, -2 - b in bundle b."""

    def __len__(self) -> int:
        return len(self.lane)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundled:
    """Parts that are few enough, and what was done to them."""

    parts: Parts
    sizes: np.ndarray
    """How many parts each bundle stands for."""
    below_ns: int
    """Shorter parts were merged; 0 where none was."""
    in_full_ns: tuple[tuple[int, int], ...]
    """Stretches in which none was merged."""


def bundled(parts: Parts, limit: int) -> Bundled:
    """At most about `limit` parts: half of them in bundles, and half as they were, in stretches all over the run."""
    if len(parts) <= limit:
        return Bundled(parts=parts, sizes=np.zeros(0, np.int64), below_ns=0, in_full_ns=())
    window_ns = int((parts.start_ns + parts.length_ns).max())
    lanes = int(parts.lane[-1]) + 1
    begins, ends = _spread(parts, limit // 2)
    kept = np.searchsorted(begins, parts.start_ns, side="right") > np.searchsorted(ends, parts.start_ns, side="right")
    in_full = tuple(zip(begins.tolist(), ends.tolist(), strict=True))
    # Few kinds in a bundle are a bound that is easily reached; the guess is for some.
    below_ns = max(1, 4 * window_ns * lanes // max(limit, 1))
    while True:
        fewer, sizes = _merged(parts, kept, below_ns)
        # A bound above the whole window leaves one bundle between two stretches: fewer there cannot be.
        if len(fewer) <= limit or below_ns > window_ns:
            return Bundled(parts=fewer, sizes=sizes, below_ns=below_ns, in_full_ns=in_full)
        below_ns = below_ns * 3 // 2 + 1


def _spread(parts: Parts, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Where stretches with `limit` parts altogether begin and end: as many parts between any two of them."""
    starts = np.sort(parts.start_ns)
    middle = (2 * np.arange(_STRETCHES) + 1) * len(starts) // (2 * _STRETCHES)
    half = limit // (2 * _STRETCHES)
    return starts[middle - half], starts[middle + half]


def _merged(parts: Parts, kept: np.ndarray, below_ns: int) -> tuple[Parts, np.ndarray]:
    """The parts with every run of shorter ones, two or more of them, as a bundle; those that are `kept` as they are."""
    group = _runs(parts, kept | (parts.length_ns >= below_ns), below_ns)
    alone = np.bincount(group)[group] == 1
    short = np.flatnonzero(~alone)
    first = short[np.flatnonzero(np.diff(group[short], prepend=-1))]
    bundle = np.searchsorted(group[first], group[short])
    cells = bundle * _KINDS + parts.kind[short]
    spent = np.bincount(cells, weights=parts.length_ns[short], minlength=len(first) * _KINDS).astype(np.int64)
    of, kind = np.divmod(np.flatnonzero(spent), _KINDS)
    length = spent[spent > 0]
    before = np.cumsum(length) - length
    within = before - before[np.searchsorted(of, np.arange(len(first)))][of]
    made = Parts(
        lane=parts.lane[first][of],
        start_ns=parts.start_ns[first][of] + within,
        length_ns=length,
        kind=kind.astype(parts.kind.dtype),
        step=parts.step[first][of],
        ref=-2 - of,
    )
    sizes = np.bincount(bundle[parts.kind[short] != _NONE], minlength=len(first))
    return _together(parts, np.flatnonzero(alone), made), sizes


def _runs(parts: Parts, alone: np.ndarray, below_ns: int) -> np.ndarray:
    """For each part the number of its run: neighbours of a lane that start in the same multiple of the bound."""
    new = alone | (np.diff(parts.lane, prepend=-1) != 0) | (np.diff(parts.start_ns // below_ns, prepend=-1) != 0)
    new[1:] |= alone[:-1]
    return np.cumsum(new) - 1


def _together(parts: Parts, kept: np.ndarray, made: Parts) -> Parts:
    """Some of the parts and those that were made, in the order of lanes and time."""
    columns = {
        name: np.concatenate((getattr(parts, name)[kept], getattr(made, name))) for name in Parts.__dataclass_fields__
    }
    order = np.lexsort((columns["start_ns"], columns["lane"]))
    return Parts(**{name: column[order] for name, column in columns.items()})
