"""Verdicts about hardware, CPU time, messages, memory and energy, and about contradictions in published tables."""

from __future__ import annotations

import math
from collections.abc import Mapping

from paceline.published.answers.evidence import Evidence, Verdict, answered, unanswered
from paceline.published.matching.row_points import setting_value
from paceline.records.counters import CpuTimes
from paceline.records.results import PointResult
from paceline.units import bytes_text, counted, duration_text, percent_text

NO_GPU = "no-gpu"
"""Name of the preflight complaint about ranks without a GPU."""
_RANKS = "run.ranks"
_WORDS = {"train.batch_global": "batch", "train.batch_per_rank": "batch of a rank"}


def got_what_was_asked(evidence: Evidence) -> Verdict:
    """Devices requested and provided; answered if the preflight check reports a missing GPU."""
    machine = evidence.results.machine
    if machine is None:
        return unanswered("No run has recorded its machine.", "Run the study to its end.")
    asked = ", ".join(sorted({point.point.device for point in evidence.points}))
    provided = ", ".join(sorted({device.partition(":")[0] for device in machine.devices}))
    figure = f"run.device {asked}, given {provided}"
    wrong = [complaint for complaint in machine.complaints if complaint.severity in ("fatal", "warning")]
    missed = next((complaint for complaint in wrong if complaint.name == NO_GPU), None)
    if missed is not None:
        return answered(f"It is reported before the first step ({figure}): {missed.what}", figure=figure)
    other = f"; the preflight check complains of something else, {wrong[0].name}" if wrong else ""
    if "cuda" in asked:
        return unanswered(f"GPUs were asked for here and given ({figure}){other}.", figure=figure)
    refused = "With --set run.device=cuda ranks without one are named, and the run is refused before its first step."
    return unanswered(f"No GPU was asked for here ({figure}){other}.", refused, figure=figure)


def real_user_sys(evidence: Evidence) -> Verdict:
    """Real, user and system time of the point with the most ranks."""
    known = [point for point in evidence.points if point.point_id in evidence.cpu_times]
    if not known:
        return unanswered("No median run has counters.", "Run it on Linux, to its end.")
    point = max(known, key=lambda each: each.point.ranks)
    whole = evidence.cpu_times[point.point_id].whole
    if whole.user_s is None or whole.system_s is None:
        return unanswered("The counters have no CPU time.", "Run it on Linux, to its end.")
    figure = (
        f"real {duration_text(whole.real_s)}, user {duration_text(whole.user_s)}, sys {duration_text(whole.system_s)}"
    )
    sentence = evidence.cpu_times[point.point_id].sentence
    where = f"On {counted(point.point.ranks, 'rank')}"
    return answered(f"{where}, {sentence[0].lower()}{sentence[1:]}", figure=figure, lead=(f"{where}: {figure}.",))


def message_log(evidence: Evidence) -> Verdict:
    """Messages in the trace of the median run with the most ranks."""
    traced = [point for point in evidence.points if point.anatomy and point.anatomy.messages]
    if not traced:
        return unanswered("No median run has messages in its trace.", "It takes two ranks or more.")
    point = max(traced, key=lambda each: each.point.ranks)
    assert point.anatomy is not None
    messages = point.anatomy.messages
    largest = max(messages, key=lambda kind: kind.count * kind.payload_bytes)
    count = sum(kind.count for kind in messages)
    figure = f"{counted(count, 'message')} of {counted(len(messages), 'kind')}"
    most = f"most bytes go by {largest.operation}: {largest.count:,} of {bytes_text(largest.payload_bytes)}"
    took = f", {duration_text(largest.total_s)} each" if largest.total_s is not None else ""
    return answered(
        f"It is there: the median run with {point.label} has {figure}; {most}{took}.",
        "Inside a run shows them one by one, with peers, wait and transfer.",
        figure=figure,
    )


