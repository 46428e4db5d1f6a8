"""Live metrics of a running study: step rates, medians, the ledger so far, the remaining time.

    remaining time = current run        remaining steps ÷ steps per second, or expected duration − elapsed time
                   + each later run     expected duration of its point, else duration of the current run

Assumes: the current step rate persists. Evaluation and start-up are included only for points with finished runs. Time
in a queue is not included.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from paceline.analyze.points.timing import epoch_s, samples_per_s
from paceline.analyze.run.ledger import mean_ledger
from paceline.analyze.run.so_far import PartialLedger, empty_ledger, extended_ledger
from paceline.analyze.stats.intervals import known_interval, spread
from paceline.records.live_study import (
    RUNNING,
    SILENT,
    PointLook,
    PointNow,
    RankLook,
    RankNow,
    RunLook,
    RunNow,
    StudyLook,
    Watched,
)
from paceline.records.rank_pulse import Pulse
from paceline.units import seconds

_RATE_WINDOW_S = 15.0
"""Window of a step rate: long enough for slow steps, short enough to follow a change."""
_SHORTEST_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PulseReadings:
    """Pulse readings of one rank."""

    readings: tuple[tuple[float, int], ...]
    """Instant in seconds and finished steps: each reading with a new step, and the last one."""
    beats: int
    moved_at_s: float
    """Instant of the last new heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """State that is carried from one look at a study to the next."""

    key: str = ""
    moves: dict[int, PulseReadings] = field(default_factory=dict)
    """By rank."""
    counted: PartialLedger | None = None
    points: dict[str, PointNow] = field(default_factory=dict)
    """By point_id; recomputed when another run of the point is finished."""


def next_memory(before: Memory, look: StudyLook, at_s: float) -> Memory:
    """The state after one more look; a new run begins with an empty state."""
    points = {point.point_id: _figures(point, before.points.get(point.point_id)) for point in look.points}
    run = look.run
    if run is None:
        return Memory(points=points)
    if run.key != before.key:
        before = Memory(key=run.key)
    counted = before.counted or empty_ledger(len(run.ranks), run.launched_at_ns)
    moves = {
        rank.rank: with_pulse(before.moves.get(rank.rank), rank.pulse, at_s)
        for rank in run.ranks
        if rank.pulse is not None
    }
    counted = extended_ledger(counted, run.spans) if run.spans else counted
    return Memory(key=run.key, moves=moves, counted=counted, points=points)


def live_view(look: StudyLook, memory: Memory, *, at_s: float, looked_at: str) -> Watched:
    """The live view of a study."""
    run = _run(look.run, memory, at_s) if look.run else None
    present = look.state in (RUNNING, SILENT)
    current = look.run.point_id if look.run and present else None
    points = tuple(_point(point, memory, running=point.point_id == current) for point in look.points)
    return Watched(
        folder=look.folder,
        name=look.name,
        state=look.state,
        told=look.told,
        looked_at=looked_at,
        done=sum(point.done for point in points) + look.unread,
        of=sum(point.of for point in points),
        unread=look.unread,
        left_s=time_left_s(look, run) if present else None,
        points=points,
        run=run,
        report=look.report,
        next=look.next,
    )


def time_left_s(look: StudyLook, run: RunNow | None) -> float | None:
    """Seconds until the last run ends; None if they cannot be estimated."""
    own_s, whole_s = (0.0, look.expected_s) if run is None else _own_left_s(run, look.expected_s)
    if own_s is None or (look.pending_unknown and whole_s is None):
        return None
    if run is None and not look.pending_s and not look.pending_unknown:
        return None
    return own_s + look.pending_s + look.pending_unknown * (whole_s or 0.0)


def _own_left_s(run: RunNow, expected_s: float | None) -> tuple[float | None, float | None]:
    """Remaining and total seconds of the current run; None if unknown."""
    elapsed_s = run.elapsed_s or 0.0
    paces = [rank.steps_per_s for rank in run.ranks if rank.steps_per_s]
    if paces and run.total_steps and run.step is not None and run.step <= run.total_steps:
        left_s = (run.total_steps - run.step) / min(paces)
        return left_s, expected_s or elapsed_s + left_s
    return (None if expected_s is None else max(0.0, expected_s - elapsed_s)), expected_s


