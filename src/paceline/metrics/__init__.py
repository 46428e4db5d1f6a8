"""Every metric: its name, unit, definition, formula and page, and how a result yields it.

    metric       the records Metric and PointMetric
    scaling  learning  median_run      metrics of a point
    runs         figures of one run, of a phase, of a pair of points
    terms        words of tables and plots

Tables in text and HTML, results.csv, results.parquet, --json, the glossary and docs/metrics are made from these
records: a new column is one entry and its page.
"""

from __future__ import annotations

from paceline.metrics.learning_metrics import LEARNING
from paceline.metrics.median_run_metrics import MEDIAN_RUN
from paceline.metrics.metric import Metric, PointMetric
from paceline.metrics.run_metrics import RUN_METRICS
from paceline.metrics.scaling_metrics import SCALING
from paceline.metrics.terms import TERMS

POINT_METRICS: tuple[PointMetric, ...] = (*SCALING, *LEARNING, *MEDIAN_RUN)
"""In the order of the columns of results.csv."""
OTHER_METRICS: tuple[Metric, ...] = (*RUN_METRICS, *TERMS)


def metrics() -> tuple[Metric, ...]:
    """All entries of the registry."""
    return (*POINT_METRICS, *OTHER_METRICS)


def metric(name: str) -> Metric:
    """The entry with this name."""
    return next(entry for entry in metrics() if entry.name == name)


def point_metric(name: str) -> PointMetric:
    """The metric of a point with this name."""
    return next(entry for entry in POINT_METRICS if entry.name == name)


def metrics_by_heading() -> dict[str, Metric]:
    """Heading of a column -> its entry; a name stands for its own entry first."""
    entries = metrics()
    headings = {heading: entry for entry in reversed(entries) for heading in entry.headings}
    return headings | {entry.name: entry for entry in entries}
