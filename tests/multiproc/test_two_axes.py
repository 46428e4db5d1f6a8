"""A mesh of 2×2 ranks, under a strategy that is one file of the tests, trains as two data-parallel ranks do."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import gate
import pytest

from paceline.training.checkpoint import checkpoint_folders, read_checkpoint

TENSOR = "flat-tensor"


def trained(ranks: Any, folder: Path, data: str, strategy: str, batches: dict[str, Any], **train: Any) -> list[dict]:
    settings = gate.learning("adam", batches)
    settings = {
        "strategy": strategy,
        "data": {**settings["data"], "validation": 150},
        "train": {**settings["train"], "steps": 40, "checkpoint_every": 20, **train},
    }
    folder.mkdir()
    settings = gate.with_model(folder, gate.SMALL, settings, dropout=0.2)
    return ranks.run("train", folder=str(folder), data=data, settings=settings)


def saved(folder: Path) -> dict[str, Any]:
    newest, *_ = checkpoint_folders(folder / "checkpoints")
    return read_checkpoint(newest)[1]


@pytest.mark.parametrize("batches", [gate.EVEN, gate.UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("train", [{}, {"accumulate": 2, "clip_norm": 0.5}, {"average_epochs": 1}], ids=str)
def test_a_mesh_of_two_axes_trains_as_its_data_axis_alone(groups, digits_folder, tmp_path, batches, train):
    """Losses, curves and test are those of two ranks, and the checkpoint has the whole network."""
    two = trained(groups[2], tmp_path / "two", digits_folder, "flat", batches, **train)
    four = trained(groups[4], tmp_path / "four", digits_folder, TENSOR, batches, **train)
    assert four[0]["losses"] == pytest.approx(two[0]["losses"], rel=1e-9)
    for mesh in four:
        assert mesh["phases"][0][2:] == pytest.approx(two[0]["phases"][0][2:], rel=1e-9)
        assert mesh["trainable"] == two[0]["trainable"], "all shards together"
    assert [rank["weights"] for rank in four[:2]] == [rank["weights"] for rank in four[2:]], "replicas differ"
    assert four[0]["weights"] != four[1]["weights"], "the network was not divided"
    expected, found = saved(tmp_path / "two"), saved(tmp_path / "four")
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].shape == tensor.shape
        assert found[name].numpy() == pytest.approx(tensor.numpy(), rel=1e-7, abs=1e-10), name


@pytest.mark.parametrize("seed", range(2))
def test_a_stopped_mesh_resumes_bit_for_bit(groups, digits_folder, tmp_path, seed):
    gate.resumes(groups[4], digits_folder, tmp_path, TENSOR, random.Random(seed))