def _run(run: RunLook, memory: Memory, at_s: float) -> RunNow:
    counted = memory.counted
    ledgers = counted.ledgers_s if counted else {}
    ranks = tuple(_rank(rank, run, memory, ledgers.get(rank.rank), at_s) for rank in run.ranks)
    pulses = [rank.pulse for rank in run.ranks if rank.pulse is not None]
    training = [ledgers[rank] for rank in range(len(run.ranks)) if rank in ledgers]
    rates = [rank.samples_per_s for rank in ranks]
    is_counted = counted is not None and counted.step >= 0
    return RunNow(
        point=run.point_id,
        label=run.label,
        run=run.number,
        attempt=run.attempt,
        phase=run.phase or _phase(run),
        step=min((pulse.step for pulse in pulses), default=None),
        total_steps=max((pulse.total_steps for pulse in pulses), default=0) or None,
        elapsed_s=run.elapsed_s,
        samples_per_s=sum(rate for rate in rates if rate is not None) if rates and None not in rates else None,
        ranks=ranks,
        epochs=run.epochs,
        ledger_s=mean_ledger(training) if training else None,
        ledger_step=counted.step + 1 if counted and is_counted else None,
        ledger_reaches_s=seconds(counted.until_ns - counted.started_at_ns) if counted and is_counted else None,
        notes=run.notes,
    )


def _phase(run: RunLook) -> str:
    """The most frequent phase of the ranks; `starting` before the first pulse."""
    phases = [rank.pulse.phase for rank in run.ranks if rank.pulse is not None]
    return max(phases, key=phases.count) if phases else "starting"


def _rank(
    rank: RankLook, run: RunLook, memory: Memory, ledger_s: dict[str, float | None] | None, at_s: float
) -> RankNow:
    moves = memory.moves.get(rank.rank)
    done = rank.ended is not None or (rank.pulse is not None and rank.pulse.phase == "done")
    pace = None if done else steps_per_s(moves) or (memory.counted.steps_per_s if memory.counted else None)
    return RankNow(
        rank=rank.rank,
        phase=rank.pulse.phase if rank.pulse else None,
        step=rank.pulse.step if rank.pulse else None,
        steps_per_s=pace,
        samples_per_s=pace * run.batch_per_rank if pace is not None and run.batch_per_rank else None,
        still_s=None if moves is None or done else at_s - moves.moved_at_s,
        ended=rank.ended,
        ledger_s=ledger_s,
    )


def _point(point: PointLook, memory: Memory, *, running: bool) -> PointNow:
    state = "failed" if point.failure else "running" if running else "waiting"
    state = "done" if len(point.results) == point.of else state
    return replace(memory.points[point.point_id], state=state, failure=point.failure)


def _figures(point: PointLook, before: PointNow | None) -> PointNow:
    """A point with the medians of its finished runs; `before` if no run was added."""
    if before is not None and (before.done, before.of) == (len(point.results), point.of):
        return before
    accuracies = [result.test_accuracy for result in point.results if result.test_accuracy is not None]
    return PointNow(
        point=point.point_id,
        label=point.label,
        done=len(point.results),
        of=point.of,
        state="",
        epoch_s=known_interval(map(epoch_s, point.results)),
        samples_per_s=known_interval(map(samples_per_s, point.results)),
        test_accuracy=spread(accuracies) if accuracies else None,
        failure=None,
    )


def with_pulse(before: PulseReadings | None, pulse: Pulse, at_s: float) -> PulseReadings:
    """The readings with one more pulse; only that pulse if steps or beats decreased, as in a resumed run."""
    if before is None or pulse.step < before.readings[-1][1] or pulse.beats < before.beats:
        return PulseReadings(readings=((at_s, pulse.step),), beats=pulse.beats, moved_at_s=at_s)
    last = before.readings[-1]
    # A reading without a new step replaces the one before. Before the first step it is the only one: a step rate does
    # not include start-up.
    replaces = pulse.step == last[1] and (len(before.readings) > 1 or not pulse.step)
    earlier = before.readings[:-1] if replaces else before.readings
    recent = tuple(reading for reading in earlier if at_s - reading[0] <= _RATE_WINDOW_S)
    return PulseReadings(
        readings=(*(recent or earlier[-1:]), (at_s, pulse.step)),
        beats=pulse.beats,
        moved_at_s=at_s if pulse.beats > before.beats else before.moved_at_s,
    )


def steps_per_s(moves: PulseReadings | None) -> float | None:
    """Steps per second over the last readings; None if no step has ended in them."""
    if moves is None or len(moves.readings) < 2:
        return None
    (first_s, first), (last_s, last) = moves.readings[0], moves.readings[-1]
    return (last - first) / (last_s - first_s) if last > first and last_s - first_s >= _SHORTEST_S else None
