"""How much the ranks of a run said to each other while they trained.

The payload of a message is what a rank gives or takes at its own end: an all-reduce counts once, a
reduce and a broadcast count twice, and so do a push to a parameter server and the pull that answers
it. What travels on the wire depends on the algorithm under it and is not seen from here.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.records.trace import SPAN_KINDS, RankTrace

_COLLECTIVE = SPAN_KINDS.index("collective")


def message_bytes(traces: Sequence[RankTrace], windows: Sequence[tuple[int, int]], steps: int) -> float | None:
    """Payload of a rank's messages per step, mean over ranks, issued within `windows` that hold `steps` steps."""
    if not steps or not traces:
        return None
    total = 0
    for trace in traces:
        sent = (trace.kind == _COLLECTIVE) & (trace.bytes > 0)
        issued, payload = trace.start_ns[sent], trace.bytes[sent]
        for start, end in windows:
            total += int(payload[(issued >= start) & (issued < end)].sum())
    return total / len(traces) / steps
