"""The registry of metrics: one entry and its page make a column of every table, file and list."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pyarrow
import pytest
from pyarrow import parquet

from paceline import metrics
from paceline.metrics import PointMetric
from paceline.metrics.metric import INTERVAL, Place
from paceline.records.results import Interval, PointResult
from paceline.reporting.export.json_view import json_object
from paceline.reporting.export.rows import csv_bytes, parquet_bytes
from paceline.reporting.html import report_page
from paceline.reporting.model import report_model
from paceline.reporting.text import report_text
from samples import report_samples as samples
from samples.series_samples import ALL

MADE = Path(__file__).parents[2] / "docs" / "made"


def test_the_registry_is_light() -> None:
    code = "import sys, paceline.metrics; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "scipy", "jinja2", "numpy", "pyarrow", "rich"} & set(loaded)


def test_names_keys_and_columns_are_unique() -> None:
    names = [entry.name for entry in metrics.metrics()]
    columns = [column for entry in metrics.POINT_METRICS for column in entry.columns]
    assert len(set(names)) == len(names) and len(set(columns)) == len(columns)
    assert metrics.metrics_by_heading()["epoch time (ms)"].name == "epoch time"
    assert metrics.metrics_by_heading()["time (s)"].name == "time to the target"


@pytest.mark.parametrize("name", ALL)
def test_json_has_every_metric_under_its_key_or_its_path(name: str) -> None:
    results = ALL[name]()
    for point, shown in zip(results.points, json_object(results, None)["points"], strict=True):
        for entry in metrics.POINT_METRICS:
            if entry.record == "effect":
                continue
            found = shown
            for key in [entry.key] if entry.in_json else str(entry.source).split("."):
                found = found.get(key) if found else None
            value = entry.value(point)
            assert (found is None) == (value is None) or value != value, entry.name


def _doubled(point: PointResult) -> Interval | None:
    """Samples per second, twice."""
    rate = point.samples_per_s
    return rate and Interval(
        median=2 * rate.median, low=2 * rate.low, high=2 * rate.high, n=rate.n, coverage=rate.coverage
    )


ADDED = PointMetric(
    name="doubled rate",
    key="doubled_per_s",
    unit="samples/s",
    source=_doubled,
    parts=INTERVAL,
    digits=4,
    place=Place("results", before="speedup"),
    definition="Samples per second, counted twice.",
    formula="2 × samples/s",
    page="metrics/doubled-rate.md",
)


def test_one_entry_adds_a_column_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    results = samples.two_points()
    before = json_object(results, None)["points"][1]
    monkeypatch.setattr(metrics, "POINT_METRICS", (*metrics.POINT_METRICS, ADDED))
    model, value = report_model(results), _doubled(results.points[1])
    assert value is not None

    columns = list(model.figures.columns)
    assert columns[columns.index("samples/s") + 1] == "doubled rate"
    cell = model.figures.rows[1][columns.index("doubled rate")]
    assert (cell.value, cell.text) == (value.median, "4,571 [4,517, 4,610]")
    assert "doubled rate" in report_text.render(model, width=200, color=False)
    page = report_page.render(model)
    assert '<th scope="col">doubled rate</th>' in page
    assert '<dt>doubled rate</dt><dd>Samples per second, counted twice. <span class="formula">= 2 × samples/s' in page

    after = json_object(results, None)["points"][1]
    assert after == before | {"doubled_per_s": asdict(value)}
    last = list(csv.DictReader(io.StringIO(csv_bytes(results).decode())))[-1]
    assert float(last["doubled_per_s_median"]) == value.median and float(last["doubled_per_s_high"]) == value.high
    table = parquet.read_table(pyarrow.BufferReader(parquet_bytes(results)))
    assert table["doubled_per_s_low"].to_pylist()[-1] == value.low
    assert table.schema.field("doubled_per_s_low").type == pyarrow.float64()


def test_one_entry_is_in_the_glossary_the_reference_and_on_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(MADE))
    import hooks  # pyright: ignore[reportMissingImports]

    def shown(markdown: str, page: str) -> str:
        at = SimpleNamespace(file=SimpleNamespace(src_uri=page))
        return hooks.on_page_markdown(markdown, page=at, config=None, files=None)

    monkeypatch.setattr(metrics, "POINT_METRICS", (*metrics.POINT_METRICS, ADDED))
    own = shown("# Doubled rate\n\n<!-- metrics -->\n", ADDED.page)
    assert "| **doubled rate** | samples/s | Samples per second, counted twice. | `doubled_per_s_median`" in own
    assert "## Formula\n\n```text\ndoubled rate  =  2 × samples/s\n```" in own
    entry = "- **doubled rate** (samples/s): Samples per second, counted twice."
    assert entry in shown("<!-- made: metric_glossary -->", "glossary.md")
    assert "`doubled_per_s_low`" in shown("<!-- made: metric_columns -->", "run-folder.md")
    assert "| `doubled_per_s` |" in shown("<!-- made: metric_keys -->", "quickstart.md")
    assert "| `doubled_per_s` |" in shown("<!-- made: json_page -->", "reference/json.md")
    assert "[doubled rate](doubled-rate.md) | `doubled rate` |" in shown(
        "<!-- made: metric_words -->", "metrics/index.md"
    )
