"""How much the ranks of a run said to each other while they trained.

The payload of a message is what a rank gives or takes at its own end: an all-reduce counts once, a
reduce and a broadcast count twice, and so do a push to a parameter server and the pull that answers
it. What travels on the wire depends on the algorithm under it and is not seen from here.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.records.rank_trace import SPAN_KINDS, RankTrace

_COLLECTIVE = SPAN_KINDS.index("collective")


def traffic(
    traces: Sequence[RankTrace], windows: Sequence[tuple[int, int]], steps: int
) -> tuple[float | None, float | None]:
    """Messages of a rank per step and their payload in bytes, means over ranks, issued within `windows` of `steps`."""
    if not steps or not traces:
        return None, None
    messages = payload_bytes = 0
    for trace in traces:
        sent = (trace.kind == _COLLECTIVE) & (trace.bytes > 0)
        issued, payload = trace.start_ns[sent], trace.bytes[sent]
        for start, end in windows:
            within = (issued >= start) & (issued < end)
            messages += int(within.sum())
            payload_bytes += int(payload[within].sum())
    each = len(traces) * steps
    return messages / each, payload_bytes / each
