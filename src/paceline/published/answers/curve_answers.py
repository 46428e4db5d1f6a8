"""Verdicts about learning curves: whether validation turns, when it is stable, and which size is there first."""

from __future__ import annotations

import math
from dataclasses import dataclass

from paceline.analyze.learning.stable import FEWEST_EPOCHS
from paceline.analyze.stats.intervals import CONFIDENCE, spread
from paceline.analyze.stats.students_t import quantile
from paceline.published.answers.evidence import (
    Evidence,
    Verdict,
    answered,
    few_repeats,
    scaling_caveat,
    span_text,
    unanswered,
)
from paceline.records.learning import Learning, Stable
from paceline.records.results import Interval, PointResult, Spread
from paceline.units import counted


@dataclass(frozen=True, slots=True)
class _Fit:
    """Accuracy in the last epoch of training, and in the test."""

    train: Spread
    test: Spread

    @property
    def figure(self) -> str:
        return f"{(self.train.mean - self.test.mean) * 100:+.1f} points between training and test"

    @property
    def text(self) -> str:
        return f"{self.figure}: {self.train.mean * 100:.1f} % and {self.test.mean * 100:.1f} %."

    @property
    def is_fitted(self) -> bool:
        """Whether training accuracy is above test accuracy by more than noise; with one run, by anything."""
        sides = (self.train, self.test)
        error = math.sqrt(sum((side.std or 0.0) ** 2 / side.n for side in sides))
        df = min(side.n for side in sides) - 1
        return self.train.mean - self.test.mean > (quantile(CONFIDENCE, df) * error if df else 0.0)


def overfitting(evidence: Evidence) -> Verdict:
    """Whether validation loss rises while training loss falls, at the point with the largest rise."""
    known = [(point, point.learning) for point in evidence.points if point.learning]
    learned = [(point, learning, learning.stable) for point, learning in known if learning.stable]
    if not learned:
        return unanswered("There is no validation set to see it in.", "Give the study data.validation.")
    turned = [(learning.turn, point) for point, learning, _ in learned if learning.turn]
    if turned:
        turn, point = max(turned, key=lambda pair: pair[0].rise)
        figure = f"from epoch {turn.epoch} on"
        text = f"{figure}{_named(point, learned)}: validation loss rises by {turn.rise:.3f} while training loss falls "
        text += f"by {turn.fall:.3f}."
        fit = _fit_text(point)
        return answered(f"Yes, {text}", fit, figure=figure, lead=(f"It overfits {text}", fit))
    point, _, longest = max(learned, key=lambda each: each[2].epochs)
    return _not_turned(point, longest.epochs, _named(point, learned))


def _not_turned(point: PointResult, epochs: int, named: str) -> Verdict:
    """The verdict if validation loss does not rise: open with too few epochs, or if the samples are not fitted yet."""
    fit, within = _fit(point), counted(epochs, "epoch")
    figure = fit.figure if fit else ""
    if epochs < FEWEST_EPOCHS:
        takes = f"it takes {FEWEST_EPOCHS} at least (--set train.epochs={2 * FEWEST_EPOCHS})"
        return unanswered(
            f"Whether validation turns cannot be seen in {within}: {takes}.", _fit_text(point), figure=figure
        )
    if fit and not fit.is_fitted:
        text = f"Validation loss does not rise within {within}{named}, but the samples are not fitted yet: {fit.text}"
        return unanswered(text, f"More epochs would show it (--set train.epochs={2 * epochs}).", figure=figure)
    text = f"within {within}{named}: validation loss does not rise by more than its noise."
    last = _fit_text(point)
    return answered(f"Not {text}", last, figure=figure, lead=(f"It does not overfit {text}", last))


def _named(point: PointResult, among: list[tuple[PointResult, Learning, Stable]]) -> str:
    return f" with {point.label}" if len(among) > 1 else ""


def _fit(point: PointResult) -> _Fit | None:
    ends = [curve.epochs[-1].train_accuracy for curve in point.curves if curve.epochs]
    return _Fit(spread(ends), point.test_accuracy) if ends and point.test_accuracy else None


