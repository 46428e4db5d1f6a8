"""The files of published studies: what ours have otherwise, and what was chosen where print does not say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import paceline.published
from paceline.published import table_files
from paceline.published.table_files import published_names, published_study
from paceline.studies.load.load import load_study
from samples import published_samples

FILES = Path(paceline.published.__file__).parent / "tables"
REPEATING = (*published_samples.STUDIES, *published_samples.OTHERWISE)
NOT_CONCERNED = {
    "cifar10-nodes": {"how images were prepared for the pretrained networks", "the head of ResNet50"},
    "cifar10-nodes-efficientnet": {"the head of ResNet50"},
}
"""Study -> what is not given in print, and is not about its network."""


@pytest.mark.parametrize("name", published_names())
def test_every_study_of_one_says_what_differs_or_that_nothing_does(name: str) -> None:
    published = published_study(name)
    named = {study for study in (*REPEATING, *published_samples.ASKED) if load_study(study).study.published == name}
    assert set(published.differs) == named and set(published.chosen) == named - set(published.asked_alone)


@pytest.mark.parametrize("name", REPEATING)
def test_all_that_is_not_given_has_a_choice(name: str) -> None:
    published = published_study(load_study(name).study.published)
    assert set(published.not_given) - set(published.chosen[name]) == NOT_CONCERNED.get(name, set())
    parts = [*published.chosen[name], *published.chosen[name].values(), *published.differs[name]]
    assert all(part and ";" not in part and not part.endswith(".") for part in parts), "they are joined to a sentence"


@pytest.mark.parametrize("name", REPEATING)
@pytest.mark.parametrize("size", ["full", None])
def test_choices_are_those_of_the_study_file(name: str, size: str | None) -> None:
    study = load_study(name, size=size).study
    train, side = study.train, study.model.options.get("image_size", study.data.image_size)
    for item, choice in published_study(study.published).chosen[name].items():
        if "optimizer" in item:
            assert train.optimizer in choice.lower()
            assert "rate" not in item or f"{train.lr:g}" in choice
            assert "batch" not in item or f"{train.batch_per_rank or train.batch_global} samples" in choice
        if item.startswith("repeats"):
            assert choice == str(study.run.repeats)
        if item.startswith("size"):
            assert f"{side}×{side}" in choice
        if item.startswith("cores"):
            assert str(study.run.threads) in choice


def test_what_differs_is_in_the_study_files() -> None:
    full = {name: load_study(name, size="full").study for name in REPEATING}
    differs = {name: "; ".join(published_study(study.published).differs[name]) for name, study in full.items()}
    for name, study in full.items():
        settings = published_study(study.published).settings
        held_out = study.data.validation > 0 and "no validation set" in settings
        assert ("held out for validation" in differs[name]) == held_out
    assert f"{full['mnist-batch-size'].run.ranks[0]} ranks at the full size" in differs["mnist-batch-size"]
    assert f"{full['flowers-cloud'].run.threads} threads of a worker" in differs["flowers-cloud"]
    assert f"{full['fruits-gpus'].finetune.epochs} epochs of fine-tuning" in differs["fruits-gpus"]
    assert set(published_study("fruits-gpus").stand_ins) == {full["fruits-gpus"].data.dataset}


def test_what_a_file_must_not_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(FILES / "fashion-sequential.csv", tmp_path)
    text = (FILES / "fashion-sequential.toml").read_text(encoding="utf-8")
    (tmp_path / "key.toml").write_text(f'hardwear = "a laptop"\n{text}', encoding="utf-8")
    choice = '"6 threads at the full size, 1 at the small one"'
    assert choice in text
    (tmp_path / "study.toml").write_text(text.replace(choice, '{ fashion-seqential = "6" }'), encoding="utf-8")
    monkeypatch.setattr(table_files, "_files", lambda: tmp_path)
    with pytest.raises(TypeError, match="hardwear"):
        published_study("key")
    with pytest.raises(AssertionError, match="fashion-seqential"):
        published_study("study")
