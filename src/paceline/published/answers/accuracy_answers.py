"""Verdicts about accuracy: whether it falls with ranks and batch, and what causes it.

If several things change at once, a fall is reported and its cause stays open. Studies that change one thing at a time,
or have a recipe that fits the batch, answer it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paceline.published.answers.evidence import (
    Evidence,
    Verdict,
    accuracy_text,
    answered,
    excluded_runs_text,
    few_repeats,
    unanswered,
)
from paceline.records.learning import AccuracyCheck
from paceline.records.results import Effect, PointResult

FALLS, RISES, EQUAL = "falls", "rises", "equal"
_RECIPE = "scale"
"""The recipe whose rate, warm-up and schedule follow the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """Two points' accuracies, tested."""

    called: str
    statement: str
    figure: str
    within: str
    """What equal means."""

    @property
    def text(self) -> str:
        return f"{self.statement}, {self.within}" if self.called == EQUAL else self.statement

    @property
    def lead(self) -> str:
        return f"Test accuracy {f'is {self.within}' if self.called == EQUAL else self.called}: {self.statement}."


def falls_with_ranks(evidence: Evidence) -> Verdict:
    """The most ranks against the fewest; for a study that changes one factor at a time, which factor causes it.

    If all points have equal ranks and different batches, the verdict is about the batch.
    """
    if evidence.results.effects:
        return _causes(evidence)
    points = _tested(evidence)
    ends = _ends(points, lambda point: point.point.ranks)
    if ends is None and _ends(points, lambda point: point.point.batch_global):
        return falls_with_batch(evidence)
    if ends is None:
        return unanswered(
            "Points with different numbers of ranks are missing.", "Run the study with --ranks 1,2 or more."
        )
    found = _compared(evidence, *ends, f"with {ends[1].point.ranks} ranks", f"with {ends[0].point.ranks}")
    if isinstance(found, Verdict):
        return found
    divided = evidence.results.study.train.epochs_rule == "divide-by-ranks"
    why = "Batch and rate grow together with the ranks here: paceline study large-batch-causes separates the two."
    if divided:
        why = "Epochs are divided by the ranks here, and batch and rate grow with them: all three at once."
    word = {FALLS: "It falls here", RISES: "It rises here", EQUAL: "It does not fall here"}[found.called]
    verdict = answered if divided else unanswered
    return verdict(f"{word}: {found.text}.", why, figure=found.figure, lead=(found.lead,))


def falls_with_batch(evidence: Evidence) -> Verdict:
    """The largest batch against the smallest: with a recipe that fits the batch, whether it has to cost anything."""
    ends = _ends(_tested(evidence), lambda point: point.point.batch_global)
    if ends is None:
        return unanswered("Points with different batches are missing.", "Run the study with several batch sizes.")
    low, high = ends
    found = _compared(evidence, low, high, f"with a batch of {high.point.batch_global:,}", _batch(low))
    if isinstance(found, Verdict):
        return found
    fitted = evidence.results.study.train.recipe == _RECIPE
    why = "Rate, warm-up and schedule follow the batch here (train.recipe = scale)."
    if not fitted:
        why = "The same epochs are fewer steps at one rate: paceline study batch-sizes has a recipe that fits them."
    if found.called != FALLS:
        text = f"A larger batch need not cost accuracy: {found.text}."
        return answered(text, why if fitted else "", figure=found.figure)
    if fitted:
        text = f"A larger batch costs accuracy with a recipe that fits it, too: {found.statement}."
        return answered(text, why, figure=found.figure)
    return unanswered(f"It falls here: {found.statement}.", why, figure=found.figure, lead=(found.lead,))


def _batch(point: PointResult) -> str:
    return f"with {point.point.batch_global:,}"


def averaging(evidence: Evidence) -> Verdict:
    """One global batch on several numbers of ranks, each against the fewest: averaging is all that differs."""
    points = _tested(evidence)
    if len({point.point.ranks for point in points}) < 2 or len({point.point.batch_global for point in points}) > 1:
        return unanswered(
            "One global batch on several numbers of ranks is needed.", "Run the study with --ranks 1,2,4."
        )
    fewest = min(points, key=lambda point: point.point.ranks)
    checks = [check for point in points if (check := evidence.check(point)) and check.against == fewest.point_id]
    if len(checks) < len(points) - 1:
        return unanswered("No repeat has all numbers of ranks.", "Run the study to its end.")
    widest = max(checks, key=lambda check: abs(check.difference))
    reached = ", ".join(f"{accuracy_text(point)} on {point.point.ranks}" for point in points)
    figure = _difference(widest)
    excluded = excluded_runs_text([(point, f"on {point.point.ranks}") for point in points])
    most = f"{reached} ranks, at most {figure} apart{_without(excluded)}"
    if widest.p_different is None:
        return unanswered(f"{most}.", few_repeats(widest.n, *points), figure=figure)
    alike = f"They see the same {points[0].point.batch_global:,} samples a step, so averaging is all that differs."
    if all(check.equal for check in checks):
        return answered(f"No, equal within {widest.margin * 100:g} points: {most}.", alike, figure=figure)
    fallen = [check for check in checks if check.different and not check.equal and check.difference < 0]
    if fallen:
        largest_fall = _difference(min(fallen, key=lambda check: check.difference))
        return answered(
            f"Yes, it fell: {reached} ranks, {largest_fall}{_without(excluded)}.", alike, figure=largest_fall
        )
    return unanswered(f"{most}, not all of it shown different or equal.", _decides(excluded), figure=figure)


