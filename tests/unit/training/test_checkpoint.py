from __future__ import annotations

import os
import stat
from dataclasses import replace

import pytest
import torch

from paceline.errors import StorageError
from paceline.records.run import CachedFeatures
from paceline.training import checkpoint

TWO = {"data": 2}


def standing(step: int) -> checkpoint.CheckpointState:
    return checkpoint.CheckpointState(
        point_id="p", seed=1, layout=TWO, step=step, epochs=(), epoch_elapsed_s=0.5, host="h", versions={"torch": "2"}
    )


def test_round_trip_and_only_the_newest_stay(tmp_path):
    for step in (5, 10, 15):
        checkpoint.write_checkpoint(tmp_path, standing(step), {"x": torch.full((3,), float(step))})
    assert [path.name for path in checkpoint.checkpoint_folders(tmp_path)] == ["step-000015", "step-000010"]
    path, found, tensors = checkpoint.newest_checkpoint(tmp_path, "p", 1, TWO)
    assert (path.name, found) == ("step-000015", standing(15))
    assert tensors["x"].tolist() == [15.0] * 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000010", "step-000015"]


def test_features_of_an_earlier_phase_are_kept(tmp_path):
    made = CachedFeatures(samples=30, size=4, ready_s=1.5, found=False)
    path = checkpoint.write_checkpoint(tmp_path, replace(standing(5), features=made), {})
    assert checkpoint.read_checkpoint(path)[0].features == made


def test_a_checkpoint_is_on_the_disk_before_it_is_acknowledged(tmp_path, monkeypatch):
    """Every file, the folder that holds them, then the rename, then the folder that holds that."""
    calls = []
    fsync, rename = os.fsync, os.rename

    def watched_fsync(handle):
        calls.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "rename", lambda *a: (calls.append("rename"), rename(*a)))
    checkpoint.write_checkpoint(tmp_path, standing(5), {"x": torch.zeros(1)})
    assert calls == ["file", "file", "file", "folder", "rename", "folder"]


@pytest.mark.parametrize(
    "other", [("q", 1, TWO), ("p", 2, TWO), ("p", 1, {"data": 3}), ("p", 1, {"data": 1, "model": 2})]
)
def test_a_checkpoint_of_another_run_is_never_taken(tmp_path, other):
    checkpoint.write_checkpoint(tmp_path, standing(5), {"x": torch.zeros(1)})
    assert checkpoint.newest_checkpoint(tmp_path, *other) is None


@pytest.mark.parametrize("name", ["tensors.safetensors", "state.json", "complete"])
@pytest.mark.parametrize("harm", ["cut", "flip", "gone", "empty"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path, name, harm):
    checkpoint.write_checkpoint(tmp_path, standing(5), {"x": torch.zeros(4)})
    newest = checkpoint.write_checkpoint(tmp_path, standing(10), {"x": torch.ones(4)})
    file = newest / name
    data = bytearray(file.read_bytes())
    if harm == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif harm == "flip":
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    elif harm == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
    with pytest.raises(StorageError):
        checkpoint.read_checkpoint(newest)
    found = checkpoint.newest_checkpoint(tmp_path, "p", 1, TWO)
    assert found is not None and found[1].step == 5


def test_a_folder_of_another_name_is_left_alone(tmp_path):
    checkpoint.write_checkpoint(tmp_path, standing(5), {"x": torch.zeros(1)})
    (tmp_path / "step-000005.bak").mkdir()
    checkpoint.write_checkpoint(tmp_path, standing(6), {"x": torch.zeros(1)})
    assert [path.name for path in checkpoint.checkpoint_folders(tmp_path)] == ["step-000006", "step-000005"]


def test_tied_weights_are_saved_and_stay_tied(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    folder = checkpoint.write_checkpoint(tmp_path, standing(1), checkpoint.state_tensors(model, optimizer))
    before = model[0].weight.detach().clone()
    with torch.no_grad():
        model[0].weight.zero_()
    checkpoint.restore(model, optimizer, checkpoint.read_checkpoint(folder)[1])
    assert torch.equal(model[1].weight, before) and model[0].weight is model[1].weight


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.Adadelta])
def test_restoring_keeps_bits_and_memory_layout(tmp_path, optimizer):
    def make(seed):
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Flatten())
        model.to(memory_format=torch.channels_last)
        return model, optimizer(model.parameters())

    model, optim = make(0)
    model(torch.randn(2, 3, 5, 5)).sum().backward()
    optim.step()
    other, other_optim = make(1)
    folder = checkpoint.write_checkpoint(tmp_path, standing(1), checkpoint.state_tensors(model, optim))
    checkpoint.restore(other, other_optim, checkpoint.read_checkpoint(folder)[1])
    before, after = checkpoint.state_tensors(model, optim), checkpoint.state_tensors(other, other_optim)
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name
        assert tensor.stride() == after[name].stride(), name
