"""Verdicts about pretrained networks: why they stay at chance, what fine-tuning adds, whether they overfit."""

from __future__ import annotations

import math

from paceline.analyze.stats.intervals import FEWEST_FOR_INTERVAL
from paceline.published.answers.evidence import Evidence, Verdict, accuracy_text, answered, few_repeats, unanswered
from paceline.published.matching.row_points import setting_value
from paceline.records.results import PointResult
from paceline.units import counted

_CLASSES = 10
"""Of CIFAR-10, which the question is about."""
_NEAR_CHANCE = 1.5 / _CLASSES
"""Test accuracies below it: a head that has learned next to nothing from its features."""
_LOW, _HIGH, _MIXED = "low", "high", "mixed"
_BESIDE = """--set 'model.preprocessing=["own","twice"]'"""
"""Option that adds the change that leads to chance level."""


def transfer_at_chance(evidence: Evidence) -> Verdict:
    """The point at chance level, and the best point that differs from it in one setting.

    All runs of the first and no run of the second are near chance; points with both kinds of runs are ignored.
    """
    points = [point for point in evidence.points if point.test_accuracy is not None]
    low = [point for point in points if _side(point) == _LOW]
    high = [point for point in points if _side(point) == _HIGH]
    chance = f"where chance among {_CLASSES} classes is {100 / _CLASSES:g} %"
    if not points:
        return unanswered("No run has a test accuracy.", "Run the study to its end.")
    if not low or not high:
        best = max(points, key=_accuracy)
        mixed = next((point for point in points if _side(point) == _MIXED), None)
        some = f"; some runs with {_settings(mixed)} may be there and some not: {accuracy_text(mixed)}" if mixed else ""
        text = f"With {_settings(best)} it reaches {accuracy_text(best)}, {chance}{some}."
        return unanswered(text, f"What makes the difference: {_BESIDE}.", figure=accuracy_text(best))
    pairs = [(_changes(evidence, good, bad), good, bad) for bad in low for good in high]
    changed, good, bad = min(pairs, key=lambda pair: (len(pair[0]), -_accuracy(pair[1])))
    figure = f"{accuracy_text(bad)} in place of {accuracy_text(good)}"
    if len(changed) != 1:
        return unanswered(
            f"{_both(changed)} lead to chance: {figure}.", "One at a time would tell which.", figure=figure
        )
    text = f"{_both(changed)} leads to chance, all else equal: {figure}."
    fewest = min(point.test_accuracy.n for point in (good, bad) if point.test_accuracy)
    if fewest < FEWEST_FOR_INTERVAL:
        return unanswered(text, few_repeats(fewest), figure=figure)
    others = _others(evidence, good, low)
    return answered(text, others, figure=figure, lead=(text, others))


def _accuracy(point: PointResult) -> float:
    return point.test_accuracy.mean if point.test_accuracy else 0.0


def _side(point: PointResult) -> str:
    """Whether all runs of a point are near chance, or none, from their mean and standard deviation.

    No value of n is further from their mean than s (n − 1) / √n (Samuelson, 1968).
    """
    found = point.test_accuracy
    assert found is not None
    furthest = (found.std or 0.0) * (found.n - 1) / math.sqrt(found.n)
    if found.mean + furthest < _NEAR_CHANCE:
        return _LOW
    return _HIGH if found.mean - furthest >= _NEAR_CHANCE else _MIXED


def _settings(point: PointResult) -> str:
    """What was done to the images, as the study sets it."""
    options = point.point.model.options
    size = f"{options['image_size']} pixels" if "image_size" in options else "the network's own size"
    return f"{size} and preprocessing {options.get('preprocessing', 'own')}"


def _changes(evidence: Evidence, good: PointResult, bad: PointResult) -> list[tuple[str, str, str]]:
    """What differs between two points: name of the setting, its value at the bad one and at the good one."""
    values = [
        (path, setting_value(bad.point, path), setting_value(good.point, path)) for path in evidence.results.study.vary
    ]
    return [(path.rpartition(".")[2].replace("_", " "), str(b), str(g)) for path, b, g in values if b != g]


def _both(changed: list[tuple[str, str, str]]) -> str:
    text = " and ".join(f"{name} {bad} in place of {good}" for name, bad, good in changed)
    return f"{text[:1].upper()}{text[1:]}"


def _others(evidence: Evidence, good: PointResult, low: list[PointResult]) -> str:
    """Accuracy after another single change that does not lead to chance level."""
    rest = [point for point in evidence.points if point.test_accuracy and point not in low and point is not good]
    single = [(changes[0], point) for point in rest if len(changes := _changes(evidence, good, point)) == 1]
    if not single:
        return "Nothing else was changed."
    (name, bad, _), point = min(single, key=lambda pair: _accuracy(pair[1]))
    return f"Not so {name} {bad}, which alone leaves {accuracy_text(point)}."


def fine_tune_worse(evidence: Evidence) -> Verdict:
    """What the second phase added, within each repeat."""
    gains = [(point, phase.gain) for point in evidence.points for phase in point.phases if phase.gain is not None]
    if not gains:
        return unanswered("No run has a phase of fine-tuning.", "paceline study fine-tuning has one.")
    # The most repeats, the fewest ranks among equals: as `gain_sentences` of the report chooses it.
    point, gain = max(gains, key=lambda pair: pair[1].n)
    named = f" with {point.label}" if len(gains) > 1 else ""
    figure = f"{gain.mean * 100:+.2f} points"
    if gain.low is None or gain.high is None:
        return unanswered(
            f"Fine-tuning changed the test by {figure}{named}.", few_repeats(gain.n, point), figure=figure
        )
    figure += f" [{gain.low * 100:+.2f}, {gain.high * 100:+.2f}]"
    if gain.low <= 0 <= gain.high:
        by = f"changed the test by {figure}{named}, which is no difference that {gain.n} repeats can show."
    else:
        by = f"{'made it better' if gain.mean > 0 else 'made it worse'} by {figure} over {gain.n} repeats{named}."
    rate = f"It took {counted(point.point.finetune.epochs, 'epoch')} at a rate of {point.point.finetune.lr:g}."
    return answered(f"Fine-tuning {by}", rate, figure=figure)


def too_complex(evidence: Evidence) -> Verdict:
    """A network that overfits is better in training than in the test; one that cannot learn is bad at both."""
    points = [point for point in evidence.points if point.network and point.curves and point.test_accuracy]
    if not points:
        return unanswered("No pretrained network was run.", "Those of this report are in studies of their own.")
    point = points[0]
    epochs = [[epoch for epoch in curve.epochs if epoch.phase == "train"] for curve in point.curves]
    ends = [own[-1].train_accuracy for own in epochs if own]
    if not ends:
        return unanswered("No epoch of the training was finished.", "Run the study to its end.")
    first = point.phases[0].test_accuracy if point.phases else point.test_accuracy
    assert first is not None
    train, test = sum(ends) / len(ends), first.mean
    figure = f"{train * 100:.1f} % in training, {test * 100:.1f} % in the test"
    if len(ends) < FEWEST_FOR_INTERVAL:
        return unanswered(f"It is at {figure}.", few_repeats(len(ends)), figure=figure)
    if train - test > 0.05:
        remedy = "Fewer parameters, or more images, would bring the two together."
        return answered(f"It overfits: {figure}.", remedy, figure=figure)
    cause = "Whether the input is to blame, paceline study transfer-cifar10 tells: it changes one thing at a time."
    return answered(f"It does not overfit: {figure}.", cause, figure=figure)
