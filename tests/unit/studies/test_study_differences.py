"""What a study has otherwise than the shipped file of its name."""

from __future__ import annotations

import pytest

from paceline.studies.load.load import load_study, overridden, shipped_studies


@pytest.mark.parametrize("name", [study.name for study in shipped_studies()])
def test_a_study_as_it_is_shipped_departs_in_nothing(name: str) -> None:
    assert overridden(load_study(name).study) == {}


@pytest.mark.parametrize("size", ["small", "full"])
def test_what_set_changes_is_found_at_either_size(size: str) -> None:
    study = load_study("mnist-mpi", ["train.lr=0.002", "model.dropout=0.5", "run.ranks_per_host=1,2"], size=size).study
    assert overridden(study) == {
        "train.lr": ("0.002", "0.001"),
        "model.dropout": ("0.5", ""),
        "run.ranks_per_host": ("[1, 2]", "[1, 2, 4, 8]"),
    }


def test_a_file_of_ones_own_departs_from_nothing(tmp_path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[study]\nname = "mine"\n[data]\ndataset = "digits"\n[model]\nname = "mlp"\n'
        "[train]\nbatch_global = 64\nepochs = 1\n"
    )
    assert overridden(load_study(file).study) == {}
