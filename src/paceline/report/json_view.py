"""StudyResults as the one object that `--json` prints. What is not a number is null."""

from __future__ import annotations

from dataclasses import asdict
from numbers import Real
from typing import Any

from paceline.records.anatomy import Efficiencies
from paceline.records.finding import Finding
from paceline.records.learning import Learning
from paceline.records.results import PointResult, StudyResults
from paceline.records.trace import LEDGER_KINDS
from paceline.report.learning_words import called
from paceline.report.settings import point_settings
from paceline.report.wording.choices import choice_object
from paceline.report.wording.findings import finding_words
from paceline.report.wording.notes import note_text
from paceline.units import finite


def json_object(
    results: StudyResults, report_path: str | None, published: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The results as JSON-ready values, ledger kinds complete, NaN and infinities as None.

    `published` is the comparison with a published study.
    """
    view = {
        "study": results.study.name,
        "folder": results.folder,
        "report": report_path,
        "points": [_point(point) for point in results.points],
        "findings": [_finding(finding) for finding in results.findings],
        "runs": sum(point.runs for point in results.points),
        "expected_runs": results.expected_runs,
        "baseline": results.baseline,
        "comparisons": [asdict(comparison) for comparison in results.comparisons],
        "learning": _lesson(results),
        "effects": [asdict(effect) for effect in results.effects],
        "not_run": [asdict(left_out) for left_out in results.not_run],
        "laws": [asdict(laws) for laws in results.laws],
        "published": published,
        "commit": results.commit,
    }
    return json_ready(view)


def _point(result: PointResult) -> dict[str, Any]:
    point = result.point
    return {
        "point": result.point_id,
        "label": result.label,
        "series": result.series,
        "baseline": result.baseline,
        "ranks": point.ranks,
        "servers": point.servers,
        "hosts": point.hosts,
        "launcher": point.launcher,
        "strategy": point.strategy,
        "settings": point_settings(point),
        "chosen": [choice_object(choice) for choice in point.chosen],
        "runs": result.runs,
        "epoch_s": _figure(result.epoch_s),
        "total_s": _figure(result.total_s),
        "samples_per_s": _figure(result.samples_per_s),
        "speedup": _figure(result.speedup),
        "efficiency": _figure(result.efficiency),
        "load_s": _figure(result.load_s),
        "test_accuracy": _figure(result.test_accuracy),
        "test_loss": _figure(result.test_loss),
        "ledger_s": {kind: result.ledger_s.get(kind) for kind in LEDGER_KINDS} if result.ledger_s else None,
        "rank_ledgers_s": [{kind: ledger.get(kind) for kind in LEDGER_KINDS} for ledger in result.rank_ledgers_s],
        "median_run": result.median_run,
        "parameters": result.parameters,
        "message_bytes": result.message_bytes,
        "exposed_share": result.exposed_share,
        "efficiencies": _tree(result.efficiencies),
        "read_bytes": result.read_bytes,
        "queue_s": _figure(result.queue_s),
        "staleness_max": result.staleness_max,
        "oversubscribed": result.oversubscribed,
        "emulated": result.emulated,
        "failure": result.failure,
        "learning": _learning(result.learning),
        "phases": [asdict(phase) for phase in result.phases],
        "features": _figure(result.features),
        "network": result.network,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    words = asdict(finding_words(finding))
    return {"name": finding.code, "severity": finding.severity, **words, "points": finding.points}


def _learning(learning: Learning | None) -> dict[str, Any] | None:
    """What the curves of a point show; its faults in words."""
    if learning is None:
        return None
    faults = [
        {"name": fault.name, "run": fault.run, "epoch": fault.epoch, "text": note_text(fault.why)}
        for fault in learning.faults
    ]
    return asdict(learning) | {"faults": faults}


def _lesson(results: StudyResults) -> dict[str, Any]:
    """What the study as a whole shows about learning, with what each accuracy is called."""
    lesson = results.lesson
    checks = [asdict(check) | {"called": called(check)} for check in lesson.checks]
    return asdict(lesson) | {"checks": checks}


def _figure(figure: Any) -> dict[str, Any] | None:
    return None if figure is None else asdict(figure)


def _tree(found: Efficiencies | None) -> dict[str, Any] | None:
    """The efficiency tree; `global` is no name in Python."""
    return None if found is None else {name.rstrip("_"): value for name, value in asdict(found).items()}


def json_ready(value: Any) -> Any:
    """The same as JSON has it: null where a number is infinite or not one, text for what JSON has no form for."""
    if isinstance(value, dict):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Real):
        return finite(float(value))
    # Paths, and a model's own option may be a date or a time, which TOML has and JSON has not.
    return str(value)
