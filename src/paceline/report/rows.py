"""results.csv and results.parquet: one row per point, plain columns, the same in both.

    epoch_s_median, epoch_s_low, epoch_s_high      a figure with its interval
    test_accuracy_mean, test_accuracy_std          a figure with its standard deviation
    ledger_comm_wait_s                             seconds of the median run, by kind of the ledger
    loss_pct_median, ...                           one factor at a time: in % of the baseline, and the factor
    steps_to_target_median, ...                    to the target accuracy; stable_epoch, _low, _high: epochs to stable
    servers, staleness, average_every, ...         what only some strategies take; empty for the others

The columns are fixed: what was not measured is empty, never missing.
"""

from __future__ import annotations

import csv
import io
import shlex
from typing import Any

from paceline import catalog
from paceline.records.results import Effect, Interval, PointResult, StudyResults
from paceline.records.study import Point
from paceline.records.trace import LEDGER_KINDS

_INTERVALS = ("epoch_s", "total_s", "samples_per_s", "speedup", "efficiency", "load_s", "queue_s")
_FACTORS = ("computation_scaling", "load_balance", "serialisation", "transfer")
_SPREADS = ("test_accuracy", "test_loss")
_EFFECTS = ("loss_pct", "accuracy_pct", "time_pct")
_TO_TARGET = {"steps": "steps_to_target", "time_s": "time_to_target_s", "rank_hours": "rank_hours_to_target"}
_WORTH = ("statistical_efficiency", "effective_speedup")
_OPTIONS = catalog.RUN_OPTIONS

# column -> its type, in the order in which they stand
COLUMNS: dict[str, type] = {
    "study": str,
    "point_id": str,
    "series": str,
    "baseline": str,
    "ranks": int,
    "hosts": int,
    "threads": int,
    "cores": int,
    "launcher": str,
    "strategy": str,
    "script": str,
    **dict.fromkeys(_OPTIONS, int),
    "device": str,
    "pin": bool,
    "dataset": str,
    "read": str,
    "model": str,
    "optimizer": str,
    "lr": float,
    "precision": str,
    "batch_global": int,
    "parameters": int,
    "runs": int,
    **{f"{name}_{part}": float for name in _INTERVALS for part in ("median", "low", "high")},
    **{f"{name}_{part}": float for name in _SPREADS for part in ("mean", "std")},
    "factor": str,
    **{f"{name}_{part}": float for name in _EFFECTS for part in ("median", "low", "high")},
    **dict.fromkeys(("stable_epoch", "stable_low", "stable_high"), int),
    "target_accuracy": float,
    **{f"{name}_{part}": float for name in _TO_TARGET.values() for part in ("median", "low", "high")},
    **{f"{name}_{part}": float for name in _WORTH for part in ("median", "low", "high")},
    "median_run": int,
    **{f"ledger_{kind.replace('-', '_')}_s": float for kind in LEDGER_KINDS},
    "message_bytes": float,
    "exposed_share": float,
    **dict.fromkeys(_FACTORS, float),
    "read_bytes": int,
    "staleness_max": int,
    "oversubscribed": bool,
    "emulated": bool,
    "failure": str,
}


def rows(results: StudyResults) -> list[dict[str, Any]]:
    """One row per point, with every column."""
    blank = dict.fromkeys(COLUMNS) | {"study": results.study.name}
    effects = {effect.point_id: _effect(effect) for effect in results.effects}
    return [
        {**blank, **_settings(point), **_figures(point), **effects.get(point.point_id, {})} for point in results.points
    ]


def csv_bytes(results: StudyResults) -> bytes:
    """The rows as CSV; numbers with all their digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(results))
    return text.getvalue().encode()


def parquet_bytes(results: StudyResults) -> bytes:
    """The rows as Parquet; a column has its type even where every value is missing."""
    import pyarrow
    from pyarrow import parquet

    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(rows(results), schema=schema), sink)
    return sink.getvalue().to_pybytes()


def _settings(row: PointResult) -> dict[str, Any]:
    point = row.point
    return {
        "point_id": row.point_id,
        "series": row.series,
        "baseline": row.baseline,
        "ranks": point.ranks,
        "hosts": point.hosts,
        "threads": point.threads,
        "cores": point.cores,
        "launcher": point.launcher,
        "strategy": point.strategy,
        **{option: point.options.get(option) for option in _OPTIONS},
        "device": point.device,
        "pin": point.pin,
        **_work(point),
    }


def _work(point: Point) -> dict[str, Any]:
    """What is trained: a script, which says no more of it, or all of the rest."""
    if point.script is not None:
        return {"script": shlex.join([point.script.path, *point.script.arguments])}
    return {
        "dataset": point.data.dataset,
        "read": point.data.read,
        "model": point.model.name,
        "optimizer": point.train.optimizer,
        "lr": point.train.lr,
        "precision": point.train.precision,
        "batch_global": point.batch_global,
    }


def _figures(row: PointResult) -> dict[str, Any]:
    figures: dict[str, Any] = {"parameters": row.parameters, "runs": row.runs, "median_run": row.median_run}
    for name in _INTERVALS:
        figures |= _interval(name, getattr(row, name))
    for name in _SPREADS:
        spread = getattr(row, name)
        figures |= {f"{name}_{part}": getattr(spread, part, None) for part in ("mean", "std")}
    figures |= _learning(row)
    for kind in LEDGER_KINDS:
        figures[f"ledger_{kind.replace('-', '_')}_s"] = (row.ledger_s or {}).get(kind)
    for name in _FACTORS:
        figures[name] = getattr(row.efficiencies, name, None)
    names = ("message_bytes", "exposed_share", "read_bytes", "staleness_max", "oversubscribed", "emulated", "failure")
    return figures | {name: getattr(row, name) for name in names}


def _effect(effect: Effect) -> dict[str, Any]:
    """What a point has in % of the baseline, which has no factor of its own."""
    figures: dict[str, Any] = {"factor": None if effect.is_baseline else effect.factor}
    for name in _EFFECTS:
        figures |= _interval(name, getattr(getattr(effect, name), "interval", None))
    return figures


def _learning(row: PointResult) -> dict[str, Any]:
    """What the curves show; empty where nothing does."""
    stable, target = (getattr(row.learning, name, None) for name in ("stable", "target"))
    figures: dict[str, Any] = {
        "stable_epoch": getattr(stable, "epoch", None),
        "stable_low": getattr(stable, "low", None),
        "stable_high": getattr(stable, "high", None),
        "target_accuracy": getattr(target, "accuracy", None),
    }
    for name, column in _TO_TARGET.items():
        figures |= _interval(column, getattr(target, name, None))
    for name in _WORTH:
        figures |= _interval(name, getattr(row.learning, name, None))
    return figures


def _interval(name: str, interval: Interval | None) -> dict[str, Any]:
    return {f"{name}_{part}": getattr(interval, part, None) for part in ("median", "low", "high")}
