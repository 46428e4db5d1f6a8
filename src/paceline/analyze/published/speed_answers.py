"""Verdicts about time: more ranks, more hosts, more threads, another exchange, checkpoints."""

from __future__ import annotations

from collections.abc import Iterable

from paceline.analyze.published.evidence import (
    Evidence,
    Verdict,
    few_repeats,
    open_still,
    shared_cores,
    span_text,
    told,
)
from paceline.records.results import Effect, Interval, PointResult
from paceline.units import counted, duration_text, percent_text

_NAMES = {
    "run.ranks": "workers",
    "run.servers": "servers",
    "run.threads": "threads of a worker",
    "run.server_threads": "threads of a server",
    "train.checkpoint_every": "steps between checkpoints",
}


def two_slower(evidence: Evidence) -> Verdict:
    """Two ranks against one."""
    two = next((point for point in evidence.points if point.point.ranks == 2 and point.speedup), None)
    if two is None or two.speedup is None or two.baseline == two.point_id:
        return open_still("Points with one and with two ranks are missing. Run the study with --ranks 1,2.")
    return _speedup_verdict(two, two.speedup, "Two are slower", "Two are faster")


def same_time(evidence: Evidence) -> Verdict:
    """The most ranks against the fewest."""
    shared = [point for point in evidence.points if point.speedup and point.baseline != point.point_id]
    fair = [point for point in shared if point.fair] or shared
    if not fair:
        return open_still("Points with more than one number of ranks are missing. Run the study with --ranks 1,2,3.")
    most = max(fair, key=lambda point: point.point.ranks)
    assert most.speedup is not None
    return _speedup_verdict(most, most.speedup, "Sharing makes it slower", "No, sharing pays")


def _speedup_verdict(point: PointResult, speedup: Interval, slower: str, faster: str) -> Verdict:
    figure = f"{span_text(speedup)} times as fast on {counted(point.point.ranks, 'rank')}"
    note = shared_cores(point) or "Samples per second of the timed epochs; starting up is not in it."
    if speedup.coverage is None:
        return open_still(f"An epoch is {figure}. {few_repeats(speedup.n)}", figure)
    word = {"more": faster, "less": slower, "": "The two cannot be told apart"}[told(speedup)]
    return Verdict(text=f"{word}: an epoch is {figure}. {note}", figure=figure)


def superlinear(evidence: Evidence) -> Verdict:
    """The speed-up that is furthest above its ideal, of points with cores of their own."""
    shared = [point for point in evidence.points if point.efficiency and point.baseline != point.point_id]
    if not shared:
        return open_still("Points with several numbers of ranks are missing. Run the study with --ranks 1,2.")
    fair = [point for point in shared if point.fair]
    point = max(fair or shared, key=lambda each: each.efficiency.median if each.efficiency else 0.0)
    assert point.efficiency is not None and point.speedup is not None
    ideal = point.speedup.median / point.efficiency.median
    figure = f"{span_text(point.speedup)} of an ideal {ideal:g}"
    if not fair:
        return open_still(f"The highest speed-up is {figure}. {shared_cores(point)}", figure)
    if point.efficiency.coverage is None:
        return open_still(f"The highest speed-up is {figure}. {few_repeats(point.efficiency.n)}", figure)
    if told(point.efficiency) == "more":
        cause = "Smaller shares fit caches better, or the baseline waited for something else: its ledger tells which."
        return Verdict(text=f"It can: the speed-up is {figure}. {cause}", figure=figure)
    return Verdict(text=f"Not here: the highest speed-up is {figure}. No interval lies above the ideal.", figure=figure)


def nodes_or_processes(evidence: Evidence) -> Verdict:
    """Equal ranks on different numbers of hosts."""
    by_ranks: dict[int, list[PointResult]] = {}
    for point in evidence.points:
        by_ranks.setdefault(point.point.ranks, []).append(point)
    for compared in evidence.results.comparisons:
        points = [point for point in by_ranks.get(compared.ranks, []) if point.point_id in compared.ratios]
        if len({point.point.hosts for point in points}) > 1:
            return _hosts_verdict(compared.points[0], compared.ratios, points)
    return open_still(
        "No two points have equal ranks on different numbers of hosts: one machine was at hand. "
        "On a cluster: paceline study mnist-mpi --size full --site NAME."
    )


