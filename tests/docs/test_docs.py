"""The documentation says what is true: links lead somewhere, commands parse, every key, file and field is explained."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from pathlib import Path

import pyarrow as pa
import pytest
from doc_pages import (
    PAGES,
    ROOT,
    anchors,
    blocks,
    inline_commands,
    links,
    names,
    parsed,
    prose,
    section,
    shell_lines,
    table,
)

from paceline import catalog
from paceline.analyze.study.findings import FINDINGS
from paceline.app.results_view import Results
from paceline.cli.app import VERBS
from paceline.metrics import POINT_METRICS
from paceline.metrics.metric import INTERVAL, SPREAD
from paceline.records import run
from paceline.records.rank_trace import LEDGER_KINDS, SPAN_KINDS
from paceline.records.results import PointResult
from paceline.records.study import Study
from paceline.reporting.export.json_view import json_object
from paceline.reporting.export.rows import columns
from paceline.storage import codec, span_stream
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.storage.pulse import PHASES
from paceline.studies.folder.bookkeeping import Failure
from paceline.studies.load.keys import FACTORS, KEYS, NUMBERS, SECTIONS, TEXTS
from paceline.studies.load.load import load_study, shipped_studies
from paceline.studies.load.toml_text import toml_value
from samples import report_samples

SOURCE = ROOT / "src" / "paceline"
TYPES = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    NUMBERS: "list of whole numbers",
    TEXTS: "list of texts",
}


@pytest.mark.parametrize(("page", "target"), list(links()), ids=lambda value: getattr(value, "name", value))
def test_every_link_and_picture_leads_somewhere(page: Path, target: str) -> None:
    assert "://" not in target, "the documentation is to be read offline"
    path, _, anchor = target.partition("#")
    place = (page.parent / path).resolve() if path else page
    assert place.exists(), f"{page.name} links to {target}, which is not there"
    assert place.is_relative_to(ROOT)
    if anchor:
        assert anchor in anchors(place), f"{place.name} has no heading #{anchor}"


def test_the_readme_shows_measured_results_with_a_baseline() -> None:
    found = re.search(r"<!-- results -->(.*)<!-- /results -->", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found
    rows = table(found[1])
    assert any("baseline" in " ".join(row) for row in rows)
    assert all(re.search(r"\d\.\d", " ".join(row)) for row in rows), "figures are missing"


PACELINE_LINES = [(page, words) for page, words in shell_lines() if words[0] == "paceline"]


def line_id(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else getattr(value, "name", str(value))


@pytest.mark.parametrize(("page", "words"), PACELINE_LINES, ids=line_id)
def test_every_command_parses(page: Path, words: list[str]) -> None:
    parsed(words)


@pytest.mark.parametrize(("page", "words"), list(inline_commands("paceline")), ids=line_id)
def test_every_command_in_running_text_parses(page: Path, words: list[str]) -> None:
    if len(words) == 2 and words[1] in VERBS:
        return  # a verb by its name: what has to follow it is not the point there
    parsed(words)


def test_the_readme_lists_every_verb_once_and_in_order() -> None:
    text = (ROOT / "README.md").read_text()
    rows = table(text[text.index("## Verbs") : text.index("## How it works")])
    assert [names(row[0])[0].removeprefix("paceline ") for row in rows] == list(VERBS)


def test_every_target_of_make_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    lines = [words for _, words in (*shell_lines(), *inline_commands("make")) if words[0] == "make"]
    assert len(lines) > 5
    for words in lines:
        assert {word for word in words[1:] if "=" not in word} <= targets, words


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_every_python_block_compiles(block) -> None:
    compile(block.text, str(block), "exec")


def test_the_python_example_uses_what_is_there() -> None:
    there = (block for block in blocks("python") if block.page.name == "quickstart.md")
    example = next(block for block in there if "paceline.study(" in block.text)
    used = {
        (node.value.id, node.attr)
        for node in ast.walk(ast.parse(example.text))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    results = set(dir(Results)) | {field.name for field in dataclasses.fields(Results)}
    point = {field.name for field in dataclasses.fields(PointResult)}
    assert {name for owner, name in used if owner == "results"} <= results
    assert {name for owner, name in used if owner == "point"} <= point
    assert {("results", "table"), ("point", "ledger_s")} <= used


def test_every_shipped_study_loads() -> None:
    assert {"digits", "mnist-scaling"} <= {study.name for study in shipped_studies()}
    for shipped in shipped_studies():
        assert load_study(shipped.name).study.name == shipped.name


@pytest.mark.parametrize("name", KEYS)
def test_every_key_of_the_study_file_is_documented_with_type_and_default(name: str) -> None:
    record = Study if name == "study" else SECTIONS[name]
    defaults = {field.name: field.default for field in dataclasses.fields(record)}
    rows = [row for row in table(section("study-file.md", f"[{name}]")) if len(row) == 4]
    assert [names(row[0]) for row in rows] == [[key] for key in KEYS[name]]
    for (key, kind), (_, shown_type, shown_default, meaning) in zip(KEYS[name].items(), rows, strict=True):
        assert (shown_type, shown_default) == (TYPES[kind], default_text(defaults[key])), key
        assert len(meaning) > 10, key


VARIED = ("data", "augment", "model", "train", "finetune", "run")
LISTS = {"run.ranks", "data.shape"}


def test_every_factor_is_documented_and_no_other() -> None:
    """Named one by one, or as all of a section but some."""
    text = section("study-file.md", "Factors")
    sentence = text[text.index("A list may stand") : text.index("Not varied")]
    fixed = names(text[text.index("Not varied") : text.index("A single value")])
    assert [name.strip("[]") for name in names(sentence) if name.startswith("[")] == [*VARIED, "launch"]
    assert {f"{place}.{key}" for place in VARIED for key in KEYS[place]} - set(fixed) - LISTS == {
        path for path in FACTORS if not path.startswith("launch.")
    }
    assert {name for name in names(sentence) if name.startswith("launch.")} == {
        path for path in FACTORS if path.startswith("launch.")
    }


def default_text(default: object) -> str:
    if default is dataclasses.MISSING:
        return "required"
    return "–" if default is None else f"`{toml_value(default)}`"


def option_text(default: object) -> str:
    if isinstance(default, int | float):
        return f"{default:g}"
    return "–" if default is None else toml_value(default)


def test_every_option_of_every_model_is_documented() -> None:
    rows = [row for row in table(section("study-file.md", "[model]")) if len(row) == 2]
    assert [names(row[0])[0] for row in rows] == list(catalog.names("model"))
    for model, options in rows:
        parameters = inspect.signature(catalog.load("model", names(model)[0])).parameters.values()
        own = [f"`{p.name}` ({option_text(p.default)})" for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
        assert options == ", ".join(own)


def test_every_name_of_the_catalog_is_in_the_study_file_page() -> None:
    told = set(names(prose(ROOT / "docs" / "study-file.md")))
    for kind in catalog.ENTRIES:
        assert set(catalog.names(kind)) <= told, kind


def test_every_file_of_a_folder_is_documented() -> None:
    text = (ROOT / "docs" / "run-folder.md").read_text()
    for cls in (RunFolder, StudyFolder):
        folder = cls(Path("X"))
        for name, member in vars(cls).items():
            if isinstance(member, property):
                assert getattr(folder, name).name in text, name
            elif name.startswith("rank_"):
                assert f"`{getattr(folder, name)(0).relative_to('X')}`" in text, name


def test_every_schema_is_documented_and_no_other() -> None:
    found = {
        schema
        for path in SOURCE.rglob("*.py")
        for schema in re.findall(r'SCHEMA = "(paceline\.[\w.-]+/\d+)"', path.read_text())
    }
    assert len(found) > 8
    text = (ROOT / "docs" / "run-folder.md").read_text()
    assert set(re.findall(r"`(paceline\.[\w.-]+/\d+)`", text)) == found


@pytest.mark.parametrize(
    ("heading", "record"),
    [
        ("manifest.json", run.Manifest),
        ("ranks/rank-0000.json", run.RankReport),
        ("curves.csv", run.Epoch),
        ("noise.csv", run.NoiseEpoch),
        ("machine.json", run.Machine),
        ("result.json", run.RunResult),
    ],
)
def test_every_field_of_a_record_is_documented_and_no_other(heading: str, record: type) -> None:
    told = [name for row in table(section("run-folder.md", heading)) for name in names(row[0])]
    assert sorted(told) == sorted(codec.names(record))


def test_the_rest_of_the_run_folder_is_documented() -> None:
    assert names(section("run-folder.md", "failure.json")) == [field.name for field in dataclasses.fields(Failure)]
    assert set(PHASES) <= set(re.findall(r"\w+", section("run-folder.md", "ranks/rank-0000.json")))
    described = {row[0].strip("`"): row for row in table(section("run-folder.md", "spans/rank-0000.arrows"))}
    assert list(described) == span_stream._SCHEMA.names
    assert names(described["kind"][2]) == list(SPAN_KINDS)
    for field in span_stream._SCHEMA:
        shown = "dictionary of string" if pa.types.is_dictionary(field.type) else str(field.type)
        assert described[field.name][1] == shown + (", null" if field.nullable else "")
    told = names(section("run-folder.md", "results.csv and results.parquet"))
    figures = {name for entry in POINT_METRICS for name in entry.columns}
    assert set(told) - {f"_{end}" for end in (*INTERVAL, *SPREAD)} == set(columns()) - figures


def test_every_kind_of_the_ledger_is_defined() -> None:
    assert [entry.name for entry in POINT_METRICS if entry.key.startswith("ledger_")] == list(LEDGER_KINDS)
    assert [name for name in names(section("glossary.md", "Where the time goes")) if name in LEDGER_KINDS] == list(
        LEDGER_KINDS
    )
    assert [kind for kind in names((ROOT / "README.md").read_text()) if kind in LEDGER_KINDS] == list(LEDGER_KINDS)


def test_every_finding_is_explained_and_no_other() -> None:
    assert sorted(names(row[0])[0] for row in table(section("measuring.md", "Findings"))) == sorted(FINDINGS)


def test_every_key_of_the_json_object_is_documented_and_no_other() -> None:
    view = json_object(report_samples.typical(), "report.html")
    text = section("quickstart.md", "For programs")
    sentence = text[text.index("Its keys are") : text.index("Each of")]
    assert names(sentence) == list(view)
    told = [name for row in table(text) for name in names(row[0])]
    assert sorted([*told, *(entry.key for entry in POINT_METRICS if entry.in_json)]) == sorted(view["points"][0])


def test_no_path_of_somebodys_machine_is_in_the_pages() -> None:
    for page in PAGES:
        assert not re.search(r"(?<![\w.~])/(root|home|work|Users|tmp)/", page.read_text()), page.name
