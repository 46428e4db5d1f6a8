"""Inside a run: the timeline of a point's median run, its messages, its matrix, who came last, what steps waited for.

The widest point comes first: it is where scaling is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from paceline.records.picture import Picture
from paceline.records.results import PointResult, StudyResults
from paceline.report import trace_tables
from paceline.report.choice import drawn_points
from paceline.report.facts import Fact
from paceline.report.matrix import Matrix, matrices, matrix_html
from paceline.report.table_html import table_html, text_html
from paceline.report.tables import Table
from paceline.report.timeline import Timeline, timeline, timeline_html

if TYPE_CHECKING:
    from paceline.records.counters import CpuTimes

_TOP = 10
"""Rows of a table that may have very many."""
_TOP_OF_PATH = 6
_MORE = "paceline trace --top N shows more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What the traces of a point's median run show."""

    title: str
    timeline: Timeline | None
    cpu: str
    """Explains real, user and sys; empty where they were not measured."""
    messages: Table | None
    arrivals: Table | None
    path: Table | None
    matrices: tuple[Matrix, ...]
    problems: tuple[str, ...]


def insides(
    results: StudyResults, pictures: Mapping[str, Picture], cpu_times: Mapping[str, CpuTimes]
) -> tuple[Inside, ...]:
    """One for every point that is drawn and of which anything is known, the widest first."""
    widest = sorted(drawn_points(results), key=lambda point: -point.point.ranks)
    found = (_inside(point, pictures.get(point.point_id), cpu_times.get(point.point_id)) for point in widest)
    return tuple(each for each in found if each is not None)


def _inside(point: PointResult, picture: Picture | None, cpu: CpuTimes | None) -> Inside | None:
    run = point.anatomy
    if run is None and picture is None:
        return None
    title = f"{point.label}, run {point.median_run}" if point.median_run is not None else point.label
    hosts = picture.hosts if picture else ()
    late = run is not None and any(row.last for row in run.arrivals)
    return Inside(
        title=title,
        timeline=timeline(title, picture) if picture else None,
        cpu=cpu.sentence if cpu else "",
        messages=trace_tables.message_rows(run, _TOP, _MORE) if run and run.messages else None,
        arrivals=trace_tables.arrivals_table(run, _TOP, _MORE) if run and late else None,
        path=trace_tables.path_table(run, _TOP_OF_PATH, _MORE) if run and run.path else None,
        matrices=matrices(run, hosts) if run else (),
        problems=run.problems if run else (),
    )


def insides_html(runs: tuple[Inside, ...], definitions: Iterable[Fact] = ()) -> str:
    """Every run in a block of its own, and a list to choose from; without scripts all are shown."""
    if not runs:
        return ""
    options = "".join(f"<option>{escape(run.title)}</option>" for run in runs)
    choice = f'<p class="choose"><label>Run <select data-choose>{options}</select></label></p>' if len(runs) > 1 else ""
    number, own = 0, tuple(definitions)
    blocks = []
    for run in runs:
        blocks.append(f'<div class="run" data-run>{_inside_html(run, number, own)}</div>')
        number += run.timeline is not None
    return choice + "".join(blocks)


def _inside_html(run: Inside, number: int, own: tuple[Fact, ...]) -> str:
    drawn = timeline_html(run.timeline, number, own) if run.timeline else ""
    problems = "".join(f'<p class="notice">{text_html(text)}</p>' for text in run.problems)
    cpu = f'<p class="told">{text_html(run.cpu)}</p>' if run.cpu else ""
    messages = table_html(run.messages, compact=True, definitions=own) if run.messages else ""
    both = (table for table in (run.arrivals, run.path) if table)
    pair = "".join(table_html(table, compact=True, definitions=own) for table in both)
    shades = "".join(matrix_html(matrix) for matrix in run.matrices)
    blocks = (("pair", pair), ("plots", shades))
    return f"{drawn}{problems}{cpu}{messages}" + "".join(
        f'<div class="{kind}">{body}</div>' for kind, body in blocks if body
    )
