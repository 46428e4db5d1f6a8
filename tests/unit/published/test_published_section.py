"""A published table beside ours: as words, HTML, CSV and JSON."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from html import unescape

import pytest

from paceline.published.records import ComparedRow, ComparedTable, MeasuredCell, PublishedComparison
from paceline.published.section.column_meanings import _KEYS, _MEASURES, table_meanings
from paceline.published.section.published_rows import published_csv
from paceline.published.section.published_section import _bracket_notes, own_texts, published_section, section_html
from paceline.published.table_files import published_names, published_study
from paceline.records.results import StudyResults
from paceline.reporting.export.json_view import json_object
from paceline.reporting.html import report_page
from paceline.reporting.model import report_model
from paceline.reporting.text import report_text
from paceline.reporting.wording.facts import meanings
from samples import published_samples, report_samples


@pytest.mark.parametrize(
    ("cell", "unit", "expected"),
    [
        (MeasuredCell(column="", value=8.087, low=8.08, high=8.14, coverage=0.94, n=5), "s", ("8.09", "[8.08, 8.14]")),
        (MeasuredCell(column="", value=0.96357, std=0.00032, n=5), "fraction", ("0.9636", "± 0.0003")),
        (MeasuredCell(column="", value=690590, n=1), "count", ("690,590", "")),
        (MeasuredCell(column="", value=103.456, low=101.0, high=104.0, n=3), "percent", ("103.5", "[101.0, 104.0]")),
        (MeasuredCell(column="", value=11, low=10.0, high=13.0, coverage=0.9, n=5), "", ("11", "[10, 13]")),
        (MeasuredCell(column="", value=11, low=8.0, coverage=0.9, n=5), "", ("11", "[8, –]")),
        (MeasuredCell(column="", value=30, n=1), "", ("30", "")),
        (MeasuredCell(column="", value=100.0, low=100.0, high=100.0, n=5), "percent", ("100.0", "")),
    ],
)
def test_our_figures_have_the_digits_of_their_unit(cell: MeasuredCell, unit: str, expected: tuple[str, str]) -> None:
    assert own_texts(cell, unit) == expected


def test_a_table_has_both_figures_or_a_letter_for_the_reason() -> None:
    shown = published_samples.section_of(published_samples.usual("mnist-mpi"))
    table = shown.tables[0]
    assert len(table.rows) == 9 and len(table.columns) == 9
    first, eight = table.rows[0], table.rows[3]
    assert (first[5].figure, first[5].beside[:9]) == ("142.04", "here 8.09")
    letter = eight[5].beside.removeprefix("here not run ")
    assert any(note.startswith(f"{letter}: It has 8 ranks") for note in table.footnotes)
    sentences = [note.partition(": ")[2] for note in table.footnotes[1:]]
    assert all(sentences) and len(set(sentences)) == len(sentences)


def test_the_page_has_the_printed_figure_above_ours() -> None:
    page = section_html(published_samples.section_of(published_samples.usual("mnist-mpi")), "tables")
    assert '<span class="printed">142.04</span><b>8.09</b> <small>[8.08, 8.14]</small>' in page
    assert '<span class="printed">20.52</span> <small>not run b</small>' in page


def test_only_the_cells_of_emulated_points_are_marked() -> None:
    table = published_samples.section_of(published_samples.usual("cifar10-nodes")).tables[0]
    cnn = dict(zip(table.columns, table.rows[0], strict=True))
    assert cnn["model"].beside == ""
    marked = {column for column, cell in cnn.items() if cell.beside.endswith(" a")}
    assert marked == {"3 nodes (s)"}
    assert "a: Emulated: more threads than cores." in table.footnotes


def test_what_holds_for_all_of_a_row_is_marked_once() -> None:
    table = published_samples.section_of(published_samples.usual("mnist-mpi")).tables[0]
    four = table.rows[2]
    assert four[2].beside == "a" and "a: Emulated: more threads than cores." in table.footnotes
    assert not any(cell.beside.endswith(" a") for cell in four[3:])


def test_a_network_that_stands_in_for_another_is_named_at_its_row() -> None:
    stood_in = published_samples.section_of(published_samples.usual("cifar10-nodes-efficientnet")).tables[0]
    assert stood_in.rows[1][0].beside == "b"
    assert "b: efficientnet-lite0 stands in for efficientnet-b0." in stood_in.footnotes
    same = published_samples.section_of(published_samples.usual("cifar10-nodes-resnet50")).tables[0]
    assert not any("stands in" in note for note in same.footnotes)


def test_epochs_of_fine_tuning_stand_beside_those_before_it() -> None:
    table = published_samples.section_of(published_samples.usual("fruits-gpus")).tables[0]
    assert {row[table.columns.index("epochs")].beside for row in table.rows} == {"here 10 + 1 b"}
    assert "b: Epochs with the base frozen, then of fine-tuning." in table.footnotes


def test_data_that_stand_in_for_others_are_named_at_the_accuracies() -> None:
    table = published_samples.section_of(published_samples.usual("fruits-gpus")).tables[0]
    accuracy = table.columns.index("validation accuracy")
    assert {row[accuracy].beside[-2:] for row in table.rows} == {" d"}
    assert "d: Fruits-360 stands in for fresh and rotten fruit." in table.footnotes
    other = published_samples.section_of(
        published_samples.results_of("fruits-gpus", overrides=["data.dataset=flowers"])
    ).tables[0]
    assert not any("stands in" in note for note in other.footnotes)


JOB = MeasuredCell(column="job_s", value=8.0, low=7.9, high=8.1, coverage=0.94, n=5)
STABLE = MeasuredCell(column="epochs_to_stable_by_eye", value=11, low=10.0, coverage=0.9, n=5)
STABLE_WORDS = "is an interval for the first stable epoch that holds nine times in ten."
RATIO = MeasuredCell(column="time_pct", value=110.0, low=101.0, high=112.0, coverage=0.94, n=5)


@pytest.mark.parametrize(
    ("study", "cells", "expected"),
    [
        (
            "caltech256-gpus",
            (JOB, replace(JOB, column="epoch_s"), STABLE),
            "[ ] beside job and epoch is an interval for the median over repeats. "
            f"[ ] beside epochs to stable {STABLE_WORDS}",
        ),
        (
            "caltech256-gpus",
            (replace(JOB, coverage=None), STABLE),
            "[ ] beside job is the range of the repeats: fewer than five give no interval. "
            f"[ ] beside epochs to stable {STABLE_WORDS}",
        ),
        ("caltech256-gpus", (STABLE,), f"[ ] {STABLE_WORDS}"),
        ("caltech256-gpus", (JOB,), "[ ] is an interval for the median over repeats."),
        ("fashion-parameters", (RATIO,), "[ ] is an interval of the ratio within repeats."),
        (
            "fashion-parameters",
            (replace(RATIO, coverage=None),),
            "[ ] is the range of the ratios within repeats: fewer than five give no interval.",
        ),
    ],
)
def test_brackets_are_called_what_they_are(
    study: str, cells: tuple[MeasuredCell, ...], expected: tuple[str, str]
) -> None:
    found = ComparedTable(table=published_study(study).tables[0], rows=(ComparedRow(cells=cells),))
    assert _bracket_notes(found) == [expected]


@pytest.mark.parametrize("name", published_names())
def test_every_column_of_a_published_table_has_a_meaning_of_its_own(name: str) -> None:
    for table in published_study(name).tables:
        own = table_meanings(table)
        headings = [fact.label for fact in own]
        known = meanings(headings, own)
        wanted = [*(_KEYS[key] for key in table.keys), *(_MEASURES[column.measure] for column in table.columns)]
        assert len(known) == len(headings)
        assert all(meaning.text.startswith(text) for meaning, text in zip(known, wanted, strict=True))
        assert not any(meaning.formula for meaning in known)


def test_no_meaning_is_left_over() -> None:
    tables = [table for name in published_names() for table in published_study(name).tables]
    assert set(_KEYS) == {key for table in tables for key in table.keys}
    assert set(_MEASURES) == {column.measure for table in tables for column in table.columns}


@pytest.mark.parametrize(
    ("study", "number", "column", "part"),
    [
        ("mnist-mpi", 0, "read", "until a process has the data set"),
        ("mnist-mpi", 0, "epoch", "Time of an epoch"),
        ("mnist-mpi", 1, "epoch", "Number of the epoch"),
        ("mnist-mpi", 1, "epoch (s)", "Time of this epoch"),
        ("cifar10-nodes", 0, "3 nodes", "On 3 ranks."),
        ("fruits-gpus", 0, "kind", "Which GPUs"),
        ("fashion-sequential", 0, "phase", "or the test after the last one"),
        ("fashion-parameters", 0, "time", "in % of the baseline's"),
    ],
)
def test_a_heading_means_what_its_table_means(study: str, number: int, column: str, part: str) -> None:
    page = section_html(published_samples.section_of(published_samples.usual(study)), "tables")
    fold = page.split('<details class="about">')[number + 1].split("</details>")[0]
    entry = fold.split(f"<dt>{column}</dt><dd>")[1].split("</dd>")[0]
    assert part in unescape(entry)


def test_what_differs_is_said() -> None:
    about = {fact.label: fact.text for fact in published_samples.section_of(published_samples.usual("mnist-mpi")).about}
    assert "train.epochs 3 (5)" in about["What differs"] and "data.train_samples 12800 (all)" in about["What differs"]
    assert "two sockets" in about["Published with"] and "2 cores" in about["Here with"]
    assert about["Not published, chosen here"].startswith("rate of the dropout: 0.25; ")


@pytest.mark.parametrize("name", [*published_samples.STUDIES, *published_samples.ASKED, *published_samples.OTHERWISE])
def test_what_a_study_has_otherwise_and_what_it_chose_is_said_of_it_alone(name: str) -> None:
    results = published_samples.usual(name)
    published = published_samples.beside_of(results).published
    about = {fact.label: fact.text for fact in published_samples.section_of(results).about}
    phrases = {phrase for own in published.differs.values() for phrase in own}
    assert {phrase for phrase in phrases if phrase in about["What differs"]} == set(published.differs[name])
    assert ("Unlike the publication, the study has " in about["What differs"]) == bool(published.differs[name])
    if name in published_samples.ASKED:
        assert about["Not published"] == f"{'; '.join(published.not_given)}."
    else:
        chosen = "; ".join(f"{item}: {choice}" for item, choice in published.chosen[name].items())
        assert about["Not published, chosen here"] == f"{chosen}."


def test_of_a_study_of_ones_own_no_choice_is_claimed() -> None:
    results = published_samples.usual("fruits-gpus")
    own = published_samples.section_of(replace(results, study=replace(results.study, name="my-fruit")))
    about = {fact.label: fact.text for fact in own.about}
    assert "Fruits-360" not in about["What differs"] and "EfficientNet" not in about["Not published"]


def test_what_was_overridden_is_said_too() -> None:
    results = published_samples.usual("mnist-mpi")
    found = published_samples.beside_of(results)
    assert "Changed for this run" not in _differs(found, results)
    overridden = {"data.dataset": ('"images:own"', '"mnist"'), "train.steps": ("9", "")}
    told = _differs(replace(found, overridden=overridden), results)
    assert told.endswith('the study has in brackets: data.dataset "images:own" ("mnist"), train.steps 9 (open).')


def _differs(found: PublishedComparison, results: StudyResults) -> str:
    return {fact.label: fact.text for fact in published_section(found, results).about}["What differs"]


def test_a_study_that_names_none_shows_none() -> None:
    results = report_samples.typical()
    assert 'id="published"' not in report_page.render(report_model(results))
    assert json_object(results, None)["published"] is None


@pytest.mark.parametrize("name", published_samples.STUDIES)
def test_every_published_study_can_be_rendered(name: str) -> None:
    results = published_samples.usual(name)
    model = published_samples.model_of(results)
    page, words = report_page.render(model), report_text.render(model, width=100)
    assert 'id="published"' in page and "Published, and here" in words
    for answer in model.published.answers:
        assert f"<code>{answer.name}</code>" in page and answer.name in words
    assert all(len(line) <= 100 for line in words.splitlines() if "Published" not in line)
    json.dumps(json_object(results, None, model.published.as_json), allow_nan=False)


def test_csv_has_a_line_for_every_cell() -> None:
    results = published_samples.usual("fashion-parameters")
    lines = list(csv.DictReader(published_csv(published_samples.beside_of(results)).decode().splitlines()))
    assert len(lines) == 45
    assert all(bool(line["value"]) != bool(line["reason"]) for line in lines)
    assert lines[5] == {
        **lines[5],
        "row": "factor cores, value 2",
        "column": "time_pct",
        "published": "110.3",
        "n": "5",
    }


def test_json_has_cells_contradictions_and_questions() -> None:
    results = published_samples.usual("mnist-mpi")
    view = json_object(results, None, published_samples.section_of(results).as_json)["published"]
    assert view["name"] == "mnist-mpi" and len(view["cells"]) == 54 + 30
    assert {"epochs-exceed-total", "updates-below-epoch"} <= {found["name"] for found in view["contradictions"]}
    assert all(set(q) == {"name", "question", "answered", "verdict", "figure", "command"} for q in view["questions"])


@pytest.mark.parametrize("hostile", report_samples.HOSTILE)
def test_no_text_of_a_run_becomes_markup(hostile: str) -> None:
    results = published_samples.results_of("mnist-batch-size", failed=lambda point: point.batch_global == 64)
    assert results.machine is not None
    first = replace(results.points[0], failure=hostile)
    bad = replace(results, points=(first, *results.points[1:]), machine=replace(results.machine, cpu=hostile))
    page = report_page.render(published_samples.model_of(bad))
    assert "<script>document" not in page and "<img src=x" not in page and "<svg/onload" not in page
