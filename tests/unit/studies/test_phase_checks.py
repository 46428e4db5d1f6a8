"""A second phase, cached features and synchronised batch-norm that cannot work are refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.errors import StudyFileError
from paceline.records.settings import FinetuneSettings
from paceline.studies.load.load import load_study

SMALLEST = '[study]\nname = "s"\n[train]\nbatch_global = 8\nepochs = 1\n'


def loaded(folder: Path, text: str, *overrides: str):
    path = folder / "s.toml"
    path.write_text(SMALLEST + text)
    return load_study(path, overrides).study


def refused(folder: Path, text: str, *overrides: str) -> str:
    with pytest.raises(StudyFileError) as caught:
        loaded(folder, text, *overrides)
    lines = caught.value.what.splitlines()
    assert len(lines) == 2, lines
    return lines[1].strip()


def test_a_second_phase_is_taken_as_it_is_given(tmp_path):
    study = loaded(tmp_path, '[finetune]\nepochs = 2\nlr = 1e-4\noptimizer = "sgd"\nschedule = "cosine"\n')
    assert study.finetune == FinetuneSettings(epochs=2, lr=1e-4, optimizer="sgd", schedule="cosine")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("epochs = -1", "finetune.epochs = -1: must be 0 or more."),
        ("epochs = 1\nlr = 0.0", "finetune.lr = 0.0: must be a finite number above 0."),
        ("epochs = 1\nlr = inf", "finetune.lr = inf: must be a finite number above 0."),
        ('epochs = 1\noptimizer = "adm"', "Did you mean 'adam'?"),
        ('epochs = 1\nbatchnorm = "thawed"', 'must be "frozen" or "train".'),
        ('epochs = 1\nschedule = "cosin"', "finetune.schedule ="),
        ('epochs = 1\nschedule = "step"', "needs train.step_epochs"),
        ("epochs = 1\nepsilon = 0.0", "finetune.epsilon = 0.0: must be a finite number above 0."),
        ('epochs = 1\noptimizer = "sgd"\nepsilon = 1e-7', "finetune.epsilon = 1e-07: only adam, adamw, adadelta"),
        ("epochs = 1\nrho = 0.9", 'finetune.rho = 0.9: only adadelta takes it, not "adam".'),
        ("epsilon = 1e-7", "there is no second phase"),
        ("lr = 0.1", "there is no second phase. Give finetune.epochs, 1 or more, or leave it out."),
        ('batchnorm = "train"', "there is no second phase"),
        ("lr = [0.1, 0.2]", "there is no second phase"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, text, expected):
    assert expected in refused(tmp_path, f"[finetune]\n{text}\n")


def test_steps_may_be_those_of_the_second_phase_alone(tmp_path):
    study = loaded(tmp_path, '[finetune]\nepochs = 4\nschedule = "step"\n', "train.step_epochs=2")
    assert (study.train.schedule, study.train.step_epochs, study.finetune.schedule) == ("constant", 2.0, "step")


def test_with_and_without_a_second_phase_can_be_compared(tmp_path):
    study = loaded(tmp_path, "[finetune]\nepochs = [0, 2]\nlr = 1e-4\n")
    assert study.vary == {"finetune.epochs": (0, 2)}


@pytest.mark.parametrize("strategy", ["parameter-server", "parameter-server-async"])
def test_servers_cannot_take_on_more_parameters(tmp_path, strategy):
    said = refused(tmp_path, f'[finetune]\nepochs = 1\n[run]\nstrategy = "{strategy}"\n')
    assert said.startswith(f"finetune.epochs = 1: under {strategy} servers hold what the first phase trains")


@pytest.mark.parametrize("strategy", ["parameter-server", "parameter-server-async", "local-sgd"])
def test_batchnorm_is_not_synchronised_where_ranks_do_not_talk(tmp_path, strategy):
    overrides = ("train.sync_batchnorm=true", f"run.strategy={strategy}")
    assert f"under {strategy} ranks" in refused(tmp_path, "", *overrides)


@pytest.mark.parametrize("strategy", ["ddp", "flat", "ddp-fp16", "mpi-allreduce"])
def test_batchnorm_is_synchronised_where_they_do(tmp_path, strategy):
    launcher = "mpi" if strategy.startswith("mpi") else "local"
    overrides = ("train.sync_batchnorm=true", f"run.strategy={strategy}", f"run.launcher={launcher}")
    assert loaded(tmp_path, "", *overrides).train.sync_batchnorm


def test_features_are_of_images_as_they_are_and_of_a_frozen_base(tmp_path):
    assert "[augment]" in refused(tmp_path, "[augment]\nflip = true\n", "train.cached_features=true")
    assert 'Give data.read = "mapped".' in refused(
        tmp_path, "", "train.cached_features=true", "data.read=mpi-io", "run.launcher=mpi"
    )
    for given in ("train.cached_features=true", "finetune.epochs=1"):
        said = refused(tmp_path, "[model]\nfreeze = false\n", given)
        assert said.startswith("model.freeze = false:") and given.split("=")[0] in said
