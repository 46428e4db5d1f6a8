from __future__ import annotations

import json
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import FolderError, StorageError
from paceline.records.run import Epoch, Manifest
from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.storage import codec

numbers = st.floats(allow_nan=False)
epochs = st.builds(
    Epoch,
    epoch=st.integers(1, 99),
    step=st.integers(0, 10**9),
    samples=st.integers(0, 10**9),
    train_loss=numbers,
    train_accuracy=numbers,
    validation_loss=st.none() | numbers,
    validation_accuracy=st.none() | numbers,
    epoch_s=numbers,
    evaluate_s=numbers,
    whole=st.booleans(),
    resumed=st.booleans(),
)


def manifest(**changes) -> Manifest:
    point = Point(
        data=DataSettings(shape=(8, 8, 1), validation=0.1),
        data_digest="d",
        model=ModelSettings(options={"layers": 2, "rates": [0.1, 0.2]}),
        model_digest="",
        train=TrainSettings(batch_global=128, epochs=2),
        ranks=2,
    )
    told = {
        "study": "s",
        "point_id": point.point_id,
        "point": point,
        "run": 1,
        "seed": 0,
        "data_folder": "/data",
        "model_file": None,
        "cores": ((0,), (1, 2)),
        "placement": "two",
        "launched_at_ns": 123,
        "launched_at": "now",
    }
    return Manifest(**{**told, **changes})


def test_a_record_comes_back_as_it_was(tmp_path):
    path = tmp_path / "manifest.json"
    codec.write_record(path, manifest())
    assert codec.read_record(path, Manifest) == manifest()
    assert json.loads(path.read_text())["schema"] == "paceline.manifest/1"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~current_umask()


def current_umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


@given(epochs)
def test_every_float_comes_back_with_all_its_bits(epoch):
    assert codec.from_plain(Epoch, json.loads(json.dumps(codec.plain(epoch)))) == epoch


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace("paceline.manifest/1", "paceline.manifest/2"),
        lambda text: text.replace('"seed": 0', '"seed": "0"'),
        lambda text: text.replace('"seed": 0', '"sead": 0'),
        lambda text: text.replace('"ranks": 2', '"ranks": 2.5'),
        lambda text: text.replace('"run": 1,', ""),
        lambda text: text.replace('"cores": [', '"cores": 3, "x": ['),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_with_a_sentence(tmp_path, spoil):
    path = tmp_path / "manifest.json"
    codec.write_record(path, manifest())
    text = path.read_text()
    path.write_text(spoil(text))
    assert path.read_text() != text
    with pytest.raises(StorageError, match="damaged or was written by another version"):
        codec.read_record(path, Manifest)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    codec.write_atomically(path, b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        codec.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_is_on_the_disk_before_it_returns(tmp_path, monkeypatch):
    """A kill cannot show a missing fsync, only a power cut can: so the order of the calls is pinned."""
    calls = watched_calls(monkeypatch)
    codec.write_atomically(tmp_path / "file", b"new")
    assert calls == ["sync file", "rename", "sync folder"]


def watched_calls(monkeypatch) -> list[str]:
    """What is synced and renamed from now on, in order."""
    calls: list[str] = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def watched_fsync(handle):
        calls.append("sync folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "sync file")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", lambda *a: (calls.append("rename"), replace(*a)))
    monkeypatch.setattr(os, "rename", lambda *a: (calls.append("rename"), rename(*a)))
    return calls


def test_a_folder_that_cannot_be_written_to_is_the_requests_fault(tmp_path):
    error = codec.storage_error(tmp_path / "x", PermissionError(13, "Permission denied"))
    assert isinstance(error, FolderError) and error.exit_code == 2
