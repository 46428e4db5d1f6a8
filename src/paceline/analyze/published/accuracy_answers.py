"""Verdicts about accuracy and learning: each is made of tests on the results at hand."""

from __future__ import annotations

from collections.abc import Callable

from paceline.analyze.published.evidence import Evidence, Verdict, accuracy_text, few_repeats, open_still, shared_cores
from paceline.records.learning import AccuracyCheck, Stable
from paceline.records.results import PointResult
from paceline.units import counted, duration_text


def falls_with_ranks(evidence: Evidence) -> Verdict:
    """The most ranks against the fewest."""
    points = [point for point in evidence.points if point.test_accuracy is not None]
    ends = _ends(points, lambda point: point.point.ranks)
    if ends is None:
        return open_still("Points with different numbers of ranks are missing. Run the study with --ranks 1,2 or more.")
    why = "Batch and rate grow together with the ranks here: paceline study large-batch-causes separates the two."
    if evidence.results.study.train.epochs_rule == "divide-by-ranks":
        why = "Epochs are divided by the ranks here, and batch and rate grow with them: all three at once."
    return _compared(evidence, *ends, f"{ends[1].point.ranks} ranks", f"{ends[0].point.ranks}", why)


def falls_with_batch(evidence: Evidence) -> Verdict:
    """The largest batch against the smallest."""
    points = [point for point in evidence.points if point.test_accuracy is not None]
    ends = _ends(points, lambda point: point.point.batch_global)
    if ends is None:
        return open_still("Points with different batches are missing. Run the study with several batch sizes.")
    why = "The same epochs mean fewer steps at a larger batch: paceline study batch-sizes tries a recipe that makes up."
    return _compared(
        evidence, *ends, f"a batch of {ends[1].point.batch_global:,}", f"{ends[0].point.batch_global:,}", why
    )


def averaging(evidence: Evidence) -> Verdict:
    """One global batch on several numbers of ranks, each against the fewest: averaging is all that differs."""
    points = [point for point in evidence.points if point.test_accuracy is not None]
    if len({point.point.ranks for point in points}) < 2 or len({point.point.batch_global for point in points}) > 1:
        return open_still("One global batch on several numbers of ranks is needed. Run the study with --ranks 1,2,4.")
    fewest = min(points, key=lambda point: point.point.ranks)
    checks = [check for point in points if (check := evidence.check(point)) and check.against == fewest.point_id]
    if len(checks) < len(points) - 1:
        return open_still("No repeat has all numbers of ranks. Run the study to its end.")
    widest = max(checks, key=lambda check: abs(check.difference))
    reached = ", ".join(f"{accuracy_text(point)} on {point.point.ranks}" for point in points)
    figure = _difference(widest)
    most = f"{reached} ranks, at most {figure} apart"
    if widest.p_different is None:
        return open_still(f"{most}. {few_repeats(widest.n)}", figure)
    alike = f"They see the same {points[0].point.batch_global:,} samples a step, so averaging is all that differs."
    if all(check.equal for check in checks):
        return Verdict(text=f"No, equal within {widest.margin * 100:g} points: {most}. {alike}", figure=figure)
    fallen = [check for check in checks if check.different and not check.equal and check.difference < 0]
    if fallen:
        lost = _difference(min(fallen, key=lambda check: check.difference))
        return Verdict(text=f"Yes, it fell: {reached} ranks, {lost}. {alike}", figure=lost)
    return open_still(f"{most}, not all of it shown different or equal. More repeats would decide it.", figure)


def _ends(points: list[PointResult], size: Callable[[PointResult], int]) -> tuple[PointResult, PointResult] | None:
    """The smallest and the largest; None where they are one size."""
    low, high = min(points, key=size, default=None), max(points, key=size, default=None)
    return (low, high) if low and high and size(low) != size(high) else None


def _compared(evidence: Evidence, low: PointResult, high: PointResult, name: str, other: str, why: str) -> Verdict:
    """What the test says of two points' accuracies."""
    check = evidence.check(high)
    reached = f"{accuracy_text(high)} with {name}, {accuracy_text(low)} with {other}"
    if check is None or check.against != low.point_id:
        return open_still(f"{reached}. No repeat has both, so they were not tested against each other.")
    figure = _difference(check)
    if check.p_different is None:
        text = f"{reached}: {figure}. {few_repeats(check.n)}"
        return open_still(text, figure, lead=f"Test accuracy is {text}")
    if check.different and not check.equal:
        word, lead = ("Yes, it fell", "falls") if check.difference < 0 else ("No, it rose", "rises")
        text = f"{reached}, {figure}."
        return Verdict(text=f"{word}: {text} {why}", figure=figure, lead=f"Test accuracy {lead}: {text}")
    if check.equal:
        within = f"equal within {check.margin * 100:g} points"
        lead = f"Test accuracy is {within}: {reached}."
        return Verdict(text=f"No: {reached}, {within}. {why}", figure=figure, lead=lead)
    text = f"{reached}: {figure}, which is shown neither different nor equal."
    return open_still(f"{text} More repeats would decide it.", figure, lead=f"Test accuracy is {text}")


