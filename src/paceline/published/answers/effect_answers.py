"""Verdicts about time in studies that change one factor at a time: exchange, threads, servers, checkpoints."""

from __future__ import annotations

from paceline.published.answers.evidence import (
    Evidence,
    Verdict,
    answered,
    direction,
    few_repeats,
    scaling_caveat,
    span_text,
    unanswered,
)
from paceline.published.matching.measures import time_percent
from paceline.records.results import Effect, Interval, PointResult
from paceline.units import counted, percent_text

_FOUR = 4
"""Cores beyond which the published study expected a gain."""
_NAMES = {
    "run.ranks": "workers",
    "run.servers": "servers",
    "run.threads": "threads of a worker",
    "run.server_threads": "threads of a server",
    "train.checkpoint_every": "steps between checkpoints",
}


def allreduce_instead(evidence: Evidence) -> Verdict:
    """Training time with mpi-allreduce in per cent of that with pickled reduce and broadcast, the published way."""
    effect = _effect(evidence, "run.strategy", "mpi-allreduce")
    if effect is None or effect.time_pct is None:
        return unanswered("The point with mpi-allreduce is missing.", "It needs mpiexec and more than one rank.")
    return _effect_verdict(
        evidence, effect, ("It pays", "It costs time"), "an all-reduce", "of the published exchange's time"
    )


def more_cores_slower(evidence: Evidence) -> Verdict:
    """Two threads against one, and more than four against one: each with a core for every thread."""
    fair = {point.point_id for point in evidence.points if point.fair}
    timed = [e for e in evidence.results.effects if e.factor == "run.threads" and not e.is_baseline and e.time_pct]
    own = [effect for effect in timed if effect.point_id in fair]
    if not own:
        not_run = [item for item in evidence.results.not_run if "run.threads" in item.settings]
        why = not_run[0].reason if not_run and not timed else "No point with more threads than one has a core for each."
        return unanswered(why, "A machine with more cores would show it.")
    figure = "; ".join(f"{e.value} threads {span_text(_percent(e), ' %')}" for e in own)
    if all(effect.time_pct and effect.time_pct.p is None for effect in own):
        few = few_repeats(min(_percent(effect).n for effect in own))
        return unanswered(f"In % of one thread's time: {figure}.", few, figure=figure)
    two = [effect for effect in own if effect.value == 2]
    many = [effect for effect in own if isinstance(effect.value, int) and effect.value > _FOUR]
    first = _threads_text(two[0], "two threads") if two else "two threads had no two cores to themselves"
    rest = "; ".join(_threads_text(effect, f"{effect.value} threads") for effect in many) or _beyond_four(evidence)
    text = f"{first[0].upper()}{first[1:]}; {rest}."
    num_crowded = len(timed) - len(own)
    crowded = f"Threads beyond the cores are left out: {num_crowded} of {len(timed)} points." if num_crowded else ""
    return (answered if two and many else unanswered)(text, crowded, figure=figure)


def _threads_text(effect: Effect, who: str) -> str:
    """Time of several threads in per cent of one thread, as the test allows to call it."""
    assert effect.time_pct is not None
    taken = f"{span_text(_percent(effect), ' %')} of its time"
    if not effect.time_pct.real:
        return f"{who} are not shown to be slower or faster than one: {taken}"
    return f"{who} are {'slower' if _percent(effect).median > 100 else 'faster'} than one: {taken}"


def _beyond_four(evidence: Evidence) -> str:
    """What is missing for more than four threads."""
    machine = evidence.results.machine
    if machine is not None and machine.cores > _FOUR:
        return f"beyond four nothing was run here (--set run.threads=1,2,4,{2 * _FOUR})"
    here = f"the {counted(machine.cores, 'core')} of this one" if machine is not None else "four cores"
    return f"beyond four it takes a machine with more than {here}"


def how_much_sooner(evidence: Evidence) -> Verdict:
    """Training time of the most workers with servers in per cent of one process, paired by repeat.

    Points with a core for every rank are preferred.
    """
    with_servers = [point for point in evidence.points if point.point.servers and point.point.ranks > 1]
    if not with_servers:
        return unanswered(
            "No run with several workers and a parameter server is finished.", "Run the study to its end."
        )
    many = max(with_servers, key=lambda p: (p.point.train.epochs or 0, p.fair, p.point.ranks, p.point.servers))
    epochs = many.point.train.epochs
    alone = [p for p in evidence.points if p.ranks_and_servers == 1 and p.point.train.epochs == epochs]
    percent = time_percent(many, alone[0]) if alone else None
    if percent is None:
        return unanswered("The single process to compare with is missing.", "Run the study with --ranks 1,2.")
    who = f"{counted(many.point.ranks, 'worker')} and {counted(many.point.servers, 'server')}"
    figure = f"{span_text(percent, ' %')} of one process's training time"
    if percent.coverage is None:
        return unanswered(f"{who} take {figure}.", few_repeats(percent.n), figure=figure)
    called = {"less": "It is over sooner", "more": "It takes longer", "": "They cannot be told apart"}
    word = called[direction(percent, 100.0)]
    rival = _without_servers(evidence, many, alone[0])
    beside = f"; as many workers without servers take {span_text(rival, ' %')}" if rival else ""
    caveat = scaling_caveat(many)
    note = caveat or f"Over {counted(epochs or 0, 'epoch')}; starting up is not in it."
    return answered(f"{word}: {who} take {figure}{beside}.", note, figure=figure, caveat=caveat)