def _hosts_verdict(fastest: str, ratios: dict[str, Interval], points: list[PointResult]) -> Verdict:
    best = next(point for point in points if point.point_id == fastest)
    worst = min(points, key=lambda point: ratios[point.point_id].median)
    ratio = ratios[worst.point_id]
    figure = f"{span_text(ratio)} of the throughput on {counted(worst.point.hosts, 'host')}"
    against = f"against {counted(best.point.hosts, 'host')}, {counted(best.point.ranks, 'rank')} each time"
    if ratio.coverage is None:
        return open_still(f"{figure} {against}. {few_repeats(ratio.n)}", figure)
    word = "It matters" if told(ratio) else "They cannot be told apart"
    return Verdict(
        text=f"{word}: {figure} {against}. {shared_cores(*points) or 'Hosts are machines here.'}", figure=figure
    )


def allreduce_instead(evidence: Evidence) -> Verdict:
    """mpi-allreduce against mpi-reduce-broadcast at the most ranks that have both."""
    effect = _effect(evidence, "run.strategy", "mpi-allreduce")
    if effect is None or effect.time_pct is None:
        return open_still("The point with mpi-allreduce is missing. It needs mpiexec and more than one rank.")
    return _effect_verdict(evidence, effect, "It pays", "It costs time", "of the published exchange's time")


def partial_reads(evidence: Evidence) -> Verdict:
    """Time to load, of reading parts against reading all."""
    whole = next((point for point in evidence.points if point.point.data.read == "whole" and point.load_s), None)
    parts = next((point for point in evidence.points if point.point.data.read == "mpi-io" and point.load_s), None)
    if whole is None or parts is None or whole.load_s is None or parts.load_s is None:
        return open_still("A point with data.read = mpi-io and one with whole are needed. Both need mpiexec.")
    figure = f"{duration_text(parts.load_s.median)} against {duration_text(whole.load_s.median)}"
    if whole.load_s.coverage is None:
        return open_still(f"Reading parts took {figure}. {few_repeats(whole.load_s.n)}", figure)
    apart = parts.load_s.high < whole.load_s.low or whole.load_s.high < parts.load_s.low
    word = "saves" if parts.load_s.median < whole.load_s.median else "costs"
    total = percent_text(whole.load_s.median / whole.total_s.median) if whole.total_s else "–"
    first = f"Reading parts {word} time: {figure}." if apart else f"They cannot be told apart: {figure}."
    return Verdict(text=f"{first} Reading all of it is {total} of a run.", figure=figure)


def gpu(evidence: Evidence) -> Verdict:
    """CPU ranks that are as fast as one GPU, where a study has both."""
    machine = evidence.results.machine
    kinds = {point.point.device for point in evidence.points}
    if machine is None or not machine.gpus or not {"cpu", "cuda"} <= kinds:
        return open_still(
            "It takes a machine with a GPU: there is none in these results. "
            "Where there is one: paceline study mnist-mpi --set run.device=cpu,cuda"
        )
    best = {kind: _soonest(point for point in evidence.points if point.point.device == kind) for kind in kinds}
    cpu, cuda = best["cpu"], best["cuda"]
    if cpu is None or cuda is None or cpu.epoch_s is None or cuda.epoch_s is None:
        return open_still("No epoch was timed on both kinds. Run the study to its end.")
    ratio = cpu.epoch_s.median / cuda.epoch_s.median
    figure = f"{ratio:.2f} times as long on {counted(cpu.point.ranks, 'CPU rank')}"
    return Verdict(text=f"An epoch takes {figure} as on the GPU. Both are medians of timed epochs.", figure=figure)


def _soonest(points: Iterable[PointResult]) -> PointResult | None:
    timed = [(point.epoch_s.median, index, point) for index, point in enumerate(points) if point.epoch_s is not None]
    return min(timed)[2] if timed else None


def v100_equals_t4(evidence: Evidence) -> Verdict:
    """Needs both kinds of GPU in one study."""
    gpus = evidence.results.machine.gpus if evidence.results.machine else ()
    here = f"this one has {', '.join(sorted(set(gpus)))}" if gpus else "this one has no GPU"
    return open_still(
        f"It takes machines with a T4 and with a V100, and {here}. "
        "The input-wait row of the ledger on either would show whether they waited for images."
    )


