"""What is said about an `[augment]` that cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.errors import StudyFileError
from paceline.records.settings import AugmentSettings
from paceline.studies.load.load import load_study

STUDY = """
[study]
name = "s"
[data]
dataset = "digits"
[train]
batch_global = 8
epochs = 1
"""


def load(folder: Path, *overrides: str):
    (folder / "s.toml").write_text(STUDY)
    return load_study(folder / "s.toml", overrides).study


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("augment.crop=-1", "augment.crop = -1: must be 0 or more."),
        ("augment.cutout=-2", "augment.cutout = -2: must be 0 or more."),
        ("augment.shift=1.0", "augment.shift = 1.0: must be from 0 to below 1."),
        ("augment.zoom=-0.1", "augment.zoom = -0.1: must be from 0 to below 1."),
        ("augment.colour=1.5", "augment.colour = 1.5: must be from 0 to 1."),
        ("augment.rotation=200", "augment.rotation = 200.0: must be from 0 to 180."),
        ("augment.rotation=nan", "augment.rotation = nan: must be from 0 to 180."),
        ("augment.zoom=inf", "augment.zoom = inf: must be from 0 to below 1."),
        ("augment.colour=0.1,3", "augment.colour = 3.0: must be from 0 to 1."),
        ("augment.flip=2", "augment.flip = 2: must be true or false."),
    ],
)
def test_a_value_that_cannot_be_is_refused(tmp_path, override, said):
    with pytest.raises(StudyFileError) as caught:
        load(tmp_path, override)
    assert said in caught.value.what


def test_the_largest_values_are_taken(tmp_path):
    study = load(tmp_path, "augment.rotation=180", "augment.colour=1", "augment.shift=0.99", "augment.flip=true")
    assert study.augment == AugmentSettings(rotation=180.0, colour=1.0, shift=0.99, flip=True)


def test_features_cannot_be_cached_of_images_that_change(tmp_path):
    with pytest.raises(StudyFileError, match=r"cached_features.*Leave one of them out"):
        load(tmp_path, "train.cached_features=true", "augment.flip=true")


def test_augmentation_can_be_varied(tmp_path):
    study = load(tmp_path, "augment.rotation=0,15", "augment.flip=true,false")
    assert study.vary == {"augment.rotation": (0.0, 15.0), "augment.flip": (True, False)}
