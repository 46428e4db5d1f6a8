"""How fast a rank moves, from readings of its pulse while it is watched."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.records.rank_pulse import Pulse

_REMEMBERED_S = 15.0
"""Readings that a rate is made of: long enough for slow steps, short enough to follow a change."""
_SHORTEST_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What was seen of one rank."""

    readings: tuple[tuple[float, int], ...]
    """Instant in seconds and steps taken, at every look in which they had changed; and the last look."""
    beats: int
    moved_at_s: float
    """When a sign of life was new."""


def moved(before: Moves | None, pulse: Pulse, at_s: float) -> Moves:
    """With one more reading; what went back, as a resumed run does, begins anew."""
    if before is None or pulse.step < before.readings[-1][1] or pulse.beats < before.beats:
        return Moves(readings=((at_s, pulse.step),), beats=pulse.beats, moved_at_s=at_s)
    last = before.readings[-1]
    # Between two looks without a step only the later one counts: a step ends when it is seen to. Before the first step
    # that is the only one: start-up is no part of a pace.
    waits = pulse.step == last[1] and (len(before.readings) > 1 or not pulse.step)
    kept = before.readings[:-1] if waits else before.readings
    recent = tuple(reading for reading in kept if at_s - reading[0] <= _REMEMBERED_S)
    return Moves(
        readings=(*(recent or kept[-1:]), (at_s, pulse.step)),
        beats=pulse.beats,
        moved_at_s=at_s if pulse.beats > before.beats else before.moved_at_s,
    )


def steps_per_s(moves: Moves | None) -> float | None:
    """Steps per second over what is remembered; None where no step was seen to end."""
    if moves is None or len(moves.readings) < 2:
        return None
    (first_s, first), (last_s, last) = moves.readings[0], moves.readings[-1]
    return (last - first) / (last_s - first_s) if last > first and last_s - first_s >= _SHORTEST_S else None
