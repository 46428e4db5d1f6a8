"""Pages of published studies say what is smaller at the small size, no more and no less, and name every command."""

from __future__ import annotations

import re
import tomllib

import pytest
from doc_pages import ROOT, names, section, shell_lines, table

from paceline.studies.load.sizes import _flat
from paceline.units import count_text

PUBLISHED = ROOT / "docs" / "published"
SHIPPED = ROOT / "src" / "paceline" / "studies" / "shipped"
PAGES = sorted(path.stem for path in PUBLISHED.glob("*.md") if path.stem not in ("index", "questions"))
WORDS = (
    (("data.train_samples",), r"less data"),
    (("data.test_samples",), r"fewer test images"),
    (("data.image_size", "model.image_size"), r"smaller images"),
    (("model.name",), r"another network"),
    (("train.epochs",), r"fewer epochs"),
    (("train.checkpoint_every",), r"checkpoints every"),
    (("finetune.epochs",), r"less fine-tuning"),
    (("run.hosts",), r"one host|ranks of one machine"),
    (("run.ranks",), r"(fewer|other numbers of) ranks|ranks of one machine"),
    (("run.threads",), r"fewer threads|threads of a rank"),
    (("run.servers",), r"(fewer|of) servers"),
    (("run.server_threads",), r"threads of a server"),
    (("run.repeats",), r"more repeats"),
)
"""Settings of `[small]` -> how a page says that they are not those of the full size."""


def studies(page: str) -> list[str]:
    """The studies whose files a page shows."""
    text = (PUBLISHED / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^<!-- study: ([\w-]+) -->$", text, re.MULTILINE)


def told(page: str) -> dict[str, str]:
    """Study -> what its page says about its small size: an item of a list each, or all of it where there is one."""
    text = " ".join(section(f"published/{page}.md", "The small size").split("<!--")[0].split())
    items = re.findall(r"- `([\w-]+)`: (.+?)(?= - `[\w-]+`: |$)", text)
    return dict(items) if items else dict.fromkeys(studies(page), text)


def figures(value: object) -> set[str]:
    """What a page has to show of a value: its numbers above 1, which are rarely words, and names."""
    values = value if isinstance(value, list) else [value]
    numbers = {count_text(number) for number in values if isinstance(number, int) and number > 1}
    return numbers | {name for name in values if isinstance(name, str)}


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_calls_smaller_is_what_is_smaller(page: str) -> None:
    assert sorted(told(page)) == sorted(studies(page))
    for study, text in told(page).items():
        tables = tomllib.loads((SHIPPED / f"{study}.toml").read_text(encoding="utf-8"))
        small = _flat(tables["small"])
        assert set(small) <= {key for keys, _ in WORDS for key in keys}, "what is smaller has no words yet"
        for keys, words in WORDS:
            assert bool(re.search(words, text)) == bool(small.keys() & set(keys)), f"{study}: {words}"
        shown = {*re.findall(r"\d[\d,]*\d|\d", text), *names(text)}
        for key, value in small.items():
            place, name = key.split(".")
            wanted = figures(value) | figures(tables[place].get(name))
            assert wanted <= shown, f"{study}: {key} is {value}"


@pytest.mark.parametrize("page", PAGES)
def test_every_study_of_a_page_has_its_command(page: str) -> None:
    lines = [words for place, words in shell_lines() if place == PUBLISHED / f"{page}.md"]
    assert {words[2] for words in lines if words[:2] == ["paceline", "study"]} == set(studies(page))


def test_studies_of_more_than_one_command_are_named_where_one_is_promised() -> None:
    several = {page: studies(page) for page in PAGES if len(studies(page)) > 1}
    rows = table((PUBLISHED / "index.md").read_text(encoding="utf-8"))
    assert {names(row[0])[0]: names(row[1]) for row in rows if len(row) == 2} == several
    start = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    two, three = re.findall(r"but two for (.+), three for (.+) \|", start)[0]
    assert set(names(two)) == {page for page, own in several.items() if len(own) == 2}
    assert set(names(three)) == {page for page, own in several.items() if len(own) == 3}
