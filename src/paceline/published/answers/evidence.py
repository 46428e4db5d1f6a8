"""Evidence and verdicts: a study's results, and the tests and phrases that most verdicts share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paceline.analyze.learning.faults import num_excluded
from paceline.analyze.stats.intervals import FEWEST_FOR_INTERVAL, coverage, median_interval
from paceline.published.records import Contradiction
from paceline.records.counters import CpuTimes
from paceline.records.learning import AccuracyCheck
from paceline.records.results import Interval, PointResult, StudyResults
from paceline.units import counted, interval_text, percent_text

_MISSED = 1 - coverage(FEWEST_FOR_INTERVAL, 1)
"""Error rate of the interval of five repeats; the limit for a figure that is selected out of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A study's results, and what else a verdict may use."""

    results: StudyResults
    cpu_times: Mapping[str, CpuTimes] = field(default_factory=dict)
    """Of the points' median runs."""
    contradictions: Sequence[Contradiction] = ()
    """Of the published tables."""

    @property
    def points(self) -> list[PointResult]:
        """Points with a finished run, the fewest ranks first."""
        return [point for point in self.results.points if point.runs]

    def check(self, point: PointResult) -> AccuracyCheck | None:
        """A point's accuracy against its reference's."""
        return next((one for one in self.results.lesson.checks if one.point_id == point.point_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One or two sentences, and the figure that they rest on."""

    sentences: tuple[str, ...]
    """The answer, then what qualifies it; for an open question, what is missing."""
    figure: str = ""
    answered: bool = True
    opening: tuple[str, ...] = ()
    """First sentences of the report of a study that asks this question."""


def answered(*sentences: str, figure: str, lead: Sequence[str] = (), caveat: str = "") -> Verdict:
    """An answer, then what qualifies it; empty sentences are dropped.

    A report opens with `lead`; without one, with the answer and with `caveat`, which limits what the figure proves.
    """
    opening = tuple(filter(None, lead or (sentences[0], caveat)))
    return Verdict(sentences=tuple(filter(None, sentences)), figure=figure, opening=opening)


def unanswered(*sentences: str, figure: str = "", lead: Sequence[str] = ()) -> Verdict:
    """What is missing for an answer; empty sentences are dropped. A report opens with `lead` or with all of it."""
    own = tuple(filter(None, sentences))
    return Verdict(sentences=own, figure=figure, answered=False, opening=tuple(lead) or own)


def direction(interval: Interval, one: float = 1.0) -> str:
    """`more` or `less` than `one`; empty if the interval contains it, or with fewer than five repeats."""
    if interval.coverage is None or interval.low <= one <= interval.high:
        return ""
    return "more" if interval.low > one else "less"


def direction_among(interval: Interval, looks: int, one: float = 1.0) -> str:
    """`direction` of the most extreme of `looks` figures, with Bonferroni's correction of the error rate."""
    by_chance = interval.coverage is None or looks * (1 - interval.coverage) > _MISSED
    return "" if by_chance else direction(interval, one)


def enough_repeats(looks: int) -> int:
    """The fewest repeats with which `direction_among` can be other than empty."""
    n = FEWEST_FOR_INTERVAL
    while looks * (1 - (median_interval(range(n)).coverage or 0.0)) > _MISSED:
        n += 1
    return n


def direction_against(own: Interval, other: Interval) -> str:
    """more or less than the other, or empty where the two intervals overlap."""
    if own.low > other.high:
        return "more"
    return "less" if own.high < other.low else ""


def span_text(interval: Interval, unit: str = "") -> str:
    """A figure with its interval, or with the range, called that, where there are fewer than five repeats."""
    if interval.low == interval.high:
        return interval_text(interval.median, None, None) + unit
    text = interval_text(interval.median, interval.low, interval.high)
    named = text if interval.coverage is not None else text.replace("[", "[range ")
    return named.replace(" [", f"{unit} [", 1)


def few_repeats(n: int, *points: PointResult) -> str:
    """Why nothing is called different or equal; `points` are those whose runs may have learned nothing."""
    if not any(map(num_excluded, points)):
        return f"With {counted(n, 'repeat')} that is no test: five are needed (--repeats {FEWEST_FOR_INTERVAL})."
    missing = FEWEST_FOR_INTERVAL - n
    again = f"{'once' if missing == 1 else f'{missing} times'} more (--repeats {max(p.runs for p in points) + missing})"
    return f"With {counted(n, 'repeat')} that learned there is no test: repeat it {again}."


def excluded_runs_text(named: Sequence[tuple[PointResult, str]]) -> str:
    """Which runs are in no test, each point by its name: `1 of 5 runs with 8 ranks`; empty where all are."""
    counts = [(num_excluded(point), point, name) for point, name in named]
    return ", ".join(f"{count} of {counted(point.runs, 'run')} {name}" for count, point, name in counts if count)


def scaling_caveat(*points: PointResult) -> str:
    """Why the times of these points are no evidence of scaling; empty if they are."""
    if any(point.oversubscribed for point in points):
        return "More threads than cores ran here, so it says little about scaling."
    if any(point.emulated for point in points):
        return "The hosts are namespaces of one machine, so it says little about scaling."
    return ""


def accuracy_text(point: PointResult) -> str:
    """Test accuracy of a point: `97.1 ± 0.2 %`."""
    found = point.test_accuracy
    if found is None:
        return "–"
    return percent_text(found.mean, 2) if found.std is None else f"{found.mean * 100:.2f} ± {found.std * 100:.2f} %"
