"""Curves that are still being written."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.storage.curve_file import read_epochs
from paceline.storage.folder import RunFolder
from samples.finished_study import epoch, write_curves


@pytest.fixture
def curves(tmp_path: Path) -> Path:
    write_curves(RunFolder(tmp_path), (epoch(1, 0.5), epoch(2, 0.25)))
    return tmp_path / "curves.csv"


def test_whole_lines_are_epochs(curves: Path) -> None:
    assert read_epochs(curves) == [epoch(1, 0.5), epoch(2, 0.25)]


def test_a_half_written_line_hides_nothing_before_it(curves: Path) -> None:
    data = curves.read_text()
    for cut in range(len(data)):
        curves.write_text(data[:cut])
        assert [each.epoch for each in read_epochs(curves)] in ([], [1], [1, 2])
    curves.write_text(data + "3,")
    assert [each.epoch for each in read_epochs(curves)] == [1, 2]


def test_what_is_no_curves_file_has_no_epochs(tmp_path: Path) -> None:
    for content in (b"", b"\x00\xff\xfe", b"epoch,step\n1,2\n", b"other\n1\n"):
        (tmp_path / "curves.csv").write_bytes(content)
        assert read_epochs(tmp_path / "curves.csv") == []
    assert read_epochs(tmp_path / "nowhere.csv") == []
