"""Sentences about several series: how far each gets, which is fastest, and whether the repeats can tell."""

from __future__ import annotations

from paceline.records.results import Comparison, PointResult, StudyResults
from paceline.reporting.wording.choice import compared_points, main_comparison, verdict_point
from paceline.reporting.wording.phrases import interval_phrase, joined, listed, spread_text, times_text
from paceline.units import counted, finite

_MOST_NAMED = 4
"""Series in one sentence: the rest is in the tables."""


def compared_alone(results: StudyResults) -> bool:
    """Whether series were compared and nothing scaled: every timed point has the same number of ranks."""
    return len({p.point.ranks for p in results.points if p.samples_per_s}) == 1 and main_comparison(results) is not None


def comparison_sentence(results: StudyResults, comparison: Comparison) -> str:
    """Which series is fastest at a number of ranks, and by how much; empty where only one was timed."""
    timed = compared_points(results, comparison)
    if len(timed) < 2:
        return ""
    fastest, *others = timed
    alike = [point for point in others if point.point_id in comparison.undecided]
    slower = [point for point in others if point not in alike]
    where = f"With {counted(comparison.ranks, 'rank')}"
    if alike:
        text = f"{where} {_names([fastest, *alike])} cannot be told apart{_too_few(comparison, alike)}"
        text += f"; {_reach(comparison, slower, f'the throughput of {fastest.series}')}" if slower else ""
    else:
        text = f"{where} {fastest.series} is the fastest: {_reach(comparison, slower, 'its throughput')}"
    if any(not point.fair for point in timed):
        text += "; but some of them did not have cores or hosts of their own"
    return f"{text}."


def _names(points: list[PointResult]) -> str:
    """The series of points; of many the first, and how many more."""
    names = [point.series for point in points]
    return listed(names) if len(names) <= _MOST_NAMED else listed([names[0], f"{len(names) - 1} others"])


def _reach(comparison: Comparison, slower: list[PointResult], whose: str) -> str:
    """How near the next one comes; the rest is in the table."""
    following = slower[0]
    ratio = comparison.ratios[following.point_id]
    name = f"{following.series}, the next," if len(slower) > 1 else following.series
    return f"{name} reaches {times_text(ratio)} {whose} {interval_phrase(ratio)}"


def _too_few(comparison: Comparison, alike: list[PointResult]) -> str:
    fewest = min(comparison.ratios[point.point_id].n for point in alike)
    small = any(comparison.ratios[point.point_id].coverage is None for point in alike)
    return f" with {counted(fewest, 'repeat')}" if small else ""


def others_at_the_same_ranks(results: StudyResults, point: PointResult) -> str:
    """How far the other series get with as many ranks: `; flat 3.31 times, parameter-server 2.10 times`."""
    others = [
        other
        for other in results.points
        if other.point.ranks == point.point.ranks and other is not point and other.speedup is not None
    ]
    others = [other for other in others if other.fair or not point.fair]
    if not others:
        return ""
    others.sort(key=lambda other: -(other.speedup.median if other.speedup else 0.0))
    parts = [f"{other.series} {times_text(other.speedup)}" for other in others[:_MOST_NAMED] if other.speedup]
    more = len(others) - len(parts)
    text = f"; {joined(parts)}" + (f", and {more} more" if more else "")
    own = len({other.baseline for other in (point, *others)}) > 1
    return text + (", each against its own baseline" if own else "")


def accuracy_sentence(results: StudyResults, base: PointResult) -> str:
    """Test accuracy of the baseline and of all series at the ranks of the verdict."""
    point = verdict_point(results)
    if point is None or base.test_accuracy is None or finite(base.test_accuracy.mean) is None:
        return ""
    beside = [other for other in results.points if other.point.ranks == point.point.ranks and other is not base]
    parts = [
        f"{spread_text(other.test_accuracy)} ({other.series})"
        for other in beside
        if other.test_accuracy and finite(other.test_accuracy.mean) is not None
    ]
    if not parts or len(parts) > _MOST_NAMED:
        return ""
    first = f"Test accuracy is {spread_text(base.test_accuracy)} with {counted(base.point.ranks, 'rank')}"
    if base.point.ranks == point.point.ranks:
        first += f" ({base.series})"
        return f"{first}, {joined(parts)}."
    return f"{first} and with {counted(point.point.ranks, 'rank')} {joined(parts)}."
