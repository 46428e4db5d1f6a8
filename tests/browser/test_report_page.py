"""The report in a real browser: every plot drawn, no script error, nothing asked for, in every light and width."""

from __future__ import annotations

from pathlib import Path

from chromium import chromium, inspected

from paceline.records.results import StudyResults
from paceline.reporting.figures.report_figures import figures
from paceline.reporting.html import report_page
from paceline.reporting.model import report_model
from samples import report_samples as samples
from samples import series_samples
from samples.series_samples import ALL

DESKTOP, PHONE = 1280, 390
DARK = "--blink-settings=preferredColorScheme=0"
INK, DARK_INK = "rgb(23, 32, 43)", "rgb(232, 237, 242)"
SHOWN = (
    ("typical", DESKTOP),
    ("typical", PHONE),
    ("many-points", PHONE),
    ("oversubscribed", DESKTOP),
    ("single-point", PHONE),
    ("diverged", DESKTOP),
    ("nothing-finished", PHONE),
    ("strategies", DESKTOP),
    ("strategies", PHONE),
    ("rivals", PHONE),
    ("reads", DESKTOP),
)


def write_page(results: StudyResults, path: Path) -> set[str]:
    """Write the page of results; returns the names of its plots."""
    model = report_model(results)
    path.write_bytes(report_page.render(model).encode())
    return set(figures(model))


def test_every_plot_is_drawn_and_fits_and_nothing_fails(tmp_path: Path) -> None:
    names = {name: write_page(ALL[name](), tmp_path / f"{name}.html") for name, _ in SHOWN}
    pages = inspected(tmp_path, [(f"{name}.html", width) for name, width in SHOWN])
    for (name, _), page in zip(SHOWN, pages, strict=True):
        assert "errors" not in page, (name, page["errors"])
        assert page["plots"] == page["drawn"] == str(len(names[name]))
        assert set(page["figures"]) == names[name]
        for figure in page["figures"].values():
            assert figure["drawings"] and figure["marks"], (name, page["figures"])
            assert 0 < figure["drawn"] <= figure["width"], (name, page["figures"])
            assert figure["ink"] == INK
        assert page["wide"] <= page["room"], f"{name} scrolls sideways"
        assert page["requests"] == 0


def test_hostile_names_do_not_run(tmp_path: Path) -> None:
    """In every field of the results: the string that ends a script, and all strings at once."""
    texts = [samples.HOSTILE[0], " ".join(samples.HOSTILE)]
    pages = [made(text) for made in (samples.hostile, series_samples.hostile) for text in texts]
    names = [write_page(page, tmp_path / f"{n}.html") for n, page in enumerate(pages)]
    for page, expected in zip(
        inspected(tmp_path, [(f"{n}.html", PHONE) for n in range(len(pages))]), names, strict=True
    ):
        assert "owned" not in page and "errors" not in page
        assert set(page["figures"]) == expected and page["wide"] <= page["room"] and page["requests"] == 0


def test_the_policy_holds_where_escaping_would_not(tmp_path: Path) -> None:
    """Elements put into the finished page by hand: refused, and said to be."""
    write_page(samples.nothing_finished(), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    script = "document.documentElement.dataset.owned = 1"
    for name, injected in {
        "script": f"<script>{script}</script>",
        "handler": f"<svg onload='{script}'></svg>",
        "request": "<img src='other.png'><link rel=stylesheet href='other.css'>",
    }.items():
        # After the page's own script, which does the reporting.
        head, body = text.rsplit("</body>", 1)
        (tmp_path / f"{name}.html").write_text(f"{head}{injected}</body>{body}")
    pages = inspected(tmp_path, [(f"{name}.html", DESKTOP) for name in ("script", "handler", "request")])
    for page, directive in zip(pages, ("script-src", "script-src", "img-src"), strict=True):
        assert "owned" not in page
        assert directive in page["errors"]


def test_plots_follow_a_dark_screen(tmp_path: Path) -> None:
    write_page(samples.two_points(), tmp_path / "report.html")
    (page,) = inspected(tmp_path, [("report.html", DESKTOP)], DARK)
    assert "errors" not in page and page["figures"]
    assert {figure["ink"] for figure in page["figures"].values()} == {DARK_INK}


def test_it_prints(tmp_path: Path) -> None:
    path, paper = tmp_path / "report.html", tmp_path / "report.pdf"
    write_page(samples.typical(), path)
    chromium(path, f"--print-to-pdf={paper}", "--no-pdf-header-footer", DARK)
    data = paper.read_bytes()
    assert data.startswith(b"%PDF") and 3 <= data.count(b"/Type /Page\n") <= 9
