"""Verdicts about time: more ranks, more hosts, other ways to read, GPUs."""

from __future__ import annotations

import math

from paceline.published.answers.evidence import (
    Evidence,
    Verdict,
    answered,
    direction,
    direction_against,
    direction_among,
    enough_repeats,
    few_repeats,
    scaling_caveat,
    span_text,
    unanswered,
)
from paceline.records.results import Interval, PointResult
from paceline.units import counted, duration_text, percent_text


def two_slower(evidence: Evidence) -> Verdict:
    """Total time of a run on two ranks against one, called different where their intervals do not overlap.

    Two ranks may train fewer epochs, so samples per second are reported, too.
    """
    by_ranks = {point.point.ranks: point for point in reversed(evidence.points)}
    one, two = by_ranks.get(1), by_ranks.get(2)
    if one is None or two is None or one.total_s is None or two.total_s is None:
        return unanswered("Points with one and with two ranks are missing.", "Run the study with --ranks 1,2.")
    figure = f"{span_text(two.total_s, ' s')} in all on two ranks, {span_text(one.total_s, ' s')} on one"
    pace = f", at {span_text(two.speedup)} times the samples/s" if two.speedup else ""
    if two.total_s.coverage is None or one.total_s.coverage is None:
        return unanswered(f"{figure}{pace}.", few_repeats(min(one.total_s.n, two.total_s.n)), figure=figure)
    word = {"more": "Two are slower", "less": "Two are faster", "": "The two cannot be told apart"}[
        direction_against(two.total_s, one.total_s)
    ]
    divided = evidence.results.study.train.epochs_rule == "divide-by-ranks"
    caveat = scaling_caveat(one, two)
    note = caveat or ("Two ranks train half the epochs, as published." if divided else "")
    return answered(f"{word}: {figure}{pace}.", note, figure=figure, caveat=caveat)


def same_time(evidence: Evidence) -> Verdict:
    """The most ranks against the fewest."""
    shared = [point for point in evidence.points if point.speedup and point.baseline != point.point_id]
    fair = [point for point in shared if point.fair] or shared
    if not fair:
        return unanswered("Points with more than one number of ranks are missing.", "Run the study with --ranks 1,2,3.")
    most = max(fair, key=lambda point: point.point.ranks)
    assert most.speedup is not None
    return _speedup_verdict(most, most.speedup, "Sharing makes it slower", "No, sharing pays")


def _speedup_verdict(point: PointResult, speedup: Interval, slower: str, faster: str) -> Verdict:
    figure = f"{span_text(speedup)} times as fast on {counted(point.point.ranks, 'rank')}"
    if speedup.coverage is None:
        return unanswered(f"An epoch is {figure}.", few_repeats(speedup.n), figure=figure)
    word = {"more": faster, "less": slower, "": "The two cannot be told apart"}[direction(speedup)]
    caveat = scaling_caveat(point)
    note = caveat or "Samples per second of the timed epochs; starting up is not in it."
    return answered(f"{word}: an epoch is {figure}.", note, figure=figure, caveat=caveat)


def superlinear(evidence: Evidence) -> Verdict:
    """The speed-up furthest above its ideal, of points that do not share cores; the test corrects for the selection."""
    shared = [point for point in evidence.points if point.efficiency and point.baseline != point.point_id]
    if not shared:
        return unanswered("Points with several numbers of ranks are missing.", "Run the study with --ranks 1,2.")
    fair = [point for point in shared if point.fair]
    point = max(fair or shared, key=lambda each: each.efficiency.median if each.efficiency else 0.0)
    assert point.efficiency is not None and point.speedup is not None
    ideal = point.speedup.median / point.efficiency.median
    figure = f"{span_text(point.speedup)} of an ideal {ideal:g}"
    if not fair:
        return unanswered(f"The highest speed-up is {figure}.", scaling_caveat(point), figure=figure)
    if point.efficiency.coverage is None:
        return unanswered(f"The highest speed-up is {figure}.", few_repeats(point.efficiency.n), figure=figure)
    looks = len(fair)
    if direction(point.efficiency) == "more" and direction_among(point.efficiency, looks) != "more":
        chance = f"but of {looks} sizes one may be so by chance with {counted(point.efficiency.n, 'repeat')}"
        more = f"More repeats would decide it (--repeats {enough_repeats(looks)})."
        return unanswered(f"The highest speed-up is {figure}, above it, {chance}.", more, figure=figure)
    if direction(point.efficiency) == "more":
        cause = "Smaller shares fit caches better, or the baseline waited for something else: its ledger tells which."
        lead = f"There is more than the ideal: the speed-up is {figure}."
        return answered(f"It can: the speed-up is {figure}.", cause, figure=figure, lead=(lead,))
    return answered(
        f"Not here: the highest speed-up is {figure}.",
        "No interval lies above the ideal.",
        figure=figure,
        lead=(f"No interval lies above the ideal: the highest speed-up is {figure}.",),
    )


def nodes_or_processes(evidence: Evidence) -> Verdict:
    """Equal ranks on different numbers of hosts."""
    by_ranks: dict[int, list[PointResult]] = {}
    for point in evidence.points:
        by_ranks.setdefault(point.point.ranks, []).append(point)
    for compared in evidence.results.comparisons:
        points = [point for point in by_ranks.get(compared.ranks, []) if point.point_id in compared.ratios]
        first = next((point for point in points if point.point_id == compared.points[0]), None)
        others = [point for point in points if first and point.point.hosts != first.point.hosts]
        if first and others:
            return _hosts_verdict(first, others, compared.ratios)
    return unanswered(
        "No two points have equal ranks on different numbers of hosts: one machine was at hand.",
        "On a cluster: paceline study mnist-mpi --size full --site NAME.",
    )