def more_cores_slower(evidence: Evidence) -> Verdict:
    """Time with more threads in per cent of one's."""
    found = [e for e in evidence.results.effects if e.factor == "run.threads" and not e.is_baseline and e.time_pct]
    if not found:
        left = [item for item in evidence.results.not_run if "run.threads" in item.settings]
        why = left[0].reason if left else "Points with more threads are missing."
        return open_still(f"{why} A machine with more cores would show it.")
    figure = "; ".join(f"{e.value} threads {span_text(e.time_pct.interval, ' %')}" for e in found if e.time_pct)
    points = [p for p in evidence.points if p.point_id in {e.point_id for e in found}]
    if all(effect.time_pct and effect.time_pct.p is None for effect in found):
        return open_still(f"In % of one thread's time: {figure}. {few_repeats(min(p.runs for p in points))}", figure)
    slower = [e for e in found if e.time_pct and e.time_pct.real and e.time_pct.interval.median > 100]
    faster = [e for e in found if e.time_pct and e.time_pct.real and e.time_pct.interval.median < 100]
    word = "It is so" if slower and not faster else "It pays" if faster and not slower else "It depends"
    word = word if slower or faster else "No difference can be shown"
    note = shared_cores(*points) or "Layers this small are over before a second thread is awake."
    return Verdict(text=f"{word}: in % of one thread's time, {figure}. {note}", figure=figure)


def cloud_faster(evidence: Evidence) -> Verdict:
    """What was changed one at a time and made a difference, the largest first."""
    effects = [e for e in evidence.results.effects if not e.is_baseline and e.time_pct and e.factor in _NAMES]
    if not effects:
        return open_still("No point differs from the baseline in one thing alone. Run it to its end.")
    ordered = sorted(effects, key=lambda effect: _percent(effect).median)
    figure = "; ".join(f"{_NAMES[e.factor]} {e.value}: {span_text(_percent(e), ' %')}" for e in ordered)
    if all(effect.time_pct and effect.time_pct.p is None for effect in ordered):
        return open_still(f"In % of the baseline's time: {figure}. {few_repeats(_percent(ordered[0]).n)}", figure)
    faster = [e for e in ordered if e.time_pct and e.time_pct.real and _percent(e).median < 100]
    slower = [e for e in ordered if e.time_pct and e.time_pct.real and _percent(e).median > 100]
    named = ", ".join(dict.fromkeys(_NAMES[e.factor] for e in faster)) or "nothing"
    cost = ", ".join(dict.fromkeys(_NAMES[e.factor] for e in slower)) or "nothing"
    return Verdict(
        text=f"Changed alone, {named} made it faster, {cost} made it slower. In % of the baseline's time: {figure}.",
        figure=figure,
    )


def checkpoint_cost(evidence: Evidence) -> Verdict:
    """The point that writes checkpoints against the one that does not."""
    effect = next(
        (e for e in evidence.results.effects if e.factor == "train.checkpoint_every" and not e.is_baseline), None
    )
    if effect is None or effect.time_pct is None:
        return open_still("A point with checkpoints and one without are needed. Run the study to its end.")
    point = next(each for each in evidence.points if each.point_id == effect.point_id)
    kinds = point.ledger_s or {}
    written, whole = kinds.get("checkpoint"), sum(value for value in kinds.values() if value is not None)
    share = f"the ledger's checkpoint row has {percent_text(written / whole)} of the run" if written and whole else ""
    word = "Checkpoints make it faster", "Checkpoints cost time"
    verdict = _effect_verdict(evidence, effect, *word, f"of the time without, one every {effect.value} steps")
    first, _, rest = verdict.text.partition(". ")
    return Verdict(
        text=f"{first.rstrip('.')}; {share}. {rest}".rstrip() if share else verdict.text,
        figure=verdict.figure,
        answered=verdict.answered,
    )


def _effect(evidence: Evidence, path: str, value: str) -> Effect | None:
    return next((each for each in evidence.results.effects if each.factor == path and each.value == value), None)


def _percent(effect: Effect) -> Interval:
    assert effect.time_pct is not None
    return effect.time_pct.interval


def _effect_verdict(evidence: Evidence, effect: Effect, less: str, more: str, of_what: str) -> Verdict:
    """One effect on the time, called by its test."""
    assert effect.time_pct is not None
    interval = effect.time_pct.interval
    figure = f"{span_text(interval, ' %')} {of_what}"
    point = [each for each in evidence.points if each.point_id == effect.point_id]
    if effect.time_pct.p is None:
        return open_still(f"It takes {figure}. {few_repeats(interval.n)}", figure)
    word = (less if interval.median < 100 else more) if effect.time_pct.real else "No difference can be shown"
    return Verdict(text=f"{word}: it takes {figure}. {shared_cores(*point)}".rstrip(), figure=figure)
