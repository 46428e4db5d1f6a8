"""Studies on image folders: settings that cannot be, and a study that varies the size of its images."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_help import FakeLauncher

from paceline.data.cache import open_dataset
from paceline.errors import StudyFileError
from paceline.studies.execute.execute import execute
from paceline.studies.execute.preview import preview
from paceline.studies.load.load import load_study
from samples.image_files import write_folder

STUDY = """
[study]
name = "photos"
[data]
dataset = "{dataset}"
{data}
[model]
name = "mlp"
[train]
batch_global = 8
epochs = 1
[run]
ranks = [1, 2]
repeats = 1
"""


def loaded(folder: Path, data: str = "", dataset: str = "photos"):
    path = folder / "s.toml"
    path.write_text(STUDY.format(dataset=dataset, data=data))
    return load_study(path)


@pytest.mark.parametrize(
    ("dataset", "data", "says"),
    [
        ("photos", "image_size = 7", "data.image_size = 7: must be from 8 to 1024."),
        ("photos", "image_size = 1025", "data.image_size = 1025: must be from 8 to 1024."),
        ("photos", "image_size = [32, 0]", "data.image_size = 0: must be from 8 to 1024."),
        ("photos", 'damaged = "ignore"', 'data.damaged = "ignore": must be "refuse" or "skip".'),
        ("photos", "test = 1", "data.test = 1.0: must be a fraction from 0 to below 1."),
        ("photos", "test = -0.1", "data.test = -0.1: must be a fraction"),
        ("photos", "test = nan", "data.test = nan: must be a fraction"),
        ("mnist", "image_size = 32", 'data.image_size = 32: only image folders take it, and "mnist" is none.'),
        ("cifar10", "test = 0.1", 'data.test = 0.1: only image folders take it, and "cifar10" is none.'),
        ("a.npz", 'damaged = "skip"', 'only image folders take it, and "a.npz" is none.'),
        ("npz:photos", "image_size = 32", 'only image folders take it, and "npz:photos" is none.'),
        ("idx:photos", "image_size = 32", 'only image folders take it, and "idx:photos" is none.'),
        ("images:no/where", "", "there is no file or folder"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, dataset: str, data: str, says: str) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "a.npz").touch()
    with pytest.raises(StudyFileError) as caught:
        loaded(tmp_path, data, dataset)
    assert says in caught.value.what


@pytest.mark.parametrize("dataset", ["photos", "images:photos", "flowers", "photos.tar"])
def test_image_folders_take_their_settings(tmp_path: Path, dataset: str) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos.tar").touch()
    found = loaded(tmp_path, 'image_size = 32\ntest = 0.25\ndamaged = "skip"', dataset).study.data
    assert (found.image_size, found.test, found.damaged) == (32, 0.25, "skip")


def test_every_point_gets_the_images_in_its_own_size(tmp_path: Path) -> None:
    write_folder(tmp_path / "photos", {"a": 12, "b": 12})
    study, launcher = loaded(tmp_path, "image_size = [8, 16]\nvalidation = 0.25"), FakeLauncher()
    execute(study, tmp_path / "out", launcher=launcher, preflight=False, cache=tmp_path / "cache")
    assert len({manifest.point.point_id for manifest in launcher.manifests}) == 4
    shapes = set()
    for manifest in launcher.manifests:
        dataset = open_dataset(Path(manifest.data_folder)).dataset
        assert dataset.digest == manifest.point.data_digest
        shapes.add((manifest.point.data.image_size, dataset.shape))
    assert shapes == {(8, (8, 8, 3)), (16, (16, 16, 3))}


def test_a_preview_knows_what_is_finished_at_every_size(tmp_path: Path) -> None:
    cache, out = tmp_path / "cache", tmp_path / "out"
    write_folder(cache / "sources" / "flowers", {"a": 12, "b": 12})
    study = loaded(tmp_path, "image_size = [8, 16]", "flowers")
    assert preview(study, out, launcher=FakeLauncher(), preflight=False, cache=cache).finished is None
    execute(study, out, launcher=FakeLauncher(), preflight=False, cache=cache)
    found = preview(study, out, launcher=FakeLauncher(), preflight=False, cache=cache)
    assert [point.finished for point in found.points] == [1, 1, 1, 1]
