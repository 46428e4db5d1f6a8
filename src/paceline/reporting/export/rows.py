"""results.csv and results.parquet: one row per point, plain columns, the same in both.

    epoch_s_median, epoch_s_low, epoch_s_high      a metric with its interval
    test_accuracy_mean, test_accuracy_std          a metric with its standard deviation
    servers, staleness, average_every, ...         options of some strategies; empty for the others

The columns are fixed: what was not measured is empty, never missing.
"""

from __future__ import annotations

import csv
import io
import shlex
from typing import Any

from paceline import catalog, metrics
from paceline.records.results import Effect, PointResult, StudyResults
from paceline.records.study import Point

_OPTIONS = catalog.RUN_OPTIONS

_SETTINGS: dict[str, type] = {
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
}
_STATES: dict[str, type] = {"oversubscribed": bool, "emulated": bool, "failure": str}


def columns() -> dict[str, type]:
    """Column -> its type, in the order of the file: settings, metrics, and what has to be known about the runs."""
    figures = {name: entry.type for entry in metrics.POINT_METRICS for name in entry.columns}
    return _SETTINGS | figures | _STATES


def rows(results: StudyResults) -> list[dict[str, Any]]:
    """One row per point, with every column."""
    blank = dict.fromkeys(columns()) | {"study": results.study.name}
    effects = {effect.point_id: _figures(effect, "effect") for effect in results.effects}
    return [
        {**blank, **_settings(point), **_figures(point, "point"), **effects.get(point.point_id, {}), **_states(point)}
        for point in results.points
    ]


def csv_bytes(results: StudyResults) -> bytes:
    """The rows as CSV; numbers with all their digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(columns()), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(results))
    return text.getvalue().encode()


def parquet_bytes(results: StudyResults) -> bytes:
    """The rows as Parquet; a column has its type even where every value is missing."""
    import pyarrow
    from pyarrow import parquet

    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns().items()])
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


def _figures(result: PointResult | Effect, record: str) -> dict[str, Any]:
    """The columns of all metrics that this record has."""
    found = (entry.row(result) for entry in metrics.POINT_METRICS if entry.record == record)
    return {name: value for row in found for name, value in row.items()}


def _states(row: PointResult) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _STATES}
