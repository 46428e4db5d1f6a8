"""Every cell of every published file has a figure of ours or a reason, never neither, never both."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from paceline.published.beside import published_comparison
from paceline.published.matching.measures import _MEASURES
from paceline.published.records import PublishedComparison
from paceline.published.table_files import published_names, published_study
from paceline.records.results import StudyResults
from samples import published_samples, report_samples

FILES = Path(__file__).parents[3] / "src" / "paceline" / "published" / "tables"


def results() -> dict[str, StudyResults]:
    """Studies as they might come out: whole, partial, failed, with nothing finished, and studies of other things."""
    made = {name: published_samples.usual(name) for name in published_samples.STUDIES}
    for name in ("mnist-mpi", "caltech256-gpus"):
        made[f"{name}, 64 cores"] = published_samples.results_of(name, cores=64, repeats=2)
    made["one repeat"] = published_samples.results_of("mnist-mpi", repeats=1)
    made["failed"] = published_samples.results_of("mnist-batch-size", failed=lambda point: point.batch_global > 100)
    made["all failed"] = published_samples.results_of("fruits-gpus", failed=lambda point: True)
    return made | {name: make() for name, make in report_samples.ALL.items()}


RESULTS = results()


def test_every_file_is_read_whole() -> None:
    """The tables have every line and every figure of the files, and no file is left out."""
    tables = {table.name: table for name in published_names() for table in published_study(name).tables}
    files = {path.stem: path for path in FILES.glob("*.csv")}
    assert set(tables) == set(files)
    figures = 0
    for name, path in files.items():
        lines = list(csv.DictReader(path.read_text().splitlines()))
        assert len(tables[name].rows) == len(lines) > 0
        for row, line in zip(tables[name].rows, lines, strict=True):
            for cell in row.cells:
                assert cell.text == line[cell.column]
                assert cell.value == (float(line[cell.column]) if line[cell.column] else None)
                figures += cell.value is not None
    assert figures == 250


@pytest.mark.parametrize("name", published_names())
def test_every_column_is_a_key_or_has_a_measure(name: str) -> None:
    for table in published_study(name).tables:
        header = (FILES / f"{table.name}.csv").read_text().splitlines()[0].split(",")
        columns = {column.name for column in table.columns}
        assert columns <= set(header)
        for column in table.columns:
            assert column.measure.startswith("setting:") or column.measure in _MEASURES, column.name
        for row in table.rows:
            assert len(row.names) == len(table.keys) and {cell.column for cell in row.cells} == columns


@pytest.mark.parametrize("case", RESULTS)
@pytest.mark.parametrize("name", published_names())
def test_each_cell_has_a_figure_or_a_reason(name: str, case: str) -> None:
    """Of any results, those of another study included."""
    found = published_comparison(published_study(name), RESULTS[case])
    assert cells(found) == sum(len(t.rows) * len(t.columns) for t in published_study(name).tables)
    for table in found.tables:
        for row, printed in zip(table.rows, table.table.rows, strict=True):
            assert [cell.column for cell in row.cells] == [cell.column for cell in printed.cells]
            for cell in row.cells:
                assert (cell.value is None) == bool(cell.reason), cell
                if cell.value is not None:
                    assert cell.point_id in {point.point_id for point in RESULTS[case].points if point.runs}
                else:
                    assert cell.reason[0].isupper(), cell.reason
    assert {answer.question.name for answer in found.answers} == {q.name for q in published_study(name).questions}
    assert all(answer.verdict for answer in found.answers)


def cells(found: PublishedComparison) -> int:
    return sum(len(row.cells) for table in found.tables for row in table.rows)