def _hosts_verdict(first: PointResult, others: list[PointResult], ratios: dict[str, Interval]) -> Verdict:
    """The verdict on the point that differs most from the fastest one; the test corrects for all pairs of points."""
    other = max(others, key=lambda point: abs(math.log(ratios[point.point_id].median)))
    looks = math.comb(1 + len(others), 2)
    ratio = ratios[other.point_id]
    figure = f"{span_text(ratio)} of the throughput on {counted(other.point.hosts, 'host')}"
    against = f"against {counted(first.point.hosts, 'host')}, {counted(first.point.ranks, 'rank')} each time"
    if ratio.coverage is None:
        return unanswered(f"{figure} {against}.", few_repeats(ratio.n), figure=figure)
    if direction(ratio) and not direction_among(ratio, looks):
        chance = f"but of {looks} pairs one may be so by chance with {counted(ratio.n, 'repeat')}"
        more = f"More repeats would decide it (--repeats {enough_repeats(looks)})."
        return unanswered(f"{figure} {against}, {chance}.", more, figure=figure)
    word = "It matters" if direction(ratio) else "They cannot be told apart"
    caveat = scaling_caveat(first, *others)
    note = caveat or "Hosts are machines here."
    return answered(f"{word}: {figure} {against}.", note, figure=figure, caveat=caveat)


def partial_reads(evidence: Evidence) -> Verdict:
    """Time to load, of reading parts against reading all."""
    whole = next((point for point in evidence.points if point.point.data.read == "whole" and point.load_s), None)
    parts = next((point for point in evidence.points if point.point.data.read == "mpi-io" and point.load_s), None)
    if whole is None or parts is None or whole.load_s is None or parts.load_s is None:
        return unanswered("A point with data.read = mpi-io and one with whole are needed.", "Both need mpiexec.")
    figure = f"{duration_text(parts.load_s.median)} against {duration_text(whole.load_s.median)}"
    if whole.load_s.coverage is None:
        return unanswered(f"Reading parts took {figure}.", few_repeats(whole.load_s.n), figure=figure)
    called = {"more": "Reading parts costs time", "less": "Reading parts saves time", "": "They cannot be told apart"}
    difference = direction_against(parts.load_s, whole.load_s)
    total = percent_text(whole.load_s.median / whole.total_s.median) if whole.total_s else "–"
    lead = f"Reading parts takes {figure} for reading all of it{'' if difference else ', which cannot be told apart'}."
    share = f"Reading all of it is {total} of a run."
    return answered(f"{called[difference]}: {figure}.", share, figure=figure, lead=(lead,))


def gpu(evidence: Evidence) -> Verdict:
    """The fewest CPU ranks whose total time is not above that of one GPU, if the study has both."""
    machine = evidence.results.machine
    kinds = {point.point.device for point in evidence.points}
    if machine is None or not machine.gpus or not {"cpu", "cuda"} <= kinds:
        return unanswered(
            "It takes a machine with a GPU: there is none in these results.",
            "Where there is one: paceline study mnist-mpi --set run.device=cpu,cuda",
        )
    cuda = min(_totals(evidence, "cuda"), key=lambda timed: timed[1].point.ranks, default=None)
    cpus = _totals(evidence, "cpu")
    if cuda is None or not cpus:
        return unanswered("No run has a total time on both kinds.", "Run the study to its end.")
    gpu_s = cuda[0]
    # Ranks that do not differ clearly from the GPU count as fast enough.
    enough = [timed for timed in cpus if direction_against(timed[0], gpu_s) != "more"]
    soonest = min(cpus, key=lambda timed: timed[0].median)
    total_s, point = min(enough, key=lambda timed: timed[1].point.ranks) if enough else soonest
    ranks = counted(point.point.ranks, "CPU rank")
    figure = ranks if enough else f"more than {ranks}"
    times = f"{span_text(total_s, ' s')} in all on {ranks}, {span_text(gpu_s, ' s')} on the GPU"
    if total_s.coverage is None or gpu_s.coverage is None:
        return unanswered(f"{times}.", few_repeats(min(total_s.n, gpu_s.n)), figure=times)
    caveat = scaling_caveat(point)
    note = caveat or "Both are medians of whole runs."
    return answered(f"It is worth {figure}: {times}.", note, figure=figure, caveat=caveat)


def _totals(evidence: Evidence, device: str) -> list[tuple[Interval, PointResult]]:
    """Total times of the points on a kind of device."""
    points = [point for point in evidence.points if point.point.device == device]
    return [(point.total_s, point) for point in points if point.total_s is not None]


def v100_equals_t4(evidence: Evidence) -> Verdict:
    """Needs both kinds of GPU in one study."""
    gpus = evidence.results.machine.gpus if evidence.results.machine else ()
    here = f"this one has {', '.join(sorted(set(gpus)))}" if gpus else "this one has no GPU"
    return unanswered(
        f"It takes machines with a T4 and with a V100, and {here}.",
        "The input-wait row of the ledger on either would show whether they waited for images.",
    )
