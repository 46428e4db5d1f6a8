"""The sentences of a report: the verdict, what explains it, and what has to be known.

A sentence claims no more than its figures carry: a range is called a range, a difference that the
interval does not show is not called one, and a lost part is named only where the ledgers add up
to what was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.records.finding import Finding
from paceline.records.results import Interval, PointResult, Spread, StudyResults
from paceline.units import counted, duration_text, finite, number_text, percent_text

_SEVERITIES = ("error", "warning", "info")

# Kinds of the ledger, grouped by what a reader can do about them.
_LOSSES = {
    "computation that takes longer per sample": ("forward", "backward"),
    "waiting for the slowest rank": ("comm-wait",),
    "moving gradients between ranks": ("comm-transfer",),
    "the optimizer step, which every rank repeats": ("optimizer",),
    "waiting for input": ("input-wait",),
    "writing checkpoints": ("checkpoint",),
    "what happens between the measured parts": ("other",),
}
_SMALLEST_LOSS = 0.01
"""Of the training time: below it a part is not worth a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFinding:
    """A finding, or a failure, as it is shown."""

    name: str
    severity: str
    summary: str
    cause: str
    remedy: str
    about: str
    """The points it concerns; empty for the whole study."""


def verdict(results: StudyResults) -> str:
    """The answer in one sentence, with its figures and their interval."""
    finished, expected = finished_runs(results), results.expected_runs
    if finished == 0:
        return f"No run is finished yet (0 of {expected}): there is nothing to report."
    answer = _answer(results)
    if finished < expected:
        return f"{finished} of {expected} runs {'is' if finished == 1 else 'are'} finished; so far, {answer}."
    return f"{answer[0].upper()}{answer[1:]}."


def remarks(results: StudyResults) -> tuple[str, ...]:
    """What stands beside the verdict: where the lost part went, accuracy, and what was left out of it."""
    sentences = [_lost_part(results), _accuracy(results), _left_out(results)]
    return tuple(sentence for sentence in sentences if sentence)


def finished_runs(results: StudyResults) -> int:
    """Runs behind the figures, over all points."""
    return sum(point.runs for point in results.points)


def _answer(results: StudyResults) -> str:
    base, point = baseline(results), chosen(results)
    if base is None or point is None or point.speedup is None:
        return _throughput(results)
    speedup, who = point.speedup, counted(point.point.ranks, "rank")
    figure = f"{number_text(speedup.median)} times"
    around = _around(speedup)
    ideal = f"{percent_text(point.efficiency.median, 0)} of the ideal" if point.efficiency else ""
    verb = "process samples" if is_weak(results) else "train"
    if speedup.low <= 1 <= speedup.high and speedup.low < speedup.high:
        text = f"{who} {verb} {figure} as fast as {base.point.ranks} {around}, which is no clear difference"
        text += f" and {ideal}" if ideal else ""
    elif speedup.median < 1:
        text = f"{who} are slower than {base.point.ranks}: they {verb} {figure} as fast {around}"
        text += f", {ideal}" if ideal else ""
    else:
        text = f"{who} {verb} {figure} as fast as {base.point.ranks} {around}"
        text += f": {ideal}" if ideal else ""
    if point.oversubscribed:
        text += "; but they share cores, so this says little about how the training scales"
    return text


def _throughput(results: StudyResults) -> str:
    for point in results.points:
        if point.samples_per_s is not None:
            who = counted(point.point.ranks, "rank")
            verb = "processes" if point.point.ranks == 1 else "process"
            text = f"{who} {verb} {number_text(point.samples_per_s.median, 4)} samples/s"
            text += " " + _around(point.samples_per_s, digits=4)
            return text + (f": {duration_text(point.epoch_s.median)} an epoch" if point.epoch_s else "")
    return "no finished run has a time that counts"


def _around(interval: Interval, digits: int = 3) -> str:
    if interval.n == 1:
        return "(1 run, no interval)"
    low, high = number_text(interval.low, digits), number_text(interval.high, digits)
    if interval.coverage is None:
        return f"(range {low} to {high})"
    return f"(interval {low} to {high})"


