"""A file that is written piece by piece appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.errors import StorageError
from paceline.storage.codec import whole_file


def test_it_takes_its_place_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with whole_file(path) as file:
        file.write(b"one")
        assert not path.exists()
        file.write(b"two")
    assert path.read_bytes() == b"onetwo"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_was_there_stays_where_writing_breaks_off(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(error), whole_file(path) as file:
        file.write(b"new")
        raise error
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_the_system_refuses_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="failed"), whole_file(tmp_path) as file:
        file.write(b"a folder is there")
    assert list(tmp_path.parent.glob(f".{tmp_path.name}.*")) == []
