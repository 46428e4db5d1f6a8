"""Numbers over ranks that are drawn: one line per series, and what would be ideal.

A line stands over ranks and servers, which count as ranks in the efficiency: so one ideal holds for
all. A series that has no point as small as its baseline begins there: a single rank has nothing to
exchange and is run once for all strategies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from paceline.records.laws import LawCurve
from paceline.records.results import Interval, PointResult, StudyResults
from paceline.reporting.tables.point_tables import time_unit
from paceline.reporting.wording.choice import has_several_series, main_comparison, point_by_id, series_names
from paceline.reporting.wording.phrases import LAW_NAMES
from paceline.units import finite, number_text, percent_text

_MOST_SHOWN_LAWS = 2
"""Laws that are drawn before a reader asks for them: with more, bands hide one another."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series: a figure over ranks."""

    name: str
    """Of the series; empty where there is only one."""
    ranks: tuple[int, ...]
    """With servers."""
    points: tuple[str, ...]
    """Each point by its ranks and factors."""
    measured: tuple[Estimate | None, ...]
    crowded: tuple[bool, ...]
    """Points that say little about scaling: their ranks had to share cores, or their hosts are one machine."""
    labels: tuple[str, ...] = ()
    """What stands at each point, where anything does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawLine:
    """A scaling law that was fitted to one series."""

    law: str
    """amdahl, gustafson or usl."""
    label: str
    number: int | None
    """Of the series among the lines; None where it is the only one."""
    curve: LawCurve
    shown: bool
    """Whether it is drawn before a reader asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """One figure over ranks, as measured and as it would be if nothing were lost."""

    lines: tuple[Line, ...]
    ranks: tuple[int, ...]
    """Of all lines."""
    ideal: tuple[float | None, ...]
    """At these ranks; None where the series have no ideal in common."""
    around: str
    """What the bars around the points are: intervals, ranges (of fewer than five repeats), or nothing."""
    unit: str
    servers: bool = False
    """Whether there are servers among the ranks."""
    emulated: bool = False
    """Whether the hosts of some points are one machine."""
    laws: tuple[LawLine, ...] = ()
    """Fitted to the lines: of speed-ups alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Series side by side at one number of ranks, the fastest first."""

    title: str
    names: tuple[str, ...]
    measured: tuple[Estimate, ...]
    crowded: tuple[bool, ...]
    around: str


Figure = Callable[[PointResult], Interval | None]


def speedups(results: StudyResults) -> Scaling:
    """Speed-up over ranks; ideal is the ratio of ranks to the baseline's."""
    smallest = {base.ranks_and_servers for base in _baselines(results)}
    first = smallest.pop() if len(smallest) == 1 else None
    found = _scaling(results, lambda p: p.speedup, lambda n: n / first if first else None, unit="×", labels=True)
    return replace(found, laws=_law_lines(results))


def _law_lines(results: StudyResults) -> tuple[LawLine, ...]:
    """Both laws of a single series; of several, the preferred one of each."""
    names = series_names(results)
    several = len(names) > 1
    fitted = [(own, law) for own in results.laws for law in own.laws if law is own.best or not several]
    return tuple(
        LawLine(
            law=law.name,
            label=f"{own.series}: {LAW_NAMES[law.name]}" if several else f"{LAW_NAMES[law.name]}, fitted",
            number=names.index(own.series) if several else None,
            curve=law.curve,
            shown=law is own.best and len(fitted) <= _MOST_SHOWN_LAWS,
        )
        for own, law in fitted
    )


def epoch_times(results: StudyResults) -> Scaling:
    """Epoch time over ranks, in the unit of the table; ideal is the baseline's over the ratio of ranks."""
    unit, factor = time_unit(results.points)
    base = _common_baseline(results)
    if base is None or base.epoch_s is None:
        return _scaling(results, lambda p: p.epoch_s, lambda n: None, unit=unit, factor=factor)
    whole = base.epoch_s.median * base.ranks_and_servers * factor
    return _scaling(results, lambda p: p.epoch_s, lambda n: whole / n, unit=unit, factor=factor)


def run_times(results: StudyResults) -> Scaling:
    """Seconds of a run from launch to end over ranks; ideal is the baseline's over the ratio of ranks."""
    base = _common_baseline(results)
    whole = base.total_s.median * base.ranks_and_servers if base and base.total_s else None
    return _scaling(results, lambda p: p.total_s, lambda n: whole / n if whole else None, unit="s")


