"""StudyResults as the one object that `--json` prints. What is not a number is null."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from numbers import Real
from typing import Any

from paceline import metrics
from paceline.records.finding import Finding
from paceline.records.learning import Learning
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import PointResult, StudyResults
from paceline.records.trace_summary import Efficiencies
from paceline.reporting.wording.choice_words import choice_object
from paceline.reporting.wording.finding_words import finding_words
from paceline.reporting.wording.learning_words import check_outcome
from paceline.reporting.wording.note_words import note_text
from paceline.reporting.wording.settings_list import point_settings
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
        **{entry.key: _figure(entry.value(result)) for entry in metrics.POINT_METRICS if entry.in_json},
        "ledger_s": {kind: result.ledger_s.get(kind) for kind in LEDGER_KINDS} if result.ledger_s else None,
        "rank_ledgers_s": [{kind: ledger.get(kind) for kind in LEDGER_KINDS} for ledger in result.rank_ledgers_s],
        "efficiencies": _tree(result.efficiencies),
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
    checks = [asdict(check) | {"called": check_outcome(check)} for check in lesson.checks]
    return asdict(lesson) | {"checks": checks}


def _figure(figure: Any) -> Any:
    return asdict(figure) if is_dataclass(figure) and not isinstance(figure, type) else figure


def _tree(found: Efficiencies | None) -> dict[str, Any] | None:
    """The efficiency tree; `global` is no name in Python."""
    return None if found is None else {name.rstrip("_"): value for name, value in asdict(found).items()}


def json_ready(value: Any) -> Any:
    """The value as JSON types: null for infinite and NaN, text for other types."""
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
