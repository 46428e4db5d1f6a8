"""The page as text: complete in itself, and closed to whatever a name contains."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from paceline.errors import StorageError
from paceline.reporting.figures.report_figures import figures
from paceline.reporting.html import page as page_module
from paceline.reporting.html import report_page
from paceline.reporting.html.page import embedded_json
from paceline.reporting.model import report_model
from samples import report_samples as samples
from samples import series_samples
from samples.series_samples import ALL

MOST_BYTES = 6_000_000


class Page(HTMLParser):
    """Elements, attributes, scripts and visible text of a page, as a browser's parser sees them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.text = ""
        self._script: str | None = None
        self._type: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self._script, self._type = "", dict(attrs).get("type")

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._script is not None:
            self.scripts.append((self._type, self._script))
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self._script += data
        else:
            self.text += data

    @property
    def policy(self) -> str:
        return next(a["content"] or "" for tag, a in self.elements if a.get("http-equiv") == "Content-Security-Policy")


@pytest.fixture(scope="module")
def typical() -> Page:
    return Page(report_page.render(report_model(samples.typical())))


@pytest.mark.parametrize("name", ALL)
def test_every_sort_of_results_has_a_page(name: str) -> None:
    results = ALL[name]()
    model = report_model(results)
    text = report_page.render(model)
    page = Page(text)
    assert len(text.encode()) < MOST_BYTES
    shown = re.sub(r"\s+", " ", page.text)
    assert model.verdict in shown
    drawn = {a["data-figure"] for _, a in page.elements if "data-figure" in a}
    assert drawn == set(figures(model))
    assert "None" not in shown and "nan" not in shown.lower().split()


def test_the_page_asks_for_nothing(typical: Page) -> None:
    assert "default-src 'none'" in typical.policy and "unsafe-eval" not in typical.policy
    assert not {tag for tag, _ in typical.elements} & {"iframe", "object", "embed", "img", "base", "form"}
    for tag, attributes in typical.elements:
        assert "src" not in attributes, tag
        target = attributes.get("href")
        assert target is None or target.startswith("#") or target == "data:,", target


def test_only_the_named_scripts_may_run(typical: Page) -> None:
    executed = [script for kind, script in typical.scripts if kind is None]
    digests = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in executed}
    allowed = re.search(r"script-src ([^;]*);", typical.policy)
    assert allowed is not None
    assert set(allowed[1].split()) == {f"'sha256-{digest}'" for digest in digests}
    assert len(executed) == 2


def test_every_figure_and_table_is_within_reach(typical: Page) -> None:
    ids = {a["id"] for _, a in typical.elements if "id" in a}
    links = {(a["href"] or "")[1:] for tag, a in typical.elements if tag == "a"}
    assert links <= ids
    assert {"results", "learning", "speed", "ranks", "machine", "settings", "repeat", "protocol", "definitions"} <= ids
    assert all(a.get("aria-label") for _, a in typical.elements if "data-figure" in a)
    scrolling = [a for _, a in typical.elements if a.get("class") == "scroll"]
    assert scrolling and all(a.get("tabindex") == "0" and a.get("aria-label") for a in scrolling)


def test_zero_columns_stay_in_the_page(typical: Page) -> None:
    assert "checkpoint" in typical.text


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_strings_are_text_and_nothing_else(text: str) -> None:
    plain = "plain\nplain" if "\n" in text else "plain"  # the first line of a failure is its summary
    clean = Page(report_page.render(report_model(samples.hostile(plain))))
    model = report_model(samples.hostile(text))
    raw = report_page.render(model)
    page = Page(raw)
    raw.encode()  # lone surrogates would end here
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in clean.elements]
    assert [sorted(a) for _, a in page.elements] == [sorted(a) for _, a in clean.elements]
    assert [kind for kind, _ in page.scripts] == [kind for kind, _ in clean.scripts]
    assert [s for kind, s in page.scripts if kind is None] == [s for kind, s in clean.scripts if kind is None]
    # Model strings are printable; the page shows them as they are, up to the space before a sign.
    assert model.question in page.text
    assert "\x1b" not in raw and "\x00" not in raw


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_names_of_series_are_text_and_nothing_else(text: str) -> None:
    clean = Page(report_page.render(report_model(series_samples.hostile("plain"))))
    page = Page(report_page.render(report_model(series_samples.hostile(text))))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in clean.elements]
    assert [sorted(a) for _, a in page.elements] == [sorted(a) for _, a in clean.elements]
    assert [s for kind, s in page.scripts if kind is None] == [s for kind, s in clean.scripts if kind is None]


def test_embedded_json_cannot_end_its_element() -> None:
    value = {"a": ["</script><!--", "& < > \u2028\u2029", '"']}
    text = embedded_json(value)
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == value
    with pytest.raises(ValueError):
        embedded_json(float("nan"))


def test_a_script_cannot_end_its_element(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "_plotly", lambda: 'x = "</script><!--</SCRIPT>";\r\ny = 1;')
    page = Page(report_page.render(report_model(samples.nothing_finished())))
    assert page.scripts[-1][1] == 'x = "<\\/script><\\!--<\\/SCRIPT>";\ny = 1;'


def test_a_missing_script_is_said_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StorageError) as caught:
        report_page.render(report_model(samples.typical()))
    assert "plotly" in caught.value.what and caught.value.next


def test_a_long_study_on_many_ranks_stays_within_bounds() -> None:
    results = samples.typical(ranks=(1, 2, 4, 8, 16, 32, 64, 128), repeats=9, epochs=400)
    assert len(report_page.render(report_model(results)).encode()) < MOST_BYTES


def test_pressing_findings_are_on_the_first_screen() -> None:
    page = report_page.render(report_model(samples.oversubscribed()))
    assert page.index('class="notice warning"') < page.index("data-figure=")
    assert 'class="notice ' not in report_page.render(report_model(samples.typical()))