def efficiencies(results: StudyResults) -> Scaling:
    """Efficiency over ranks in per cent; ideal is all of it."""
    return _scaling(results, lambda p: p.efficiency, lambda n: 100.0, unit="%", factor=100.0)


def step_times(results: StudyResults, step_s: Mapping[str, Interval]) -> Scaling:
    """Milliseconds of a step over ranks; ideal, where the batch per rank stays the same, is the baseline's."""
    base = _common_baseline(results)
    alone = step_s.get(base.point_id) if base else None
    level = alone.median * 1e3 if alone else None
    return _scaling(results, lambda p: step_s.get(p.point_id), lambda n: level, unit="ms", factor=1e3)


def throughputs(results: StudyResults) -> Scaling:
    """Samples per second over ranks; ideal is the baseline's times the ratio of ranks."""
    base = _common_baseline(results)
    if base is None or base.samples_per_s is None:
        return _scaling(results, lambda p: p.samples_per_s, lambda n: None, unit="samples/s")
    each = base.samples_per_s.median / base.ranks_and_servers
    return _scaling(results, lambda p: p.samples_per_s, lambda n: each * n, unit="samples/s")


def ranking(results: StudyResults) -> Ranking:
    """Samples per second of the series that the verdict compares; without bars where there are none."""
    comparison = main_comparison(results)
    if comparison is None:
        return Ranking(title="", names=(), measured=(), crowded=(), around="")
    points = [point for point_id in comparison.ratios if (point := point_by_id(results, point_id))]
    shown = [(p, e) for p in points if (e := _estimate(p.samples_per_s, 1.0)) is not None]
    return Ranking(
        title=f"{comparison.ranks} ranks side by side" if comparison.ranks > 1 else "1 rank side by side",
        names=tuple(point.series for point, _ in shown),
        measured=tuple(estimate for _, estimate in shown),
        crowded=tuple(not point.fair for point, _ in shown),
        around=_around([point.samples_per_s for point, _ in shown]),
    )


def _scaling(
    results: StudyResults,
    figure: Figure,
    ideal: Callable[[int], float | None],
    *,
    unit: str,
    factor: float = 1.0,
    labels: bool = False,
) -> Scaling:
    labels = labels and not has_several_series(results)  # lines that cross leave no room for text at their points
    lines = tuple(_line(results, name, figure, factor, labels) for name in series_names(results))
    ranks = tuple(sorted({n for line in lines for n in line.ranks}))
    return Scaling(
        lines=lines,
        ranks=ranks,
        ideal=tuple(ideal(n) for n in ranks),
        around=_around([figure(point) for point in results.points]),
        unit=unit,
        servers=any(point.point.servers for point in results.points),
        emulated=any(point.emulated for point in results.points),
    )


def _line(results: StudyResults, name: str, figure: Figure, factor: float, labels: bool) -> Line:
    own = [point for point in results.points if point.series == name]
    base = point_by_id(results, own[0].baseline)
    if base is not None and base.ranks_and_servers < min(point.ranks_and_servers for point in own):
        own.insert(0, base)
    return Line(
        name=name,
        ranks=tuple(point.ranks_and_servers for point in own),
        points=tuple(point.label for point in own),
        measured=tuple(_estimate(figure(point), factor) for point in own),
        crowded=tuple(not point.fair for point in own),
        labels=tuple(_speedup_label(point) for point in own) if labels else (),
    )


def _speedup_label(point: PointResult) -> str:
    if point.speedup is None or point.point_id == point.baseline:
        return ""
    share = f"<br>{percent_text(point.efficiency.median, 0)}" if point.efficiency else ""
    return f"{number_text(point.speedup.median)} ×{share}"


def _baselines(results: StudyResults) -> list[PointResult]:
    ids = dict.fromkeys(point.baseline for point in results.points if point.baseline)
    return [base for point_id in ids if (base := point_by_id(results, point_id))]


def _common_baseline(results: StudyResults) -> PointResult | None:
    """The one point that all are measured against; None where there are several."""
    found = _baselines(results)
    return found[0] if len(found) == 1 else None


def _around(intervals: list[Interval | None]) -> str:
    wide = [interval for interval in intervals if interval is not None and interval.low < interval.high]
    if not wide:
        return ""
    return "intervals" if all(interval.coverage is not None for interval in wide) else "ranges"


def _estimate(interval: Interval | None, factor: float) -> Estimate | None:
    if interval is None or finite(interval.median) is None:
        return None
    low, high = (interval.median if finite(end) is None else end for end in (interval.low, interval.high))
    return Estimate(interval.median * factor, low * factor, high * factor)
