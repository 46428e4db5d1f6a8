"""A report of twelve points with traces, in one browser for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from devtools import Browser, browser

from paceline.reporting.html import report_page
from paceline.reporting.model import ReportModel
from samples.twelve_points import twelve_point_model


@pytest.fixture(scope="session")
def page() -> Iterator[Browser]:
    """A browser without a page."""
    with browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def model() -> ReportModel:
    """What the report says."""
    return twelve_point_model()


@pytest.fixture(scope="session")
def report(model: ReportModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report as a file."""
    path = tmp_path_factory.mktemp("twelve") / "report.html"
    path.write_bytes(report_page.render(model).encode())
    return path


@pytest.fixture
def opened(page: Browser, report: Path) -> Browser:
    """The report at the top, with nothing chosen, zoomed or remembered."""
    page.open(report, width=1280, height=800)
    if page.value("Boolean(localStorage.length)"):
        page.value("localStorage.clear()")
        page.open(report, width=1280, height=800)
    return page