def _without_servers(evidence: Evidence, many: PointResult, alone: PointResult) -> Interval | None:
    """Training time of as many ranks without servers, in per cent of one process; None without such a point."""
    alike = [
        point
        for point in evidence.points
        if (point.point.ranks, point.point.servers) == (many.point.ranks, 0)
        and point.point.train.epochs == many.point.train.epochs
    ]
    return time_percent(alike[0], alone) if alike else None


def cloud_faster(evidence: Evidence) -> Verdict:
    """Single changes that made a difference, the largest first."""
    effects = [e for e in evidence.results.effects if not e.is_baseline and e.time_pct and e.factor in _NAMES]
    if not effects:
        return unanswered("No point differs from the baseline in one thing alone.", "Run it to its end.")
    ordered = sorted(effects, key=lambda effect: _percent(effect).median)
    figure = "; ".join(f"{_NAMES[e.factor]} {e.value}: {span_text(_percent(e), ' %')}" for e in ordered)
    if all(effect.time_pct and effect.time_pct.p is None for effect in ordered):
        return unanswered(f"In % of the baseline's time: {figure}.", few_repeats(_percent(ordered[0]).n), figure=figure)
    faster = [e for e in ordered if e.time_pct and e.time_pct.real and _percent(e).median < 100]
    slower = [e for e in ordered if e.time_pct and e.time_pct.real and _percent(e).median > 100]
    named = ", ".join(dict.fromkeys(_NAMES[e.factor] for e in faster)) or "nothing"
    cost = ", ".join(dict.fromkeys(_NAMES[e.factor] for e in slower)) or "nothing"
    shown = "; ".join(f"{_NAMES[e.factor]} {e.value}: {span_text(_percent(e), ' %')}" for e in (*faster, *slower))
    changed = [p for p in evidence.points if p.point_id in {e.point_id for e in (*faster, *slower)}]
    lead = ("Nothing that was changed alone is shown to change the time.",)
    if shown:
        lead = (f"In % of the baseline's time, each changed alone: {shown}.", scaling_caveat(*changed))
    return answered(
        f"Changed alone, {named} made it faster, {cost} made it slower.",
        f"In % of the baseline's time: {figure}.",
        figure=figure,
        lead=lead,
    )


def checkpoint_cost(evidence: Evidence) -> Verdict:
    """The point that writes checkpoints against the one that does not."""
    effect = next(
        (e for e in evidence.results.effects if e.factor == "train.checkpoint_every" and not e.is_baseline), None
    )
    if effect is None or effect.time_pct is None:
        return unanswered("A point with checkpoints and one without are needed.", "Run the study to its end.")
    point = next(each for each in evidence.points if each.point_id == effect.point_id)
    kinds = point.ledger_s or {}
    written, whole = kinds.get("checkpoint"), sum(value for value in kinds.values() if value is not None)
    share = f"; the ledger's checkpoint row has {percent_text(written / whole)} of the run" if written and whole else ""
    called = "Checkpoints make it faster", "Checkpoints cost time"
    of_what = f"of the time without, with one every {effect.value} steps"
    return _effect_verdict(evidence, effect, called, "a run", of_what, share)


def _effect(evidence: Evidence, path: str, value: str) -> Effect | None:
    return next((each for each in evidence.results.effects if each.factor == path and each.value == value), None)


def _percent(effect: Effect) -> Interval:
    assert effect.time_pct is not None
    return effect.time_pct.interval


def _effect_verdict(
    evidence: Evidence, effect: Effect, called: tuple[str, str], who: str, of_what: str, more: str = ""
) -> Verdict:
    """The verdict on one effect on time: `called` is the word for less time and the one for more."""
    assert effect.time_pct is not None
    interval = effect.time_pct.interval
    figure = f"{span_text(interval, ' %')} {of_what}"
    if effect.time_pct.p is None:
        return unanswered(f"{who[0].upper()}{who[1:]} takes {figure}{more}.", few_repeats(interval.n), figure=figure)
    caveat = scaling_caveat(*(each for each in evidence.points if each.point_id == effect.point_id))
    word = called[interval.median > 100] if effect.time_pct.real else "No difference can be shown"
    return answered(f"{word}: {who} takes {figure}{more}.", caveat, figure=figure, caveat=caveat)