def baseline(results: StudyResults) -> PointResult | None:
    """The point that speed-ups are measured against."""
    return next((point for point in results.points if point.point_id == results.baseline), None)


def chosen(results: StudyResults) -> PointResult | None:
    """The point that the verdict is about: the most ranks that have cores of their own."""
    scaled = [p for p in results.points if p.speedup is not None and p.point_id != results.baseline]
    fair = [p for p in scaled if not p.oversubscribed]
    return max(fair or scaled, key=lambda p: p.point.ranks, default=None)


def is_weak(results: StudyResults) -> bool:
    """Whether the batch per rank is what stays the same."""
    if results.study.run.scaling is not None:
        return results.study.run.scaling == "weak"
    return results.study.train.batch_per_rank is not None


def _lost_part(results: StudyResults) -> str:
    base, point = baseline(results), chosen(results)
    if base is None or point is None or point.efficiency is None or point.oversubscribed:
        return ""
    lost = 1 - point.efficiency.median
    lost_to = point.lost_shares
    shares = {words: sum(lost_to[kind] for kind in kinds) for words, kinds in _LOSSES.items()} if lost_to else {}
    if not shares or lost < _SMALLEST_LOSS or abs(sum(shares.values()) - lost) > max(0.02, lost / 2):
        return ""
    words, share = max(shares.items(), key=lambda item: item[1])
    if share < _SMALLEST_LOSS:
        return ""
    return f"The largest part of what was lost is {words}: {percent_text(share, 0)} of the training time."


def _accuracy(results: StudyResults) -> str:
    base, point = baseline(results), chosen(results)
    if base is None or point is None or base.test_accuracy is None or point.test_accuracy is None:
        return ""
    if finite(base.test_accuracy.mean) is None or finite(point.test_accuracy.mean) is None:
        return ""
    first, last = spread_text(base.test_accuracy), spread_text(point.test_accuracy)
    return f"Test accuracy is {first} with {counted(base.point.ranks, 'rank')} and {last} with {point.point.ranks}."


def spread_text(spread: Spread) -> str:
    """A mean fraction and its standard deviation in per cent, to the digits that the deviation leaves certain."""
    std = finite(spread.std)
    if std is None:
        return percent_text(spread.mean)
    decimals = 1 if std >= 0.005 else 2
    return f"{spread.mean * 100:.{decimals}f} ± {std * 100:.{decimals}f} %"


def _left_out(results: StudyResults) -> str:
    point = chosen(results)
    crowded = [p for p in results.points if p.oversubscribed and p is not point and p.runs]
    if point is None or point.oversubscribed or not crowded:
        return ""
    who = ", ".join(str(p.point.ranks) for p in crowded)
    return f"Runs with {who} ranks had to share cores; the verdict leaves them out."


def shown_findings(results: StudyResults) -> tuple[ShownFinding, ...]:
    """Failures and findings, the most severe first."""
    labels = {point.point_id: counted(point.point.ranks, "rank") for point in results.points}
    told = " ".join(finding.summary + finding.cause for finding in results.findings)
    failures = [_failure(point) for point in results.points if point.failure]
    failures = [finding for finding in failures if finding.summary not in told]
    ordered = sorted((*failures, *results.findings), key=lambda finding: _severity(finding.severity))
    return tuple(_shown(finding, labels) for finding in ordered)


def _failure(point: PointResult) -> Finding:
    summary, _, more = (point.failure or "").partition("\n")
    return Finding(name="failed", severity="error", summary=summary, cause=more, points=(point.point_id,))


def _severity(name: str) -> int:
    return _SEVERITIES.index(name) if name in _SEVERITIES else len(_SEVERITIES)


def _shown(finding: Finding, labels: Mapping[str, str]) -> ShownFinding:
    return ShownFinding(
        name=finding.name,
        severity=finding.severity,
        summary=finding.summary,
        cause=finding.cause,
        remedy=finding.remedy,
        about=", ".join(labels.get(point_id, point_id) for point_id in finding.points),
    )