def _difference(check: AccuracyCheck) -> str:
    text = f"{check.difference * 100:+.2f} points"
    if check.low is None or check.high is None:
        return text
    return f"{text} [{check.low * 100:+.2f}, {check.high * 100:+.2f}]"


def overfitting(evidence: Evidence) -> Verdict:
    """Whether validation turns while training goes on."""
    learned = [point for point in evidence.points if point.learning and point.learning.stable is not None]
    if not learned:
        return open_still("There is no validation set to see it in. Give the study data.validation.")
    turned = next((point for point in learned if point.learning and point.learning.turn), None)
    gap = _gap(learned[0])
    if turned is None or turned.learning is None or turned.learning.turn is None:
        text = f"within {counted(_epochs(learned[0]), 'epoch')}: validation loss does not rise by more than its noise."
        figure = gap.split(":", 1)[0]
        return Verdict(text=f"Not {text} {gap}", figure=figure, lead=f"It does not overfit {text} {gap}")
    turn = turned.learning.turn
    figure = f"from epoch {turn.epoch} on"
    text = f"{figure}: validation loss rises by {turn.rise:.3f} while training loss falls by {turn.fall:.3f}. {gap}"
    return Verdict(text=f"Yes, {text}", figure=figure, lead=f"It overfits {text}")


def _epochs(point: PointResult) -> int:
    return max((len(curve.epochs) for curve in point.curves), default=0)


def _gap(point: PointResult) -> str:
    """Training against test accuracy, in a sentence."""
    ends = [curve.epochs[-1].train_accuracy for curve in point.curves if curve.epochs]
    if not ends or point.test_accuracy is None:
        return "Training and test accuracy are not both known."
    train = sum(ends) / len(ends)
    test = point.test_accuracy.mean
    points = f"{(train - test) * 100:+.1f} points"
    return f"{points} between training and test: {train * 100:.1f} % and {test * 100:.1f} %."


def epochs_to_stable(evidence: Evidence) -> Verdict:
    """The most ranks against the fewest, by their intervals."""
    stable = _stable(evidence)
    if len(stable) < 2:
        return open_still(_why_unstable(evidence))
    (few, first), (many, last) = stable[0], stable[-1]
    figure = f"{_stable_text(first)} on {few.point.ranks}, {_stable_text(last)} on {many.point.ranks} ranks"
    assert first.epoch is not None and last.epoch is not None
    if not (_before(first, last) or _before(last, first)):
        return Verdict(
            text=f"Not that it could be shown: {figure}. The intervals overlap, which a reading by eye does not say.",
            figure=figure,
            lead=f"That more ranks need more epochs is not shown: {figure}, and the intervals overlap.",
        )
    word = "More ranks need more epochs" if last.epoch > first.epoch else "More ranks need fewer epochs"
    return Verdict(text=f"{word}: {figure}. The intervals do not overlap.", figure=figure)


def which_size_first(evidence: Evidence) -> Verdict:
    """Epochs to stable × time of an epoch."""
    timed = [
        (found.epoch * point.epoch_s.median, point, found)
        for point, found in _stable(evidence)
        if point.epoch_s is not None and found.epoch is not None
    ]
    if len(timed) < 2:
        return open_still(_why_unstable(evidence))
    soonest_s, point, found = min(timed, key=lambda each: each[0])
    figure = f"{counted(point.point.ranks, 'rank')} after {duration_text(soonest_s)}"
    others = ", ".join(f"{duration_text(s)} on {p.point.ranks}" for s, p, _ in timed if p is not point)
    note = shared_cores(*(p for _, p, _ in timed)) or "Training alone: starting and evaluating are not in it."
    text = f"The first to be stable: {figure}, at epoch {found.epoch}, against {others}. {note}"
    return Verdict(text=text, figure=figure)


def _stable(evidence: Evidence) -> list[tuple[PointResult, Stable]]:
    """Points that became stable, and when."""
    found = [(point, point.learning.stable) for point in evidence.points if point.learning and point.learning.stable]
    return [(point, stable) for point, stable in found if stable.epoch is not None]


def _before(one: Stable, other: Stable) -> bool:
    """Whether an interval ends before the other begins; one that is open, since it may still rise, never does."""
    return one.high is not None and one.high < (other.low or 1)


def _stable_text(stable: Stable) -> str:
    return f"epoch {stable.epoch} [{stable.low or 1}, {'–' if stable.high is None else stable.high}]"


def _why_unstable(evidence: Evidence) -> str:
    whys = [point.learning.stable.why for point in evidence.points if point.learning and point.learning.stable]
    why = next((text for text in whys if text), "two points with a validation curve are needed.")
    return f"Fewer than two points became stable: {why.rstrip('.')}. More epochs would show it (--set train.epochs=30)."
