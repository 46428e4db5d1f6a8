"""Points of a report: the baseline, the point of the verdict, plotted points."""

from __future__ import annotations

from paceline.records.results import Comparison, PointResult, StudyResults

MOST_DRAWN = 8
"""Points in one plot that has a bar or a curve for each: with more, those that the verdict is about are drawn."""


def baseline(results: StudyResults) -> PointResult | None:
    """The point that speed-ups are measured against, of the first series where they differ in that."""
    return point_by_id(results, results.baseline)


def point_by_id(results: StudyResults, point_id: str | None) -> PointResult | None:
    """The point with this identifier."""
    return next((point for point in results.points if point.point_id == point_id), None)


def verdict_point(results: StudyResults) -> PointResult | None:
    """The point that the verdict is about: the most ranks that have cores of their own, and the fastest of these."""
    scaled = [p for p in results.points if p.speedup is not None and p.point_id != p.baseline]
    fair = [p for p in scaled if p.fair]
    return max(fair or scaled, key=lambda p: (p.point.ranks, _pace(p)), default=None)


def measures_scaling(results: StudyResults) -> bool:
    """Whether a study has speed-ups: a one-at-a-time design only if ranks are a factor."""
    return results.study.design != "one-at-a-time" or any(p.baseline not in (None, p.point_id) for p in results.points)


def is_weak(results: StudyResults) -> bool:
    """Whether the batch per rank is what stays the same."""
    if results.study.run.scaling is not None:
        return results.study.run.scaling == "weak"
    return results.study.train.batch_per_rank is not None


def shared_epoch(results: StudyResults) -> int | None:
    """Samples of an epoch where they are the same at every point while the batch grows with the ranks, else None.

    A step is then weak scaling, and an epoch strong scaling: more ranks share the same samples.
    """
    if is_script(results) or not is_weak(results) or len({point.point.ranks for point in results.points}) < 2:
        return None
    sizes = {epoch.samples for p in results.points for curve in p.curves for epoch in curve.epochs if epoch.whole}
    return sizes.pop() if len(sizes) == 1 else None


def same_epochs(results: StudyResults) -> bool:
    """Whether every point trains for as many epochs: whole runs can then be compared."""
    return len({(p.point.train.epochs, p.point.finetune.epochs) for p in results.points}) == 1


def is_script(results: StudyResults) -> bool:
    """Whether the study runs a script of the user, without known epochs and accuracy."""
    return results.study.script is not None


def series_names(results: StudyResults) -> tuple[str, ...]:
    """The series of a study in its own order; one without a name where nothing but ranks is varied."""
    return tuple(dict.fromkeys(point.series for point in results.points))


def has_several_series(results: StudyResults) -> bool:
    """Whether the study has more than one series."""
    return len(series_names(results)) > 1


def short_name(results: StudyResults, point: PointResult) -> str:
    """The name of a point, without ranks if all points have equal ranks."""
    alike = len({other.point.ranks for other in results.points}) == 1
    return point.series if alike and point.series else point.label


def main_comparison(results: StudyResults) -> Comparison | None:
    """The comparison that the verdict is about: at the most ranks that have cores of their own."""
    candidates = [comparison for comparison in results.comparisons if len(compared_points(results, comparison)) > 1]
    honest = [comparison for comparison in candidates if compared_points(results, comparison)[0].fair]
    return max(honest or candidates, key=lambda comparison: comparison.ranks, default=None)


def compared_points(results: StudyResults, comparison: Comparison) -> list[PointResult]:
    """The timed points of a comparison, the fastest first; only those with cores of their own, where any has."""
    timed = [point for point_id in comparison.ratios if (point := point_by_id(results, point_id))]
    return [point for point in timed if point.fair] or timed


def drawn_points(results: StudyResults) -> tuple[PointResult, ...]:
    """All points, or where these are too many to draw side by side, the baseline and those with the most ranks."""
    best = verdict_point(results)
    if len(results.points) <= MOST_DRAWN or not has_several_series(results) or best is None:
        return results.points
    beside = sorted((p for p in results.points if p.point.ranks == best.point.ranks), key=_pace, reverse=True)
    wanted = {results.baseline, *(p.point_id for p in beside[: MOST_DRAWN - 1])}
    return tuple(point for point in results.points if point.point_id in wanted)


def _pace(point: PointResult) -> float:
    return point.samples_per_s.median if point.samples_per_s else 0.0
