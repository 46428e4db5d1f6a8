"""A made-up study of twelve points with traces: the largest that a report is promised to stay small and legible for."""

from __future__ import annotations

from dataclasses import replace

from paceline.analyze.run.run_summary import trace_summary
from paceline.analyze.views.picture import MOST_PARTS, picture
from paceline.records.results import StudyResults
from paceline.records.run_picture import Picture
from paceline.records.trace_summary import Efficiencies
from paceline.reporting.model import ReportModel, report_model
from paceline.reporting.wording.choice import MOST_DRAWN, drawn_points
from samples import report_samples as samples
from samples import series_samples
from samples.picture_samples import busy_run

STEPS = 6_000
"""Of every run: far more parts than a picture shows one by one."""


def twelve_points(steps: int = STEPS) -> tuple[StudyResults, dict[str, Picture]]:
    """A single rank, and three strategies on one host and on two at two and at four ranks, but for the last; and a
    picture of every point that is drawn."""
    results = series_samples.strategies()
    results = replace(results, points=results.points[:12], expected_runs=60)
    runs = {ranks: busy_run(ranks, steps, hosts=tuple(f"node-{n % 2}" for n in range(ranks))) for ranks in (1, 2, 4)}
    whole = {ranks: trace_summary(run) for ranks, run in runs.items()}
    tree = Efficiencies(global_=0.86, computation_scaling=0.98, load_balance=0.97, serialisation=0.95, transfer=0.95)
    points = tuple(replace(point, anatomy=whole[point.point.ranks], efficiencies=tree) for point in results.points)
    results = replace(results, points=points)
    limit = MOST_PARTS // MOST_DRAWN
    drawn = {ranks: picture(run, limit) for ranks, run in runs.items()}
    return results, {point.point_id: drawn[point.point.ranks] for point in drawn_points(results)}


def twelve_point_model() -> ReportModel:
    """What its report says."""
    return report_model(*twelve_points())


def wide_model() -> ReportModel:
    """Twelve numbers of ranks, as many curves: one series."""
    return report_model(samples.typical(ranks=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64), epochs=20))
