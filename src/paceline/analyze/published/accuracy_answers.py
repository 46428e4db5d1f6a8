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
        return open_still(f"{reached}: {figure}. {few_repeats(check.n)}", figure)
    if check.different and not check.equal:
        word = "Yes, it fell" if check.difference < 0 else "No, it rose"
        return Verdict(text=f"{word}: {reached}, {figure}. {why}", figure=figure)
    if check.equal:
        within = f"within {check.margin * 100:g} points"
        return Verdict(text=f"No: {reached}, equal {within}. {why}", figure=figure)
    return open_still(
        f"{reached}: {figure}, which is shown neither different nor equal. More repeats would decide it.", figure
    )


def _difference(check: AccuracyCheck) -> str:
    text = f"{check.difference * 100:+.2f} points"
    if check.low is None or check.high is None:
        return text
    return f"{text} [{check.low * 100:+.2f}, {check.high * 100:+.2f}]"


def fine_tune_worse(evidence: Evidence) -> Verdict:
    """What the second phase added, within each repeat."""
    gains = [(point, phase.gain) for point in evidence.points for phase in point.phases if phase.gain is not None]
    if not gains:
        return open_still("No run has a phase of fine-tuning. paceline study fine-tuning has one.")
    point, gain = max(gains, key=lambda pair: pair[1].n)
    figure = f"{gain.mean * 100:+.2f} points"
    if gain.low is None or gain.high is None:
        return open_still(f"Fine-tuning changed the test by {figure}. {few_repeats(gain.n)}", figure)
    figure += f" [{gain.low * 100:+.2f}, {gain.high * 100:+.2f}]"
    if gain.low <= 0 <= gain.high:
        verdict = f"It changed the test by {figure}, which is no difference that {gain.n} repeats can show."
    else:
        verdict = f"{'It got better' if gain.mean > 0 else 'It got worse'} by {figure} over {gain.n} repeats."
    rate = f"It took {counted(point.point.finetune.epochs, 'epoch')} at a rate of {point.point.finetune.lr:g}."
    return Verdict(text=f"{verdict} {rate}", figure=figure)


def overfitting(evidence: Evidence) -> Verdict:
    """Whether validation turns while training goes on."""
    learned = [point for point in evidence.points if point.learning and point.learning.stable is not None]
    if not learned:
        return open_still("There is no validation set to see it in. Give the study data.validation.")
    turned = next((point for point in learned if point.learning and point.learning.turn), None)
    gap = _gap(learned[0])
    if turned is None or turned.learning is None or turned.learning.turn is None:
        text = (
            f"Not within {counted(_epochs(learned[0]), 'epoch')}: validation loss does not rise by more than its noise."
        )
        return Verdict(text=f"{text} {gap}", figure=gap.split(":", 1)[0])
    turn = turned.learning.turn
    figure = f"from epoch {turn.epoch} on"
    text = f"Yes, {figure}: validation loss rises by {turn.rise:.3f} while training loss falls by {turn.fall:.3f}."
    return Verdict(text=f"{text} {gap}", figure=figure)


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


def too_complex(evidence: Evidence) -> Verdict:
    """A network that overfits is better in training than in the test; one that cannot learn is bad at both."""
    points = [point for point in evidence.points if point.network and point.curves and point.test_accuracy]
    if not points:
        return open_still("No pretrained network was run. Those of this report are in studies of their own.")
    point = points[0]
    epochs = [[epoch for epoch in curve.epochs if epoch.phase == "train"] for curve in point.curves]
    ends = [own[-1].train_accuracy for own in epochs if own]
    if not ends:
        return open_still("No epoch of the training was finished. Run the study to its end.")
    first = point.phases[0].test_accuracy if point.phases else point.test_accuracy
    assert first is not None
    train, test = sum(ends) / len(ends), first.mean
    figure = f"{train * 100:.1f} % in training, {test * 100:.1f} % in the test"
    if train - test > 0.05:
        return Verdict(
            text=f"It overfits: {figure}. Fewer parameters, or more images, would bring the two together.",
            figure=figure,
        )
    cause = "Whether the input is to blame, paceline study transfer-cifar10 tells: it changes one thing at a time."
    return Verdict(text=f"It does not overfit: {figure}. {cause}", figure=figure)


def epochs_to_stable(evidence: Evidence) -> Verdict:
    """The most ranks against the fewest, by their intervals."""
    stable = _stable(evidence)
    if len(stable) < 2:
        return open_still(_why_unstable(evidence))
    (few, first), (many, last) = stable[0], stable[-1]
    figure = f"{_stable_text(first)} on {few.point.ranks}, {_stable_text(last)} on {many.point.ranks} ranks"
    assert first.epoch is not None and last.epoch is not None
    apart = (first.high or first.epochs) < (last.low or 1) or (last.high or last.epochs) < (first.low or 1)
    if not apart:
        return Verdict(
            text=f"Not that it could be shown: {figure}. The intervals overlap, which a reading by eye does not say.",
            figure=figure,
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
    others = "; ".join(f"{p.point.ranks}: {duration_text(s)}" for s, p, _ in timed if p is not point)
    note = shared_cores(*(p for _, p, _ in timed)) or "Training alone: starting and evaluating are not in it."
    text = f"{figure[0].upper()}{figure[1:]}, at epoch {found.epoch}, against {others}. {note}"
    return Verdict(text=text, figure=figure)


def _stable(evidence: Evidence) -> list[tuple[PointResult, Stable]]:
    """Points that became stable, and when."""
    found = [(point, point.learning.stable) for point in evidence.points if point.learning and point.learning.stable]
    return [(point, stable) for point, stable in found if stable.epoch is not None]


def _stable_text(stable: Stable) -> str:
    high = stable.epochs if stable.high is None else stable.high
    return f"epoch {stable.epoch} [{stable.low or 1}, {high}]"


def _why_unstable(evidence: Evidence) -> str:
    whys = [point.learning.stable.why for point in evidence.points if point.learning and point.learning.stable]
    why = next((text for text in whys if text), "two points with a validation curve are needed.")
    return f"Fewer than two points became stable: {why.rstrip('.')}. More epochs would show it (--set train.epochs=30)."
