"""Sentences about learning: time and cost to the target, test accuracies over repeats, fine-tuning, features."""

from __future__ import annotations

from collections import Counter

from paceline.records.learning import AccuracyCheck
from paceline.records.results import Gain, Interval, PointResult, Spread, StudyResults
from paceline.records.run import CachedFeatures
from paceline.reporting.cells import points_cell
from paceline.reporting.wording.choice import point_by_id, short_name
from paceline.reporting.wording.phrases import interval_phrase, listed, spread_text
from paceline.units import count_text, counted, duration_text, finite, number_text, percent_text

DIFFERENT, SMALL, EQUAL, OPEN, FEW = "different", "different, within the margin", "equal", "neither shown", "too few"

EXCLUDED_RUNS_NOTE = (
    "A run that learned nothing is not compared, where most of its point's learned, and its point is called equal to "
    "none: the findings name it."
)


def check_outcome(check: AccuracyCheck) -> str:
    """What the tests over repeats say of two accuracies."""
    if check.p_different is None:
        return FEW
    if check.different:
        return SMALL if check.equal else DIFFERENT
    return EQUAL if check.equal else OPEN


def points_text(fraction: float) -> str:
    """A difference of accuracies in points, with its sign."""
    return f"{100 * fraction:+.2f}".replace("-", "−")


def margin_text(margin: float) -> str:
    """`0.5 points`."""
    return f"{100 * margin:g} points"


def target_sentences(results: StudyResults) -> list[str]:
    """Which point reaches the target first, and which for the fewest rank-hours, where several do."""
    lesson = results.lesson
    first, cheapest = point_by_id(results, lesson.first), point_by_id(results, lesson.cheapest)
    able = [point for point in results.points if _figure(point, "time_s")]
    if lesson.target is None or first is None or cheapest is None or len(able) < 2:
        return []
    time_s, hours = _figure(first, "time_s"), _figure(cheapest, "rank_hours")
    assert time_s is not None and hours is not None
    text = f"{percent_text(lesson.target)} validation accuracy is reached first with {first.label}, in "
    text += f"{_at_most(first)}{_time_around(time_s)}, and for the least with "
    text += f"{'the same' if first is cheapest else cheapest.label}, for {_at_most(cheapest)}"
    return [f"{text}{number_text(hours.median)} rank-hours.", *_rule(results)]


def _rule(results: StudyResults) -> list[str]:
    """How the target was chosen if it is not configured."""
    return [] if results.lesson.rule == "given" else [f"That target is {results.lesson.rule}."]


def accuracy_verdict(results: StudyResults) -> str:
    """The answer of a study that asks for accuracy; a clause without its full stop, empty where nothing was tested."""
    known = tested(results)
    if not known:
        return ""
    (low, lowest), (high, highest) = (pick(known, key=lambda pair: pair[1].mean) for pick in (min, max))
    if len(known) == 1:
        return f"test accuracy is {spread_text(lowest)} with {low.label}"
    worst, best = (short_name(results, point) for point in (low, high))
    text = f"test accuracy is lowest with {worst}, {spread_text(lowest)}, and highest with {best}, "
    text += spread_text(highest)
    if low is high:
        text = f"test accuracy is the same at all {len(known)} points, {spread_text(lowest)}"
    checked = accuracy_checks_sentence(results)
    if any(check_is_of_fewer(results, check) for check in results.lesson.checks):
        checked = f"{checked} {EXCLUDED_RUNS_NOTE}"
    return f"{text}. {checked}".rstrip(". ")


def tested(results: StudyResults) -> list[tuple[PointResult, Spread]]:
    """The points that have a test accuracy which is a number."""
    known = [(point, point.test_accuracy) for point in results.points]
    return [(point, spread) for point, spread in known if spread is not None and finite(spread.mean) is not None]


def check_is_of_fewer(results: StudyResults, check: AccuracyCheck) -> bool:
    """Whether the check excludes runs that learned nothing."""
    if check.p_different is not None and check.p_equal is None:
        return True
    both = [point for point_id in (check.point_id, check.against) if (point := point_by_id(results, point_id))]
    faulty = any(point.learning and point.learning.faults for point in both)
    return faulty and check.n < min(point.test_accuracy.n for point in both if point.test_accuracy)


def accuracy_checks_sentence(results: StudyResults) -> str:
    """What the repeats say about test accuracies: of one pair with its figures, of several in numbers."""
    checks = results.lesson.checks
    if not checks:
        return ""
    if len(checks) == 1:
        return _one_pair(checks[0])
    margin, counts = margin_text(checks[0].margin), Counter(check_outcome(check) for check in checks)
    if counts[FEW] == len(checks):
        fewest = min(check.n for check in checks)
        return f"With {counted(fewest, 'repeat')} there are too few to call test accuracies different or equal."
    lower = sum(check_outcome(check) == DIFFERENT and check.difference < 0 for check in checks)
    parts = [
        (lower, "below it"),
        (counts[DIFFERENT] - lower, "above it"),
        (counts[EQUAL] + counts[SMALL], f"equal to it within {margin}"),
        (counts[OPEN], "neither shown to differ nor to be equal"),
        (counts[FEW], "measured too few times to tell"),
    ]
    outcomes = [f"{count} {'is' if count == 1 else 'are'} {what}" for count, what in parts if count]
    return f"Of {len(checks)} test accuracies that the repeats compare with a reference, {listed(outcomes)}."


def _one_pair(check: AccuracyCheck) -> str:
    margin = margin_text(check.margin)
    if check.low is None or check.high is None:
        are = "is" if check.n == 1 else "are"
        return f"{counted(check.n, 'repeat')} {are} too few to call them different or equal."
    interval = f"{points_text(check.difference)} points, interval {points_text(check.low)} to {points_text(check.high)}"
    match check_outcome(check):
        case "different":
            return f"Over the repeats they differ: {interval}."
        case "different, within the margin":
            return f"Over the repeats they differ by less than {margin}: {interval}."
        case "equal":
            return f"Over the repeats they are equal within {margin}: {interval}."
    return f"The repeats show neither a difference nor that they are equal within {margin}: {interval}."


def _figure(point: PointResult, name: str) -> Interval | None:
    return getattr(point.learning.target, name) if point.learning and point.learning.target else None


def _at_most(point: PointResult) -> str:
    return "at most " if point.learning and point.learning.target and point.learning.target.at_most else ""


def _time_around(time_s: Interval) -> str:
    """A time in the unit people would use, with its interval where that is seconds, too."""
    text = duration_text(time_s.median)
    return f"{text} {interval_phrase(time_s)}" if 1 <= time_s.median < 60 else text


def gain_sentences(results: StudyResults) -> list[str]:
    """What fine-tuning gained, of the point with the most repeats behind it, the fewest ranks among equals."""
    gains = [(point, phase.gain) for point in results.points for phase in point.phases if phase.gain]
    if not gains:
        return []
    point, gain = max(gains, key=lambda pair: pair[1].n)
    return [f"Fine-tuning changed the test accuracy of {point.label} by {_gain_text(gain)}: {_called(gain)}."]


def features_sentences(results: StudyResults) -> list[str]:
    """That the head was trained on cached features, if any point did so."""
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
