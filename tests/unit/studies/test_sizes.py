"""Two sizes of one study: `[small]` in its file, `--size`, and what is said about it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from paceline.app.study_loading import load, study_folder
from paceline.errors import StudyFileError
from paceline.records.study_size import size_text
from paceline.studies.load.load import load_study
from paceline.studies.load.toml_text import study_toml

TWO_SIZES = """
[study]
name = "two"
[data]
dataset = "mnist"
train_samples = 60000
[model]
name = "mlp"
neurons = [32, 128]
[train]
batch_global = 64
epochs = 12
[run]
ranks = [1, 2, 4]
[small]
train.epochs = 2
"data.train_samples" = 12000
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(TWO_SIZES)
    return path


def mistakes(path: Path, *overrides: str, size: str | None = None) -> str:
    with pytest.raises(StudyFileError) as caught:
        load_study(path, overrides, size=size)
    return str(caught.value)


def test_the_small_size_is_run_where_nothing_is_said(file: Path) -> None:
    study = load_study(file).study
    assert (study.size, study.train.epochs, study.data.train_samples) == ("small", 2, 12_000)
    assert size_text(study) == ("small size: 2 of 12 epochs, 12,000 of 60,000 samples; --size full runs it as written")


def test_the_full_size_is_the_study_as_written_in_a_folder_of_its_own(file: Path) -> None:
    full = load(file, size="full")
    assert (full.study.size, full.study.train.epochs, full.study.data.train_samples) == ("full", 12, 60_000)
    assert study_folder(full) == Path("runs/two-full") and study_folder(load(file)) == Path("runs/two")
    assert study_folder(full, "there") == Path("there")
    assert size_text(full.study) == "full size, as it is written" and full.study.full == {}


def test_a_study_without_a_small_size_has_one(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(TWO_SIZES.partition("[small]")[0])
    one = load(path)
    assert one.study.size == "" and size_text(one.study) == "" and study_folder(one) == Path("runs/two")
    assert load_study(path, size="full").study == one.study
    assert "--size small: the study has no [small], and so one size alone." in mistakes(path, size="small")


def test_what_is_set_wins_at_either_size(file: Path) -> None:
    small = load_study(file, ["train.epochs=3"]).study
    assert (small.train.epochs, small.data.train_samples) == (3, 12_000)
    assert size_text(small) == "small size: 12,000 of 60,000 samples; --size full runs it as written"
    assert load_study(file, ["train.epochs=3"], size="full").study.train.epochs == 3
    steps = load_study(file, ["train.steps=50"]).study
    assert (steps.train.steps, steps.train.epochs) == (50, None) and "epochs" not in size_text(steps)


@pytest.mark.parametrize(
    ("lines", "epochs", "said"),
    [
        ("train.steps = 200", None, "200 steps in place of 12 epochs"),
        ("run.repeats = 3", 12, "3 repeats"),
        ("train.epochs = 20", 20, "20 epochs in place of 12"),
        ("run.ranks = [1, 2]", 12, "ranks 1, 2 in place of 1, 2, 4"),
        ("model.neurons = 32", 12, "neurons 32 in place of 32, 128"),
        ("model.layers = 2", 12, "layers 2"),
        ("[small.train]\nlr = 0.5", 12, "lr 0.5"),
        ('"data.dataset" = "digits"', 12, "dataset digits in place of mnist"),
    ],
)
def test_any_setting_may_be_smaller_and_is_said(file: Path, lines: str, epochs: int | None, said: str) -> None:
    file.write_text(f"{TWO_SIZES.partition('[small]')[0]}\n[small]\n{lines}\n")
    study = load_study(file).study
    assert study.train.epochs == epochs
    assert size_text(study) == f"small size: {said}; --size full runs it as written"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("train.epoch = 2", "train.epoch: there is no such key. Did you mean train.epochs?"),
        ("trian.epochs = 2", "[trian]: there is no such section. Did you mean [train]?"),
        ("epochs = 2", "small.epochs = 2: must name a setting with its section, e.g. train.epochs = 2."),
        ("train.epochs = 'two'", 'train.epochs = "two": must be a whole number.'),
        ("train.epochs = 0", "train.epochs = 0: must be 1 or more."),
        ("study.name = 'x'", 'small.study.name = "x": [study] is the same at every size.'),
    ],
)
def test_what_is_wrong_in_it_is_refused_as_anywhere_else(file: Path, lines: str, said: str) -> None:
    file.write_text(f"{TWO_SIZES.partition('[small]')[0]}\n[small]\n{lines}\n")
    assert f"has 1 mistake:\n  {said}\n" in mistakes(file)


def test_a_wrong_key_is_refused_at_the_full_size_too_and_so_is_an_unknown_size(file: Path) -> None:
    assert "--size medium: must be small or full." in mistakes(file, size="medium")
    file.write_text(TWO_SIZES + "train.epoch = 2\n")
    assert "Did you mean train.epochs?" in mistakes(file, size="full")
    file.write_text("small = 3\n" + TWO_SIZES.partition("[small]")[0])
    assert "small = 3: must be a section, [small] on a line of its own." in mistakes(file)


@pytest.mark.parametrize("size", ["small", "full"])
@pytest.mark.parametrize("small", ["train.epochs = 2", "train.steps = 9", "model.neurons = 8\nrun.ranks = 1"])
@pytest.mark.parametrize("overrides", [(), ("train.steps=5",), ("train.epochs=7",), ("model.neurons=[4, 5]",)])
def test_the_file_in_the_folder_is_the_same_study(file: Path, size: str, small: str, overrides: tuple) -> None:
    file.write_text(f"{TWO_SIZES.partition('[small]')[0]}\n[small]\n{small}\n")
    study = load_study(file, overrides, size=size).study
    again = shutil.copy(file, file.with_name("again.toml"))
    Path(again).write_text(study_toml(study))
    assert load_study(again).study == study
    assert list(load_study(again).study.vary) == list(study.vary)


def test_from_the_folder_the_full_size_is_as_it_was_written(file: Path) -> None:
    small, full = load_study(file).study, load_study(file, size="full").study
    file.write_text(study_toml(small))
    assert load_study(file, size="full").study == full