def hyper_parameters(evidence: Evidence) -> Verdict:
    """Bytes an epoch, memory and energy at both ends of every setting that varies, all else equal."""
    varied = {path: ends for path in (*evidence.results.study.vary, _RANKS) if (ends := _ends(evidence, path))}
    if not varied:
        return unanswered("Points with different settings are missing.", "Run the study with several batch sizes.")
    cpu, parts = evidence.cpu_times, []
    for path, (first, last) in varied.items():
        found = (_traffic(first, last), _memory(cpu, first, last), _energy(cpu, first, last))
        if any(found):
            parts.append(f"from {_change(path, first, last)}: {'; '.join(filter(None, found))}")
    names = ", ".join(map(_name, varied))
    if not parts:
        return unanswered(f"Neither messages nor memory were measured by {names}.", "It takes two ranks, on Linux.")
    figure = "; ".join(parts)
    known = any(_joules(times) is not None for times in cpu.values())
    power = "" if known else "no meter for energy can be read here, and "
    covers = f"{power}of all settings this covers {names}: others are varied with --set."
    return answered(f"{figure[0].upper()}{figure[1:]}.", f"{covers[0].upper()}{covers[1:]}", figure=figure)


def _ends(evidence: Evidence, path: str) -> tuple[PointResult, PointResult] | None:
    """Points with the lowest and the highest value of a setting that agree in all else that varies; None without two.

    Names have no order but the study's.
    """
    paths = [other for other in (*evidence.results.study.vary, _RANKS) if other != path]
    alike: dict[tuple[object, ...], list[PointResult]] = {}
    for point in evidence.points:
        alike.setdefault(tuple(setting_value(point.point, other) for other in paths), []).append(point)
    own = max(
        alike.values(), key=lambda points: len({setting_value(point.point, path) for point in points}), default=[]
    )
    values = {value: point for point in reversed(own) if (value := setting_value(point.point, path)) is not None}
    if len(values) < 2:
        return None
    if all(isinstance(value, int | float) for value in values):
        return values[min(values)], values[max(values)]
    return own[0], own[-1]


def _change(path: str, first: PointResult, last: PointResult) -> str:
    shown = [setting_value(point.point, path) for point in (first, last)]
    low, high = (f"{value:,}" if isinstance(value, int) else str(value) for value in shown)
    return f"{_name(path)} {low} to {high}"


def _name(path: str) -> str:
    return _WORDS.get(path) or path.rpartition(".")[2].replace("_", " ")


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
    return "" if None in joules else f"energy of the hosts in a run {joules[0]:,.0f} J → {joules[1]:,.0f} J"


def _joules(times: CpuTimes | None) -> float | None:
    known = [
        joule
        for host in (times.energy if times else ())
        for joule in (host.package_j, host.memory_j, host.gpu_j)
        if joule is not None
    ]
    return math.fsum(known) if known else None


def table_contradicts(evidence: Evidence) -> Verdict:
    """Number of contradictions in the published tables, and the share of epochs in a run here."""
    count = len(evidence.contradictions)
    figure = f"{counted(count, 'contradiction')} in print"
    listed = f"{figure}, listed below the table."
    shares = [share for point in evidence.points if (share := _epochs_share(point)) is not None]
    if not shares:
        return answered(listed, "No run here is finished to compare with.", figure=figure)
    low, high = percent_text(min(shares), 0), percent_text(max(shares), 0)
    spread = low if low == high else f"{low} to {high}"
    ours = (
        f"Here the epochs of a run add up to {spread} of its total, and the ledger divides the rest without remainder."
    )
    return answered(listed, ours, figure=figure)


def _epochs_share(point: PointResult) -> float | None:
    """Share of the median run that its epochs take."""
    curve = next((curve for curve in point.curves if curve.run == point.median_run), None)
    whole = sum(value for value in (point.ledger_s or {}).values() if value is not None)
    return math.fsum(epoch.epoch_s for epoch in curve.epochs) / whole if curve and whole else None
