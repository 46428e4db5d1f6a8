"""The object of `--json`: its shape, and that it is always JSON."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline.records.finding import Finding
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import Interval
from paceline.records.settings import ModelSettings
from paceline.reporting.export.json_view import json_object, json_ready
from paceline.reporting.wording.finding_words import finding_words
from samples import report_samples as samples
from samples.series_samples import ALL

POINT_KEYS = {
    "ranks",
    "hosts",
    "launcher",
    "strategy",
    "settings",
    "runs",
    "epoch_s",
    "total_s",
    "samples_per_s",
    "speedup",
    "efficiency",
    "test_accuracy",
    "test_loss",
    "ledger_s",
    "median_run",
}


@pytest.mark.parametrize("name", ALL)
def test_shape(name: str) -> None:
    results = ALL[name]()
    view = json.loads(json.dumps(json_object(results, "report.html"), allow_nan=False))
    assert {"study", "folder", "report", "points", "findings"} <= set(view)
    assert view["report"] == "report.html"
    for point in view["points"]:
        assert set(point) >= POINT_KEYS
        for figure in ("epoch_s", "total_s", "samples_per_s", "speedup", "efficiency"):
            assert point[figure] is None or {"median", "low", "high", "n", "coverage"} == set(point[figure])
        for figure in ("test_accuracy", "test_loss"):
            assert point[figure] is None or {"mean", "std", "n"} == set(point[figure])
        assert point["ledger_s"] is None or tuple(point["ledger_s"]) == LEDGER_KINDS


def test_figures_are_those_of_the_results() -> None:
    results = samples.typical()
    point, view = results.points[1], json_object(results, None)["points"][1]
    assert point.epoch_s is not None and view["epoch_s"]["median"] == point.epoch_s.median
    assert view["ranks"] == 2 and view["strategy"] == "ddp" and view["launcher"] == "local" and view["hosts"] == 1
    assert math.isclose(sum(view["ledger_s"].values()), sum(value or 0 for value in (point.ledger_s or {}).values()))


def test_settings_are_flat() -> None:
    settings = json_object(samples.typical(), None)["points"][1]["settings"]
    assert settings["train.lr"] == 0.001 and settings["train.batch_global"] == 128
    assert settings["run.ranks"] == 2 and settings["data.dataset"] == "mnist" and settings["model.name"] == "cnn-690k"
    assert not any(isinstance(value, (dict, list)) for value in settings.values())


def test_model_options_stand_beside_its_name() -> None:
    results = samples.single_point()
    options: dict[str, Any] = {"layers": [32, 16], "dropout": float("inf"), "made": datetime.date(2026, 1, 2)}
    (point,) = results.points
    point = replace(point, point=replace(point.point, model=ModelSettings(name="mlp", options=options)))
    settings = json_object(replace(results, points=(point,)), None)["points"][0]["settings"]
    assert settings["model.layers"] == [32, 16]
    assert settings["model.dropout"] is None
    assert settings["model.made"] == "2026-01-02"


def test_numbers_of_numpy_and_numbers_that_are_none() -> None:
    results = samples.single_point()
    odd: Any = Interval(median=np.float64(1.5), low=float("nan"), high=np.float32("inf"), n=np.int64(5), coverage=None)  # type: ignore[arg-type]
    (point,) = results.points
    view = json_object(replace(results, points=(replace(point, total_s=odd),)), None)
    text = json.dumps(view, allow_nan=False)
    assert json.loads(text)["points"][0]["total_s"] == {
        "median": 1.5,
        "low": None,
        "high": None,
        "n": 5,
        "coverage": None,
    }


def test_findings_come_whole() -> None:
    finding = Finding(
        code="baseline-missing", severity="warning", values={"used": "2 ranks", "wanted": "1 rank"}, points=("p",)
    )
    (view,) = json_object(replace(samples.single_point(), findings=(finding,)), None)["findings"]
    assert list(view) == ["name", "severity", "summary", "cause", "remedy", "points"]
    assert (view["name"], view["severity"], view["points"]) == ("baseline-missing", "warning", ["p"])
    assert {key: view[key] for key in ("summary", "cause", "remedy")} == asdict(finding_words(finding))


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_strings_stay_strings(text: str) -> None:
    view = json.loads(json.dumps(json_object(samples.hostile(text), text)))
    assert view["study"] == view["folder"] == view["report"] == text


def test_what_json_has_stays_as_it_is_and_the_rest_is_null_or_text() -> None:
    assert json_ready({"a": (1, "x", None, True, -1.5)}) == {"a": [1, "x", None, True, -1.5]}
    assert json_ready([math.nan, np.float32("inf"), np.float32(0.5), Path("a/b")]) == [None, None, 0.5, "a/b"]
