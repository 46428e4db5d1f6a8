"""Verdicts about what was given and used: hardware, CPU time, messages, memory, energy; and about printed tables."""

from __future__ import annotations

import math
from collections.abc import Mapping

from paceline.analyze.published.evidence import Evidence, Verdict, open_still
from paceline.records.counters import CpuTimes
from paceline.records.results import PointResult
from paceline.units import bytes_text, counted, duration_text, percent_text


def got_what_was_asked(evidence: Evidence) -> Verdict:
    """What the roll call had to say."""
    machine = evidence.results.machine
    if machine is None:
        return open_still("No run has left a description of its machine. Run the study to its end.")
    told = "Before the first step every rank says its device, cores, threads and links."
    wrong = [complaint for complaint in machine.complaints if complaint.severity in ("fatal", "warning")]
    if not wrong:
        figure = "nothing differed from what was asked for"
        return Verdict(text=f"{told} In these runs {figure}.", figure=figure)
    figure = f"{counted(len(wrong), 'complaint')}: {wrong[0].name}"
    return Verdict(text=f"{told} Here it had {figure}: {wrong[0].what}", figure=figure)


def real_user_sys(evidence: Evidence) -> Verdict:
    """Real, user and system time of the point with the most ranks."""
    known = [point for point in evidence.points if point.point_id in evidence.cpu_times]
    if not known:
        return open_still("No median run has counters. Run it on Linux, to its end.")
    point = max(known, key=lambda each: each.point.ranks)
    whole = evidence.cpu_times[point.point_id].whole
    if whole.user_s is None or whole.system_s is None:
        return open_still("The counters have no CPU time. Run it on Linux, to its end.")
    figure = (
        f"real {duration_text(whole.real_s)}, user {duration_text(whole.user_s)}, sys {duration_text(whole.system_s)}"
    )
    sentence = evidence.cpu_times[point.point_id].sentence
    why = sentence.partition(": ")[2] or sentence  # before it stand the same three figures
    text = f"On {counted(point.point.ranks, 'rank')}: {figure}. {why[:1].upper()}{why[1:]}"
    return Verdict(text=text, figure=figure)


def message_log(evidence: Evidence) -> Verdict:
    """What the trace of the widest median run holds."""
    traced = [point for point in evidence.points if point.anatomy and point.anatomy.messages]
    if not traced:
        return open_still("No median run has messages in its trace. It takes two ranks or more.")
    point = max(traced, key=lambda each: each.point.ranks)
    assert point.anatomy is not None
    messages = point.anatomy.messages
    largest = max(messages, key=lambda kind: kind.count * kind.payload_bytes)
    count = sum(kind.count for kind in messages)
    figure = f"{counted(count, 'message')} of {counted(len(messages), 'kind')}"
    most = f"most bytes go by {largest.operation}: {largest.count:,} of {bytes_text(largest.payload_bytes)}"
    took = f", {duration_text(largest.total_s)} each" if largest.total_s is not None else ""
    return Verdict(
        text=f"It is there: the median run with {point.label} has {figure}; {most}{took}. "
        "Inside a run shows them one by one, with peers, wait and transfer.",
        figure=figure,
    )


def hyper_parameters(evidence: Evidence) -> Verdict:
    """Bytes an epoch, memory and energy at the smallest and at the largest batch."""
    points = sorted(evidence.points, key=lambda point: point.point.batch_global)
    if len(points) < 2 or points[0].point.batch_global == points[-1].point.batch_global:
        return open_still("Points with different batches are missing. Run the study with several batch sizes.")
    small, large = points[0], points[-1]
    sizes = f"from batch {small.point.batch_global:,} to {large.point.batch_global:,}"
    parts = [
        _traffic(small, large),
        _memory(evidence.cpu_times, small, large),
        _energy(evidence.cpu_times, small, large),
    ]
    if not any(parts[:2]):
        return open_still(f"Neither messages nor memory were measured {sizes}. It takes two ranks, on Linux.")
    figure = "; ".join(filter(None, parts[:2]))
    power = parts[2] or "no meter for energy can be read here"
    return Verdict(text=f"{sizes[0].upper()}{sizes[1:]}: {figure}. Energy: {power}.", figure=figure)


def _traffic(small: PointResult, large: PointResult) -> str:
    """Bytes that a rank exchanges in an epoch: those of a step × steps."""
    bytes_of = [_epoch_bytes(point) for point in (small, large)]
    if None in bytes_of:
        return ""
    return f"messages of an epoch {bytes_text(bytes_of[0])} → {bytes_text(bytes_of[1])}"


def _epoch_bytes(point: PointResult) -> float | None:
    samples = next((epoch.samples for curve in point.curves for epoch in curve.epochs if epoch.whole), None)
    if point.message_bytes is None or samples is None:
        return None
    return point.message_bytes * math.ceil(samples / point.point.batch_global)


def _memory(cpu: Mapping[str, CpuTimes], small: PointResult, large: PointResult) -> str:
    found = [cpu.get(point.point_id) for point in (small, large)]
    peaks = [times.whole.peak_bytes if times else None for times in found]
    if None in peaks:
        return ""
    return f"memory of a rank {bytes_text(peaks[0])} → {bytes_text(peaks[1])}"


def _energy(cpu: Mapping[str, CpuTimes], small: PointResult, large: PointResult) -> str:
    joules = [_joules(cpu.get(point.point_id)) for point in (small, large)]
    return "" if None in joules else f"{joules[0]:,.0f} J → {joules[1]:,.0f} J of the hosts, in a run"


def _joules(times: CpuTimes | None) -> float | None:
    known = [
        joule
        for host in (times.energy if times else ())
        for joule in (host.package_j, host.memory_j, host.gpu_j)
        if joule is not None
    ]
    return math.fsum(known) if known else None


def table_contradicts(evidence: Evidence) -> Verdict:
    """How many printed cells disagree, and what the same sums come to here."""
    count = len(evidence.contradictions)
    figure = f"{counted(count, 'contradiction')} in print"
    shares = [share for point in evidence.points if (share := _epochs_share(point)) is not None]
    if not shares:
        return Verdict(
            text=f"{figure}, listed below the table. No run here is finished to set beside them.", figure=figure
        )
    low, high = percent_text(min(shares), 0), percent_text(max(shares), 0)
    spread = low if low == high else f"{low} to {high}"
    ours = (
        f"Here the epochs of a run add up to {spread} of its total, and the ledger divides the rest without remainder."
    )
    return Verdict(text=f"{figure}, listed below the table. {ours}", figure=figure)


def _epochs_share(point: PointResult) -> float | None:
    """What the epochs of the median run are of the whole of it."""
    curve = next((curve for curve in point.curves if curve.run == point.median_run), None)
    whole = sum(value for value in (point.ledger_s or {}).values() if value is not None)
    return math.fsum(epoch.epoch_s for epoch in curve.epochs) / whole if curve and whole else None
