"""A study folder -> its results, tables and report, which may be deleted and come back.

folder ─ collect ─▶ runs ─ analyze ─▶ StudyResults, with what was published ─ report ─▶ results.csv, report.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from paceline.analyze.run.cpu_time import cpu_times
from paceline.analyze.run.efficiencies import explained
from paceline.analyze.run.ledger import rank_lines
from paceline.analyze.run.messages import Messages
from paceline.analyze.study.study_results import study_results
from paceline.analyze.views.picture import MOST_PARTS, picture
from paceline.errors import FolderError
from paceline.published.beside import published_comparison
from paceline.published.folder_copy import read_copy
from paceline.published.matching.updates import asks_for_updates, update_intervals
from paceline.published.records import PublishedComparison
from paceline.published.section.published_rows import published_csv
from paceline.published.section.published_section import published_section
from paceline.records.counters import CpuTimes
from paceline.records.results import RunView, StudyResults
from paceline.records.trace_summary import RunTrace
from paceline.reporting.export import rows
from paceline.reporting.html import report_page
from paceline.reporting.model import ReportModel, report_model
from paceline.reporting.wording.choice import MOST_DRAWN
from paceline.storage.codec import write_atomically
from paceline.storage.folder import StudyFolder
from paceline.storage.run_counters import read_counters
from paceline.studies.folder import collect
from paceline.studies.folder.collect import Collected, FinishedRun


def rebuild(
    folder: Path,
    *,
    say: Callable[[str], None] = lambda text: None,
    target: float | None = None,
    margin: float | None = None,
) -> tuple[StudyResults, ReportModel]:
    """The results of a study folder, and what to report of them; writes the tables and the report there.

    Where the folder cannot be written to, that is said and the results come back all the same.
    """
    collected = collect.collect(folder)
    results = _analyzed(folder, collected, target, margin)
    views = {point.point_id: point.view for point in results.points if point.view}
    pictures = {point_id: view.picture for point_id, view in views.items() if view.picture is not None}
    used = {point_id: view.cpu for point_id, view in views.items() if view.cpu is not None}
    compared = _compared(folder, results, collected, used)
    trees = {point.point_id: point.efficiencies for point in results.points if point.efficiencies}
    lost_to = {point_id: explained(tree) for point_id, tree in trees.items()}
    model = report_model(
        results, pictures, used, lost_to, published_section(compared, results) if compared is not None else None
    )
    files = StudyFolder(folder)
    try:
        write_atomically(files.results_csv, rows.csv_bytes(results))
        write_atomically(files.results_parquet, rows.parquet_bytes(results))
        if compared is not None:
            write_atomically(files.published_csv, published_csv(compared))
        write_atomically(files.report, report_page.render(model).encode())
    except FolderError as error:
        say(f"The report and the tables were not written: {error.what}")
    return results, model


def _compared(
    folder: Path, results: StudyResults, collected: Collected, cpu_times: Mapping[str, CpuTimes]
) -> PublishedComparison | None:
    """The results beside the published study that the folder has a copy of; None if it has none."""
    copy = read_copy(StudyFolder(folder))
    if copy is None:
        return None
    runs = [run.result for run in collected.runs] if asks_for_updates(copy.published, collected.study.name) else []
    updates = update_intervals(runs, lambda result: collect.traces(collected.run_of(result)))
    return published_comparison(copy.published, results, cpu_times, updates, copy.overridden)


def _analyzed(folder: Path, collected: Collected, target: float | None, margin: float | None) -> StudyResults:
    """The results of a study, with what is drawn of the points' median runs."""
    # The points that are drawn share a page, and so its size.
    limit = MOST_PARTS // max(1, min(len(collected.points), MOST_DRAWN))
    return study_results(
        collected.study,
        str(folder),
        collected.points,
        [run.result for run in collected.runs],
        traces=lambda result: collect.traces(collected.run_of(result)),
        view=lambda result, found, sides: _view(collected.run_of(result), found, sides, limit),
        machine=collected.machine,
        machines=[run.machine for run in collected.runs],
        expected_runs=len(collected.points) * collected.study.run.repeats,
        failures=collected.failures,
        commit=collected.commit,
        commits=[run.manifest.commit for run in collected.runs],
        target=target,
        margin=margin,
        not_run=collected.not_run,
    )


def _view(run: FinishedRun, found: RunTrace, sides: Sequence[Messages], limit: int) -> RunView:
    """A run as a picture, and what its processes used; `sides` are its messages."""
    # On a GPU the host's spans show when work was queued, not when it ran.
    lines = rank_lines(found, sides) if run.result.device != "cuda" else ()
    times = cpu_times(
        read_counters(run.folder),
        ranks=found.ranks,
        started_at_ns=found.started_at_ns,
        ended_at_ns=found.ended_at_ns,
        lines=lines,
    )
    return RunView(picture=picture(found, limit, lines, sides) if lines else None, cpu=times)
