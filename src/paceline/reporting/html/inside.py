"""Views of median runs: timeline, messages, communication matrix, stragglers, critical path.

The point with the most ranks is first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paceline.records.results import PointResult, StudyResults
from paceline.records.run_picture import Picture
from paceline.reporting.html.matrix_html import Matrix, matrices
from paceline.reporting.html.timeline_html import Timeline, timeline
from paceline.reporting.tables import trace_tables
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.wording.choice import drawn_points

if TYPE_CHECKING:
    from paceline.records.counters import CpuTimes

_TOP = 10
"""Rows of a table that may have very many."""
_TOP_OF_PATH = 6
_MORE = "paceline trace --top N shows more"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """The traces of a point's median run as tables and pictures."""

    title: str
    timeline: Timeline | None
    cpu: str
    """Explains real, user and sys; empty where they were not measured."""
    messages: Table | None
    arrivals: Table | None
    path: Table | None
    matrices: tuple[Matrix, ...]
    problems: tuple[str, ...]


def run_views(
    results: StudyResults, pictures: Mapping[str, Picture], cpu_times: Mapping[str, CpuTimes]
) -> tuple[RunView, ...]:
    """A view of every plotted point that has traces, the one with the most ranks first."""
    widest = sorted(drawn_points(results), key=lambda point: -point.point.ranks)
    found = (_inside(point, pictures.get(point.point_id), cpu_times.get(point.point_id)) for point in widest)
    return tuple(each for each in found if each is not None)


def _inside(point: PointResult, picture: Picture | None, cpu: CpuTimes | None) -> RunView | None:
    run = point.anatomy
    if run is None and picture is None:
        return None
    title = f"{point.label}, run {point.median_run}" if point.median_run is not None else point.label
    hosts = picture.hosts if picture else ()
    late = run is not None and any(row.last for row in run.arrivals)
    return RunView(
        title=title,
        timeline=timeline(title, picture) if picture else None,
        cpu=cpu.sentence if cpu else "",
        messages=trace_tables.message_rows(run, _TOP, _MORE) if run and run.messages else None,
        arrivals=trace_tables.arrivals_table(run, _TOP, _MORE) if run and late else None,
        path=trace_tables.path_table(run, _TOP_OF_PATH, _MORE) if run and run.path else None,
        matrices=matrices(run, hosts) if run else (),
        problems=run.problems if run else (),
    )
