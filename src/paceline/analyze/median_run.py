"""The median run of a point: its ledger, what its loop cost, what its ranks said to each other.

A figure that only a trace can give is that of one run, the median one: a mean of several runs would
be the ledger of none. Only ranks that train have a ledger; servers and a coordinator wait for them
most of the time and would make any mean meaningless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paceline.analyze.ledger import ledgers, mean_ledger
from paceline.analyze.losses import exposed_share, loop_costs_s, loop_windows
from paceline.analyze.timing import throughputs, timed_from_step
from paceline.analyze.traffic import message_bytes
from paceline.errors import PacelineError
from paceline.records.run import RunResult
from paceline.records.trace import RankTrace
from paceline.units import nanoseconds

# On a GPU the host's spans show when work was queued, not when it ran.
_ON_DEVICE = ("forward", "backward", "comm-wait", "comm-transfer", "optimizer")
_QUEUED = "On a GPU a step is not divided yet: its forward, backward, communication and optimizer are null."
Traces = Callable[[RunResult], Sequence[RankTrace]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianRun:
    """What the traces of a point's median run show, or why they show nothing."""

    run: int | None = None
    mean_s: dict[str, float | None] | None = None
    ranks_s: tuple[dict[str, float | None], ...] = ()
    costs_s: dict[str, float | None] | None = None
    """Rank-seconds per sample in the timed epochs, by kind."""
    exposed_share: float | None = None
    """Fraction of the timed epochs in which ranks communicated and computed nothing."""
    message_bytes: float | None = None
    """Payload of a rank's messages per step in the timed epochs."""
    gap: str | None = None
    """What is missing from it, in a sentence; None where nothing is."""


def median_run(runs: Sequence[RunResult], traces: Traces, *, servers: int = 0) -> MedianRun:
    """The median of the runs of a point, from its launch to its end."""
    run = _median(runs)
    if run is None:
        return MedianRun()
    try:
        found = [trace for trace in traces(run) if trace.rank < run.ranks]
    except PacelineError as error:
        return MedianRun(run=run.run, gap=f"The spans of run {run.run} cannot be read: {error.what}")
    if not found:
        return MedianRun(run=run.run, gap=f"Run {run.run} left no spans.")
    ended_at_ns = run.launched_at_ns + nanoseconds(run.wall_s)
    ranks_s = ledgers(found, started_at_ns=run.launched_at_ns, ended_at_ns=ended_at_ns, ranks=run.ranks)
    if run.device == "cuda":
        ranks_s = tuple(_host_ledger(ledger) for ledger in ranks_s)
        return MedianRun(run=run.run, mean_s=mean_ledger(ranks_s), ranks_s=ranks_s, gap=_QUEUED)
    costs_s, sent = _loop(run, found, servers) if len(found) == run.ranks else (None, None)
    return MedianRun(
        run=run.run,
        mean_s=mean_ledger(ranks_s),
        ranks_s=ranks_s,
        costs_s=costs_s,
        exposed_share=exposed_share(costs_s) if costs_s else None,
        message_bytes=sent,
        gap=_gap(run, found, ranks_s),
    )


def _loop(
    run: RunResult, traces: Sequence[RankTrace], servers: int
) -> tuple[dict[str, float | None] | None, float | None]:
    """What the timed epochs cost per sample, and the payload of a rank's messages per step in them."""
    epochs = timed_from_step(run)
    windows, samples = loop_windows(traces, epochs), sum(epoch.samples for _, epoch in epochs)
    if windows is None or not samples:
        return None, None
    steps = sum(epoch.step - first_step for first_step, epoch in epochs)
    return loop_costs_s(traces, windows, samples, servers=servers), message_bytes(traces, windows, steps)


def _median(runs: Sequence[RunResult]) -> RunResult | None:
    """The run with the lower median time per sample, of those that were seen from launch to end."""
    throughput = throughputs([run for run in runs if run.total_s is not None])
    by_speed = sorted((run for run in runs if run.run in throughput), key=lambda run: (-throughput[run.run], run.run))
    return by_speed[(len(by_speed) - 1) // 2] if by_speed else None


def _host_ledger(ledger: dict[str, float | None]) -> dict[str, float | None]:
    """What the host's clock knows of a GPU's time: what was only queued is not divided, and goes to `other`."""
    queued_s = sum(ledger[kind] or 0.0 for kind in _ON_DEVICE)
    return {**ledger, **dict.fromkeys(_ON_DEVICE), "other": (ledger["other"] or 0.0) + queued_s}


def _gap(run: RunResult, found: Sequence[RankTrace], ranks_s: Sequence[dict[str, float | None]]) -> str | None:
    """What a ledger lacks: ranks, the end of a trace, the division of communication."""
    broken = [trace.rank for trace in found if trace.truncated]
    if len(found) < run.ranks:
        return f"Run {run.run} has the spans of {len(found)} of its {run.ranks} ranks."
    if broken:
        return f"The spans of run {run.run} break off on rank {', '.join(map(str, broken))}."
    if any(ledger["comm-wait"] is None for ledger in ranks_s):
        return f"Run {run.run} does not show the same collectives on all of its {run.ranks} ranks."
    return None
