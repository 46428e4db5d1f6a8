"""Spans of a rank, and the kinds of the ledger.

A rank's main thread opens and closes spans that nest; a `collective` span is a message as the
probe saw it, from any thread. `spans/rank-0003.arrows` is an Arrow IPC stream of

    kind       dictionary<string>   one of SPAN_KINDS
    start_ns   int64                instant on the host's monotonic clock; of a message, when it was issued
    end_ns     int64, null          instant; null if it was never seen to end
    step       int32                optimizer steps taken before it; -1 outside the loop
    operation  dictionary<string>   of a message: allreduce_, send, ...; of startup: imports, model, ...; else null
    bytes      int64, null          payload of a message on this rank
    sequence   int32, null          number of the collective within its group, equal on all ranks
    group      dictionary<string>   of a message: the process group's name; else null
    peer       int32, null          of a message between two processes: the other one's number; of a collective with a
                                    root, broadcast_ for instance: the root's
    begun_ns   int64, null          of a message: when its transfer began, if the backend reports it; gloo does not
    dtype      dictionary<string>   of a message: float32, ...; null if it carries nothing

The end of a message is when this rank was notified: at or after its completion, never before. A message that lasted
longer than one flush interval is in the file twice, first without its end; `read_spans` returns it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

SPAN_SCHEMA = "paceline.spans/2"

# `communicate`: the main thread is blocked in communication. `step`: one optimizer step, around all else in it.
# `group`: no time at all; its `operation` names the ranks of `group`, "0 2", before the first message in it.
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
    "step",
    "group",
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


@dataclass(frozen=True, slots=True)
class Words:
    """A column of text: few words, many rows."""

    codes: np.ndarray
    """Index into `words`; -1 if the row has none."""
    words: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> Words:
        """The column of these texts."""
        import numpy as np  # 0.1 s, and not needed for the names of kinds

        known: dict[str, int] = {}
        codes = [-1 if text is None else known.setdefault(text, len(known)) for text in texts]
        return cls(np.array(codes, np.int32), tuple(known))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str | None:
        code = self.codes[row]
        return None if code < 0 else self.words[code]

    def __iter__(self) -> Iterator[str | None]:
        return map((*self.words, None).__getitem__, self.codes.tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTrace:
    """The spans of one rank, as columns of equal length."""

    rank: int
    kind: np.ndarray
    """Index into SPAN_KINDS, int8; -1 for an unknown kind."""
    start_ns: np.ndarray
    end_ns: np.ndarray
    """-1 if the span was never seen to end."""
    step: np.ndarray
    operation: Words
    bytes: np.ndarray
    """-1 if not a message."""
    sequence: np.ndarray
    """-1 if not a collective."""
    group: Words
    peer: np.ndarray
    """The other process of a message between two, the root of a collective that has one, -1 for all else."""
    begun_ns: np.ndarray
    """-1 if unknown."""
    dtype: Words
    truncated: bool = False
    """Whether the file is truncated."""

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The ranks of every process group that this one has used."""
        (rows,) = (self.kind == SPAN_KINDS.index("group")).nonzero()
        return {self.group[row] or "": tuple(map(int, (self.operation[row] or "").split())) for row in rows.tolist()}
