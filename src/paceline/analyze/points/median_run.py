"""The median run of a point: its ledger, the cost of its training loop, its messages per step.

Metrics that need a trace come from one run, the median one: a mean over runs would be the ledger of no real run. The
duration of an update is the exception (published/matching/updates.py). Only training ranks have a ledger: servers and
a coordinator mostly wait, and would distort any mean.

The payload of a message is counted at each rank's own end: an all-reduce counts once, a reduce and a broadcast count
twice, and so do a push to a parameter server and the pull that answers it. The bytes on the wire depend on the
algorithm of the backend and are not visible in a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from paceline.analyze.points.losses import exposed_share, loop_costs_s, loop_windows
from paceline.analyze.points.timing import throughputs, timed_from_step
from paceline.analyze.run.efficiencies import Work
from paceline.analyze.run.ledger import mean_ledger
from paceline.analyze.run.messages import Messages, messages
from paceline.analyze.run.run_summary import RunAnalysis, run_analysis
from paceline.errors import PacelineError
from paceline.records.finding import Note
from paceline.records.rank_trace import SPAN_KINDS, RankTrace
from paceline.records.results import RunView
from paceline.records.run import Epoch, RunResult
from paceline.records.trace_summary import RunTrace, TraceSummary

# On a GPU the host's spans show when work was queued, not when it ran.
_ON_DEVICE = ("forward", "backward", "comm-wait", "comm-transfer", "optimizer")
Traces = Callable[[RunResult], RunTrace]
View = Callable[[RunResult, RunTrace, Sequence[Messages]], RunView]
"""Builds the drawn view of a run while its spans are loaded: those of all points might not fit into memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianRun:
    """Metrics from the traces of a point's median run; `gap` if some are missing."""

    run: int | None = None
    mean_s: dict[str, float | None] | None = None
    ranks_s: tuple[dict[str, float | None], ...] = ()
    costs_s: dict[str, float | None] | None = None
    """Rank-seconds per sample in the timed epochs, by kind."""
    exposed_share: float | None = None
    """Fraction of the timed epochs in which ranks communicated and computed nothing."""
    messages: float | None = None
    """Per rank and step in the timed epochs."""
    message_bytes: float | None = None
    """Their payload."""
    anatomy: TraceSummary | None = None
    """None on a GPU: the host's spans do not show when its work ran."""
    work: Work | None = None
    """In the timed epochs, which trained on `samples`."""
    samples: int = 0
    view: RunView | None = None
    gap: Note | None = None
    """Why the ledger is incomplete; None if it is complete."""


def median_result(runs: Sequence[RunResult]) -> RunResult | None:
    """The run with the (lower) median time per sample, or total time if no epoch was timed; None without runs.

    Resumed runs count only if all runs were resumed.
    """
    runs = [run for run in runs if run.total_s is not None] or list(runs)
    speeds = throughputs(runs)
    timed = [run for run in runs if run.run in speeds]
    ordered = sorted(timed, key=lambda run: (-speeds[run.run], run.run))
    ordered = ordered or sorted(runs, key=lambda run: (run.wall_s, run.run))
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def median_run(runs: Sequence[RunResult], traces: Traces, *, servers: int = 0, view: View | None = None) -> MedianRun:
    """Metrics of the median run of a point, from launch to end; empty if that run was resumed."""
    run = median_result(runs)
    if run is None or run.total_s is None:
        return MedianRun()
    try:
        found = traces(run)
        sides = messages(found.traces, found.ranks)
        seen = view(run, found, sides) if view else None
    except PacelineError as error:
        return MedianRun(run=run.run, gap=_note("spans-unreadable", run, error=error.what))
    training = [trace for trace in found.traces if trace.rank < run.ranks]
    if not training:
        return MedianRun(run=run.run, view=seen, gap=_note("no-spans", run))
    epochs = timed_from_step(run)
    windows = loop_windows(training, epochs) if len(training) == run.ranks else None
    analysis = run_analysis(found, windows, sides)
    ranks_s = analysis.summary.ledgers_s
    if run.device == "cuda":
        ranks_s = tuple(_host_ledger(ledger) for ledger in ranks_s)
        return MedianRun(
            run=run.run, mean_s=mean_ledger(ranks_s), ranks_s=ranks_s, view=seen, gap=_note("gpu-step-undivided", run)
        )
    looped = _loop(analysis, training, epochs, servers) if windows else MedianRun()
    return replace(
        looped,
        run=run.run,
        mean_s=mean_ledger(ranks_s),
        ranks_s=ranks_s,
        anatomy=analysis.summary,
        view=seen,
        gap=_gap(run, training, ranks_s, found.problems),
    )


def _loop(
    analysis: RunAnalysis, traces: Sequence[RankTrace], epochs: Sequence[tuple[int, Epoch]], servers: int
) -> MedianRun:
    """Cost per sample of the timed epochs, and messages and payload per rank and step in them."""
    samples, windows = sum(epoch.samples for _, epoch in epochs), analysis.windows
    if len(windows) < len(epochs) or not samples:
        return MedianRun()
    steps = sum(epoch.step - first_step for first_step, epoch in epochs)
    costs_s = loop_costs_s(analysis.lines, windows, samples, servers=servers)
    messages, message_bytes = traffic(traces, windows, steps)
    return MedianRun(
        costs_s=costs_s,
        exposed_share=exposed_share(costs_s),
        messages=messages,
        message_bytes=message_bytes,
        work=analysis.work,
        samples=samples,
    )


def _host_ledger(ledger: dict[str, float | None]) -> dict[str, float | None]:
    """A ledger with all kinds that a GPU executes moved to `other`: the host only queued them."""
    queued_s = sum(ledger[kind] or 0.0 for kind in _ON_DEVICE)
    return {**ledger, **dict.fromkeys(_ON_DEVICE), "other": (ledger["other"] or 0.0) + queued_s}


def _gap(
    run: RunResult,
    found: Sequence[RankTrace],
    ranks_s: Sequence[dict[str, float | None]],
    problems: Sequence[str],
) -> Note | None:
    """Why a ledger is incomplete: missing ranks, truncated traces, or communication that is not divided."""
    broken = [trace.rank for trace in found if trace.truncated]
    if len(found) < run.ranks:
        return _note("spans-of-some-ranks", run, found=len(found), problems=tuple(problems))
    if broken:
        return _note("spans-truncated", run, broken=tuple(broken))
    if any(ledger["comm-wait"] is None for ledger in ranks_s):
        return _note("collectives-differ", run)
    return None


def _note(code: str, run: RunResult, **values: object) -> Note:
    return Note(code=code, values={"run": run.run, "ranks": run.ranks, **values})


_COLLECTIVE = SPAN_KINDS.index("collective")


def traffic(
    traces: Sequence[RankTrace], windows: Sequence[tuple[int, int]], steps: int
) -> tuple[float | None, float | None]:
    """Messages per rank and step, and their payload in bytes, of the messages issued within `windows` of `steps`."""
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
