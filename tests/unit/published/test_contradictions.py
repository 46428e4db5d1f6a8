"""Printed cells against one another: what is found in the published tables, and what is not where they agree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.published.matching.contradictions import contradictions
from paceline.published.records import PublishedCell, PublishedStudy
from paceline.published.table_files import published_names, published_study


def found(study: PublishedStudy) -> dict[str, list[tuple[int, ...]]]:
    rows: dict[str, list[tuple[int, ...]]] = {}
    for contradiction in contradictions(study):
        rows.setdefault(contradiction.name, []).append(contradiction.rows)
    return rows


def changed(study: PublishedStudy, row: int, column: str, text: str) -> PublishedStudy:
    """The study with another figure printed in a cell of its first table."""
    table = study.tables[0]
    cell = PublishedCell(column=column, value=float(text), text=text)
    cells = tuple(cell if old.column == column else old for old in table.rows[row].cells)
    rows = tuple(replace(old, cells=cells) if index == row else old for index, old in enumerate(table.rows))
    return replace(study, tables=(replace(table, rows=rows), *study.tables[1:]))


def test_mnist_mpi() -> None:
    study = published_study("mnist-mpi")
    rows = found(study)
    assert rows == {
        "epochs-exceed-total": [(0,), (6,)],
        "updates-below-epoch": [tuple(range(9))],
        "beyond-ideal": [(1, 2), (5, 6)],
    }
    texts = [contradiction.text for contradiction in contradictions(study)]
    assert any("5 epochs of 142.04 s make 710 s, in a total of 595.27 s" in text for text in texts)
    assert any("5 epochs of 20.52 s make 103 s, in a total of 97.32 s" in text for text in texts)
    assert any("37 to 58 % of an epoch" in text for text in texts)
    assert "an epoch becomes 2.39 times and the whole becomes 2.16 times as fast" in texts[3], "one pair, said once"
    assert texts[4] == "From 4 to 8 processes on 2 nodes the whole becomes 2.14 times as fast, more than 2."


def test_a_curve_contradicts_a_total_that_its_own_row_does_not() -> None:
    """Five epochs of 20.52 s are said once where the row has them; where its epoch is shorter, the curve says it."""
    study = published_study("mnist-mpi")
    assert "curves-exceed-total" not in found(study)
    assert found(changed(study, 6, "epoch_s", "15.00"))["curves-exceed-total"] == [(6,)]


def test_what_agrees_is_left_alone() -> None:
    study = changed(published_study("mnist-mpi"), 0, "total_s", "720.00")
    study = changed(study, 6, "total_s", "103.00")
    assert found(study).keys() == {"updates-below-epoch", "beyond-ideal"}
    whole = changed(published_study("mnist-mpi"), 3, "update_s", "0.35")
    assert "updates-below-epoch" not in found(whole)


def test_rounding_is_allowed_for() -> None:
    """Five epochs of 20.52 s may be of 20.515 s: a total of 102.58 s agrees with them, one of 102.56 s does not."""
    study = published_study("mnist-mpi")
    assert (6,) not in found(changed(study, 6, "total_s", "102.58"))["epochs-exceed-total"]
    assert (6,) in found(changed(study, 6, "total_s", "102.56"))["epochs-exceed-total"]


def test_the_others() -> None:
    assert found(published_study("caltech256-gpus")) == {"epochs-exceed-total": [(0,)], "beyond-ideal": [(0, 1)]}
    # 11 s and 5 s are whole seconds: 10.5 and 5.5 would be less than twice as fast. The jobs took 662 and 319.
    fruits = published_study("fruits-gpus")
    assert found(fruits) == {"beyond-ideal": [(0, 1)]}
    assert contradictions(fruits)[0].text == "From 1 to 2 T4 the whole becomes 2.08 times as fast, more than 2."
    assert found(changed(fruits, 0, "job_s", "638")) == {}, "638.5 may be twice 319.25"
    assert found(published_study("mnist-batch-size")) == {"batch-beyond-data": [(3, 4, 5)], "batch-below-ranks": [(0,)]}


@pytest.mark.parametrize("name", published_names())
def test_each_says_what_and_where(name: str) -> None:
    for contradiction in contradictions(published_study(name)):
        assert contradiction.text.endswith(".") and any(character.isdigit() for character in contradiction.text)
        assert contradiction.table in {table.name for table in published_study(name).tables}