def _fit_text(point: PointResult) -> str:
    """Training against test accuracy, in a sentence."""
    fit = _fit(point)
    return fit.text if fit else "Training and test accuracy are not both known."


def epochs_to_stable(evidence: Evidence) -> Verdict:
    """The most ranks against the fewest, by their intervals."""
    stable = _stable(evidence)
    if len(stable) < 2:
        return unanswered(*_why_unstable(evidence))
    (few, first), (many, last) = stable[0], stable[-1]
    figure = f"{_stable_text(first)} on {few.point.ranks}, {_stable_text(last)} on {many.point.ranks} ranks"
    assert first.epoch is not None and last.epoch is not None
    if not (_before(first, last) or _before(last, first)):
        return answered(
            f"Not that it could be shown: {figure}.",
            "The intervals overlap, which a reading by eye does not say.",
            figure=figure,
            lead=(f"That more ranks need more epochs is not shown: {figure}, and the intervals overlap.",),
        )
    word = "More ranks need more epochs" if last.epoch > first.epoch else "More ranks need fewer epochs"
    return answered(f"{word}: {figure}.", "The intervals do not overlap.", figure=figure)


def which_size_first(evidence: Evidence) -> Verdict:
    """Time to stable, epochs × epoch time; one is first if its interval ends before every other begins."""
    timed = [
        (_until_stable(found, point.epoch_s), point) for point, found in _stable(evidence) if point.epoch_s is not None
    ]
    if len(timed) < 2:
        return unanswered(*_why_unstable(evidence))
    soonest = min(timed, key=lambda pair: pair[0].median)
    others = [pair for pair in timed if pair is not soonest]
    figure = f"{counted(soonest[1].point.ranks, 'rank')} after {_seconds(soonest[0])}"
    against = ", ".join(f"{_seconds(time_s)} on {point.point.ranks}" for time_s, point in others)
    figures = f"{figure}, against {against}, where the ends of both intervals are multiplied"
    fewest = min(time_s.n for time_s, _ in timed)
    if any(time_s.coverage is None for time_s, _ in timed):
        return unanswered(f"{figures[0].upper()}{figures[1:]}.", few_repeats(fewest), figure=figure)
    caveat = scaling_caveat(*(point for _, point in timed))
    note = caveat or "Training alone: starting and evaluating are not in it."
    if any(soonest[0].high >= time_s.low for time_s, _ in others):
        return unanswered(f"Which is first is not shown, since the intervals overlap: {figures}.", note, figure=figure)
    return answered(f"The first to be stable: {figures}.", note, figure=figure, caveat=caveat)


def _until_stable(stable: Stable, epoch_s: Interval) -> Interval:
    """Seconds until a curve is stable: no end where the epochs have none."""
    assert stable.epoch is not None
    return Interval(
        median=stable.epoch * epoch_s.median,
        low=(stable.low or 1) * epoch_s.low,
        high=math.inf if stable.high is None else stable.high * epoch_s.high,
        n=epoch_s.n,
        coverage=epoch_s.coverage,
    )


def _seconds(interval: Interval) -> str:
    return span_text(interval, " s").replace("inf", "–")


def _stable(evidence: Evidence) -> list[tuple[PointResult, Stable]]:
    """Points that became stable, and when."""
    found = [(point, point.learning.stable) for point in evidence.points if point.learning and point.learning.stable]
    return [(point, stable) for point, stable in found if stable.epoch is not None]


def _before(one: Stable, other: Stable) -> bool:
    """Whether an interval ends before the other begins; one that is open, since it may still rise, never does."""
    return one.high is not None and one.high < (other.low or 1)


def _stable_text(stable: Stable) -> str:
    return f"epoch {stable.epoch} [{stable.low or 1}, {'–' if stable.high is None else stable.high}]"


def _why_unstable(evidence: Evidence) -> tuple[str, str]:
    whys = [point.learning.stable.why for point in evidence.points if point.learning and point.learning.stable]
    why = next((text for text in whys if text), "two points with a validation curve are needed.")
    missing = f"Fewer than two points became stable: {why.rstrip('.')}."
    return missing, "More epochs would show it (--set train.epochs=30)."
