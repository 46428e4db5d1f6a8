"""The finding of the contributors' guide, registered from outside, is in the results and in the report."""

from __future__ import annotations

import configparser
import importlib
from pathlib import Path

import pytest
from doc_pages import ROOT, blocks

from finished_study import finished_study
from paceline import catalog
from paceline.errors import RequestError
from paceline.rebuild import rebuild
from paceline.report.html import render
from paceline.report.json_view import json_object
from paceline.report.model import report_model
from paceline.report.text import render as render_text

PAGE = ROOT / "docs" / "contributing" / "adding-a-finding.md"


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The page's module in a folder of its own, registered as the page's entry point says."""
    (module,) = [block for block in blocks("python") if block.page == PAGE]
    (entry_points,) = [block for block in blocks("ini") if block.page == PAGE]
    assert module.file is not None
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / module.file).write_text(module.text)
    monkeypatch.syspath_prepend(tmp_path / "package")
    parser = configparser.ConfigParser()
    parser.read_string(entry_points.text)
    entries = {code: at.strip('"') for code, at in parser['project.entry-points."paceline.findings"'].items()}
    monkeypatch.setitem(catalog.ENTRIES, "finding", entries)
    monkeypatch.setattr(catalog, "names", lambda kind: tuple(catalog.ENTRIES[kind]))
    monkeypatch.setattr(catalog, "load", lambda kind, name: importlib.import_module(entries[name]))
    return entries


def test_the_example_finding_is_in_the_results_and_in_the_report(registered, tmp_path: Path, cache: Path) -> None:
    finished_study(tmp_path / "study", cache)
    results, *_ = rebuild(tmp_path / "study")
    (found,) = [finding for finding in results.findings if finding.code == "few-samples"]
    two = next(point for point in results.points if point.point.ranks == 2)
    assert (found.severity, found.points) == ("info", (two.point_id,))
    assert found.values == {"found": 1, "points": 2, "limit": 10}
    (view,) = [view for view in json_object(results, None)["findings"] if view["name"] == "few-samples"]
    model = report_model(results)
    for text in (render(model), " ".join(render_text(model, width=200).split())):
        assert all(view[part] in text for part in ("summary", "cause", "remedy"))


def test_without_it_registered_there_is_none(tmp_path: Path, cache: Path) -> None:
    finished_study(tmp_path / "study", cache)
    assert "few-samples" not in {finding.code for finding in rebuild(tmp_path / "study")[0].findings}


def test_a_finding_registered_under_another_name_than_its_code_is_refused(
    registered, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered["other"] = registered.pop("few-samples")
    finished_study(tmp_path / "study", cache)
    with pytest.raises(RequestError, match="registered as other has the code few-samples"):
        rebuild(tmp_path / "study")
