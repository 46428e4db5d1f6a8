"""The documentation as a site: it builds strictly and offline, every link in it leads somewhere, nothing in it leaves
the machine, and what is made from the code has every verb, option, key, file and field."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import posixpath
import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from doc_pages import ROOT, prose, table

import paceline
from checks.docs_site import build_site
from paceline.cli.app import VERBS, application, main
from paceline.cli.console import Console
from paceline.metrics import metrics
from paceline.records import results, run, study
from paceline.reporting.export import json_view
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.studies.load.keys import KEYS

METRICS = [page for page in sorted((ROOT / "docs" / "metrics").glob("*.md")) if page.name != "index.md"]
STUDIES = (
    *("mnist-mpi", "mnist-batch-size", "fashion-sequential", "fashion-parameters", "flowers-sequential"),
    *("flowers-cloud", "cifar10-nodes", "fruits-gpus", "caltech256-gpus"),
)
TABLES = ROOT / "src" / "paceline" / "published" / "tables"


class Page(HTMLParser):
    """What a page asks for, where it leads, and what can be led to in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.words: list[str] = []
        self.classes: set[str] = set()
        self.named = re.findall(r"<tr>\n<td[^>]*><code>([^<]+)</code></td>", html)
        """What stands alone in the first cells of tables' rows."""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        self.links += [found[name] for name in ("href", "src", "action", "poster", "data-src") if name in found]
        self.links += [part.split()[0] for part in found.get("srcset", "").split(",") if part.strip()]
        self.classes |= set(found.get("class", "").split())

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("docs") / "site")


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Path below the site -> the page."""
    return {str(path.relative_to(site)): Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_page_of_the_folder_is_in_the_site_and_in_its_navigation(pages: dict[str, Page]) -> None:
    told = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        place = page.relative_to(ROOT / "docs")
        assert str(place.with_suffix(".html")) in pages
        assert re.search(rf"[ :]{re.escape(str(place))}$", told, re.MULTILINE), f"name {place} in nav of mkdocs.yml"


def test_every_link_and_anchor_leads_somewhere_in_the_site(site: Path, pages: dict[str, Page]) -> None:
    files = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    for name, page in pages.items():
        if name == "404.html":  # has links from the root of a server
            continue
        for link in set(page.links):
            path, _, anchor = link.partition("#")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            place = "index.html" if place == "." else place
            assert place in files, f"{name} leads to {link}"
            if anchor and place in pages:
                assert anchor in pages[place].ids, f"{name} leads to {link}"


def test_nothing_in_the_site_is_fetched_from_elsewhere(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert not [link for link in page.links if re.match(r"(\w+:)?//", link)], name
        assert "mermaid" not in page.classes, "the theme would fetch a script for it"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text("utf-8")), sheet.name


def test_the_search_knows_every_page(site: Path, pages: dict[str, Page]) -> None:
    index = (site / "search" / "search_index.js").read_text("utf-8")
    for name in pages:
        assert name == "404.html" or f'"location":"{name}"' in index, name


def words_of(verb: str) -> Iterator[list[str]]:
    yield [verb]
    yield from ([verb, name] for name in application(Console.standard())[verb] if not name.startswith("-"))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_option_is_on_the_page_of_the_command_line(
    pages: dict[str, Page], capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    page = pages["reference/command-line.html"]
    for words in words_of(verb):
        assert f"paceline-{'-'.join(words)}" in page.ids
        assert main([*words, "--help"]) == 0
        options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", capsys.readouterr().out, re.MULTILINE)
        assert len(words) == 1 or options
        assert set(options) <= set(re.findall(r"--[\w-]+", page.text)), words


def test_every_key_is_on_the_page_of_keys_and_no_other(pages: dict[str, Page]) -> None:
    page = pages["reference/study-keys.html"]
    assert set(KEYS) <= page.ids
    assert page.named == [key for keys in KEYS.values() for key in keys]


def test_every_file_and_field_of_a_run_is_on_the_page_of_records(pages: dict[str, Page]) -> None:
    named = set(pages["reference/records.html"].named)
    for folder in (RunFolder, StudyFolder):
        for name, member in vars(folder).items():
            path = getattr(folder(Path("X")), name).relative_to("X") if isinstance(member, property) else ""
            assert not path or str(path) in named, name
    for record in (run.Manifest, run.RankReport, run.RunResult, run.Machine, study.Point, results.PointResult):
        for field in dataclasses.fields(record):
            assert field.name in named, f"{record.__name__}.{field.name}"


def test_every_public_name_is_on_the_page_of_python(pages: dict[str, Page]) -> None:
    text = pages["reference/python.html"].text
    assert all(f"paceline.{name}" in text for name in paceline.__all__ if name != "__version__")
    told = set(re.findall(r"\w+", text))
    assert set(inspect.signature(paceline.study).parameters) <= told
    assert {name for name in dir(paceline.Results) if not name.startswith("_")} <= told


def test_every_key_of_the_json_is_on_its_page(pages: dict[str, Page]) -> None:
    from samples import report_samples

    view = json_view.json_object(report_samples.typical(), None)
    assert {*view, *view["points"][0]} <= set(pages["reference/json.html"].named)


@pytest.mark.parametrize("page", METRICS, ids=lambda page: page.stem)
def test_every_metric_has_definition_formula_cause_and_remedy(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- metrics -->\n") == 1, "name, unit, definition and formula come from the registry"
    assert [entry.name for entry in metrics() if entry.page == f"metrics/{page.name}"]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Cause", "Remedy", "Where it is"]
    assert f"({page.name})" in (page.parent / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", STUDIES)
def test_every_published_study_has_a_page_with_its_figures_and_questions(pages: dict[str, Page], name: str) -> None:
    page = ROOT / "docs" / "published" / f"{name}.md"
    rows = table(prose(page))
    for file in sorted(TABLES.glob(f"{name}*.csv")):
        with file.open(newline="") as lines:
            for published in [*csv.reader(lines)][1:]:
                assert [cell or "–" for cell in published] in rows, f"{file.name}: {published}"
    text = page.read_text(encoding="utf-8")
    asked = [question["name"] for question in tomllib.loads((TABLES / f"{name}.toml").read_text())["questions"]]
    assert re.findall(r"^\| \*\*([\w-]+)\*\* \|", text, re.MULTILINE) == asked
    assert re.search(r"<!-- results -->.+<!-- /results -->", text, re.DOTALL)
    assert re.search(rf'name = "{name}"', pages[f"published/{name}.html"].text), "its file is not shown"
