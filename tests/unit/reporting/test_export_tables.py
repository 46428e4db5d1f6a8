"""The table of all spans: the same rows in Parquet and CSV, on one time line, nothing lost and nothing made up."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import parquet

from paceline.analyze.views.tracks import tracks
from paceline.reporting.export import table_export
from paceline.reporting.export.table_export import SCHEMA, write_csv, write_parquet
from samples.export_samples import STARTED_AT, US, rank_rows, sample_run
from samples.trace_samples import Row


@pytest.fixture
def rows() -> list[dict]:
    """The table as Parquet gives it back."""
    file = io.BytesIO()
    write_parquet(tracks(sample_run()), file)
    found = parquet.read_table(io.BytesIO(file.getvalue()))
    assert found.column_names == SCHEMA.names
    return found.to_pylist()


def test_every_span_of_every_rank_is_a_row(rows: list[dict]) -> None:
    for rank in range(2):
        own = [row for row in rows if row["rank"] == rank]
        wanted = sorted((row.kind, row.start - STARTED_AT, row.end - STARTED_AT) for row in rank_rows(rank))
        assert sorted((row["kind"], row["start_ns"], row["end_ns"]) for row in own) == wanted
        assert {row["host"] for row in own} == {f"n{rank + 1}"}


def test_a_message_carries_what_all_ranks_show_of_it(rows: list[dict]) -> None:
    first, second = (row for row in rows if row["operation"] == "allreduce_" and row["sequence"] == 0)
    assert (first["rank"], second["rank"]) == (0, 1)
    assert first["message"] == second["message"] is not None
    assert first["gathered_ns"] == second["gathered_ns"] == second["start_ns"] == first["start_ns"] + 5 * US
    assert first["completed_ns"] == first["end_ns"]
    assert (first["bytes"], first["dtype"], first["group"], first["peer"]) == (4000, "float32", "0", None)


def test_what_is_not_known_is_null(rows: list[dict]) -> None:
    startup = next(row for row in rows if row["kind"] == "startup")
    names = (
        "step",
        "bytes",
        "sequence",
        "group",
        "peer",
        "begun_ns",
        "dtype",
        "message",
        "gathered_ns",
        "completed_ns",
    )
    assert [startup[name] for name in names] == [None] * len(names)
    assert startup["operation"] == "imports"


def test_csv_holds_the_same(rows: list[dict]) -> None:
    file = io.BytesIO()
    write_csv(tracks(sample_run()), file)
    read = list(csv.DictReader(io.StringIO(file.getvalue().decode())))
    assert read == [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]


def test_text_is_quoted_where_it_has_to_be() -> None:
    hostile = 'a,"b"\nc'
    run = sample_run(extra=[Row("startup", STARTED_AT + US, STARTED_AT + 2 * US, -1, hostile)])
    file = io.BytesIO()
    write_csv(tracks(replace(run, hosts=())), file)
    read = list(csv.DictReader(io.StringIO(file.getvalue().decode(), newline="")))
    assert hostile in {row["operation"] for row in read}
    assert {row["host"] for row in read} == {""}


def test_half_a_character_in_the_name_of_a_host_is_replaced() -> None:
    file = io.BytesIO()
    write_parquet(tracks(sample_run(hosts=("n\ud8001", "n2"))), file)
    assert set(parquet.read_table(io.BytesIO(file.getvalue()))["host"].to_pylist()) == {"n\ufffd1", "n2"}


def test_a_long_run_is_written_piece_by_piece(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(table_export, "ROWS", 10)
    with (tmp_path / "spans.parquet").open("wb") as file:
        write_parquet(tracks(sample_run()), file)
    found = parquet.ParquetFile(tmp_path / "spans.parquet")
    assert found.metadata.num_rows == 2 * len(rank_rows(0))
    assert found.metadata.num_row_groups == 2 * 4