def _causes(evidence: Evidence) -> Verdict:
    """Effects of single factors on accuracy at one batch; real only if both tests agree."""
    effects = evidence.results.effects
    baseline = next(point for point in evidence.results.points if point.point_id == _baseline(effects))
    batch = baseline.point.batch_global
    points = {point.point_id: point for point in _tested(evidence) if point.point.batch_global == batch}
    tested = [
        (effect, check)
        for effect in effects
        if not effect.is_baseline and effect.point_id in points
        if (check := evidence.check(points[effect.point_id])) and check.against == baseline.point_id
    ]
    if not tested:
        return unanswered("No point differs from the baseline in one thing alone.", "Run it to its end.")
    first = {effect.factor: effect.value for effect in effects if effect.is_baseline}
    named = [(baseline, "at the baseline"), *((points[e.point_id], f"with {_setting(e)}") for e, _ in tested)]
    excluded = excluded_runs_text(named)
    figure = "; ".join(f"{_setting(e)} in place of {first[e.factor]} {_difference(c)}" for e, c in tested)
    at_batch = f"at the same batch of {batch:,}"
    if all(check.p_different is None for _, check in tested):
        few = few_repeats(min(check.n for _, check in tested), *(point for point, _ in named))
        return unanswered(f"In accuracy {at_batch}: {figure}{_without(excluded)}.", few, figure=figure)
    real = [(e, c) for e, c in tested if e.accuracy_pct and e.accuracy_pct.real and c.different]
    if not any(check.difference > 0 for _, check in real):
        text = (
            f"Nothing that was changed alone {at_batch} is shown to bring accuracy back: {figure}{_without(excluded)}."
        )
        return unanswered(text, "More repeats would show smaller effects.", figure=figure)
    shown = "; ".join(f"{_setting(e)} in place of {first[e.factor]} is {_difference(c)}" for e, c in real)
    rest = ", ".join(_setting(effect) for effect, check in tested if (effect, check) not in real)
    rest = f"; nothing is shown for {rest}" if rest else ""
    text = f"Not the batch alone: {at_batch} {shown}{rest}."
    return answered(text, f"Learned nothing and left out: {excluded}." if excluded else "", figure=shown)


def _baseline(effects: tuple[Effect, ...]) -> str:
    return next(effect.point_id for effect in effects if effect.is_baseline)


def _setting(effect: Effect) -> str:
    return f"{effect.factor} {effect.value}"


def _tested(evidence: Evidence) -> list[PointResult]:
    return [point for point in evidence.points if point.test_accuracy is not None]


def _ends(points: list[PointResult], size: Callable[[PointResult], int]) -> tuple[PointResult, PointResult] | None:
    """The smallest and the largest; None where they are one size."""
    low, high = min(points, key=size, default=None), max(points, key=size, default=None)
    return (low, high) if low and high and size(low) != size(high) else None


def _compared(evidence: Evidence, low: PointResult, high: PointResult, name: str, other: str) -> _Compared | Verdict:
    """What the test says of two points' accuracies; what is missing where it says nothing."""
    check = evidence.check(high)
    reached = f"{accuracy_text(high)} {name}, {accuracy_text(low)} {other}"
    if check is None or check.against != low.point_id:
        return unanswered(f"{reached}.", "No repeat has both, so they were not tested against each other.")
    figure, excluded = _difference(check), excluded_runs_text([(high, name), (low, other)])
    statement = f"{reached}, {figure}{_without(excluded)}"
    if check.p_different is None:
        few = few_repeats(check.n, low, high)
        return unanswered(f"{statement}.", few, figure=figure, lead=(f"Test accuracy is {statement}.", few))
    if check.equal or check.different:
        called = EQUAL if check.equal else FALLS if check.difference < 0 else RISES
        return _Compared(
            called=called, statement=statement, figure=figure, within=f"equal within {check.margin * 100:g} points"
        )
    text = f"{statement}, which is shown neither different nor equal."
    return unanswered(text, _decides(excluded), figure=figure, lead=(f"Test accuracy is {text}",))


def _difference(check: AccuracyCheck) -> str:
    text = f"{check.difference * 100:+.2f} points"
    if check.low is None or check.high is None:
        return text
    return f"{text} [{check.low * 100:+.2f}, {check.high * 100:+.2f}]"


def _without(excluded: str) -> str:
    """Which runs a difference excludes: the accuracies beside it are of all runs."""
    return f" without those that learned nothing ({excluded})" if excluded else ""


def _decides(excluded: str) -> str:
    """What would decide a difference that is shown neither different nor equal."""
    if excluded:
        return "Nothing is called equal where a run learned nothing; more repeats may show a difference."
    return "More repeats would decide it."
