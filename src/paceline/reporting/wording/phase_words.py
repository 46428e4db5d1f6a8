"""Sentences about the phases of a training: the gain of fine-tuning, and cached features."""

from __future__ import annotations

from paceline.records.results import Gain, PointResult, StudyResults
from paceline.records.run import CachedFeatures
from paceline.reporting.cells import points_cell
from paceline.units import count_text, counted, duration_text


def gain_sentences(results: StudyResults) -> list[str]:
    """What fine-tuning gained, of the point with the most repeats behind it, the fewest ranks among equals."""
    gains = [(point, phase.gain) for point in results.points for phase in point.phases if phase.gain]
    if not gains:
        return []
    point, gain = max(gains, key=lambda pair: pair[1].n)
    return [f"Fine-tuning changed the test accuracy of {point.label} by {_gain_text(gain)}: {_called(gain)}."]


def features_sentences(results: StudyResults) -> list[str]:
    """Said wherever a point did not pass its images through the whole network in every epoch."""
    points = [point for point in results.points if point.features]
    if not points:
        return []
    which = "" if len(points) == len(results.points) else f" ({counted(len(points), 'point')})"
    return [
        f"The head was trained on features that the frozen base had made of every image once{which}: "
        f"{_features_text(points[-1])}. Its epochs are those of the head alone."
    ]


def _gain_text(gain: Gain) -> str:
    cell = points_cell(gain.mean, gain.low, gain.high)
    return f"{cell.figure} points {cell.beside}".rstrip()


def _called(gain: Gain) -> str:
    if gain.low is None or gain.high is None:
        return f"{counted(gain.n, 'repeat')} {'is' if gain.n == 1 else 'are'} too few for an interval"
    if gain.low > 0:
        return "better than before, since the interval leaves out zero"
    return "worse than before, since the interval leaves out zero" if gain.high < 0 else "no clear difference"


def _features_text(point: PointResult) -> str:
    made = point.features
    assert isinstance(made, CachedFeatures)
    numbers = f"{count_text(made.size)} numbers of each of {count_text(made.samples)} images"
    how = "found in the cache in" if made.found else f"by {counted(point.point.ranks, 'rank')} in"
    return f"{numbers}, {how} {duration_text(made.ready_s)}"
