"""Weights of any file into a network, or a sentence."""

from __future__ import annotations

import hashlib
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from paceline.errors import ModelError
from paceline.training.models.weights import load_into, read_weights, tensors_sha256
from paceline.training.session import weights_sha256


def net(width: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, width, 3), nn.BatchNorm2d(width))


def saved(path: Path, held: object) -> Path:
    if path.suffix == ".safetensors":
        save_file(held, path)
    else:
        torch.save(held, path)
    return path


def fitted(path: Path, network: nn.Module) -> dict[str, torch.Tensor]:
    load_into(network, read_weights(path), spare=("fc.",), where=path.name)
    return network.state_dict()


@pytest.mark.parametrize("ending", ["safetensors", "pth", "pt", "bin"])
def test_weights_come_back_as_they_were(tmp_path, ending):
    source = net().state_dict()
    found = fitted(saved(tmp_path / f"w.{ending}", source), net())
    assert all(torch.equal(found[name], tensor) for name, tensor in source.items())


@pytest.mark.parametrize("prefix", ["module.", "model.base.", "base.", "_orig_mod.", "model."])
def test_names_may_have_what_ddp_and_checkpoints_put_before_them(tmp_path, prefix):
    source = net().state_dict()
    held = {prefix + name: tensor for name, tensor in source.items()} | {"optimizer.x": torch.zeros(2)}
    held |= {} if prefix == "model.base." else {prefix + "fc.weight": torch.zeros(2)}
    found = fitted(saved(tmp_path / "w.pth", held), net())
    assert all(torch.equal(found[name], tensor) for name, tensor in source.items())


@pytest.mark.parametrize("inside", ["state_dict", "model_state_dict", "model"])
def test_weights_are_found_inside_a_checkpoint(tmp_path, inside):
    source = net().state_dict()
    found = fitted(saved(tmp_path / "w.pth", {inside: source, "epoch": 3}), net())
    assert all(torch.equal(found[name], tensor) for name, tensor in source.items())


def test_a_last_layer_is_left_out_and_a_count_of_batches_may_lack(tmp_path):
    source = net().state_dict()
    del source["1.num_batches_tracked"]
    fitted(saved(tmp_path / "w.pth", {**source, "fc.weight": torch.zeros(10, 4)}), net())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda held: held.pop("1.weight"), "lacks 1 of the 7 tensors of this network, '1.weight' first"),
        (lambda held: held.update({"2.weight": torch.zeros(3)}), "does not have, '2.weight' first"),
        (lambda held: held.update({"0.bias": torch.zeros(5)}), "'0.bias' in the shape (5,)"),
        (lambda held: held.update({"0.bias": torch.full((4,), torch.nan)}), "'0.bias' that are not finite"),
        (lambda held: held.update({"lr": 0.1}), "holds 'lr', which is a float"),
        (lambda held: held.clear(), "holds no weights by name"),
    ],
)
def test_what_does_not_fit_is_named_and_changes_nothing(tmp_path, change, said):
    held = dict(net().state_dict())
    change(held)
    network = net()
    before = tensors_sha256(network.state_dict())
    with pytest.raises(ModelError) as caught:
        fitted(saved(tmp_path / "w.pth", held), network)
    assert said in caught.value.what
    assert tensors_sha256(network.state_dict()) == before


class Hostile:
    """What runs when it is unpickled."""

    def __init__(self, witness: Path) -> None:
        self._witness = witness

    def __reduce__(self):
        return Path.touch, (self._witness,)


def hostile_pickle(path: Path, witness: Path) -> None:
    path.write_bytes(pickle.dumps({"0.weight": Hostile(witness)}))


def hostile_zip(path: Path, witness: Path) -> None:
    torch.save(net().state_dict(), path)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, pickle.dumps(Hostile(witness)) if name.endswith("data.pkl") else data)


def cut(path: Path, witness: Path) -> None:
    torch.save(net().state_dict(), path)
    path.write_bytes(path.read_bytes()[:400])


def text(path: Path, witness: Path) -> None:
    path.write_text("<!DOCTYPE html>")


def empty(path: Path, witness: Path) -> None:
    path.write_bytes(b"")


def whole_model(path: Path, witness: Path) -> None:
    torch.save(net(), path)


@pytest.mark.parametrize("make", [hostile_pickle, hostile_zip, cut, text, empty, whole_model])
def test_a_hostile_or_damaged_file_is_refused_and_nothing_of_it_is_run(tmp_path, make):
    path, witness = tmp_path / "w.pth", tmp_path / "was-run"
    make(path, witness)
    with pytest.raises(ModelError, match="was not read: it is damaged, or holds more than weights"):
        read_weights(path)
    assert not witness.exists()


@pytest.mark.parametrize("data", [b"", b"<html>", b"\xff" * 8 + b"{}", b"\x02\0\0\0\0\0\0\0{}extra"])
def test_a_damaged_safetensors_file_is_refused(tmp_path, data):
    (tmp_path / "w.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match="is not a whole safetensors file"):
        read_weights(tmp_path / "w.safetensors")


def test_missing_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(ModelError, match="cannot be read"):
        read_weights(tmp_path / "w.pth")
    with pytest.raises(ModelError, match="is not a file of weights"):
        read_weights(tmp_path / "w.pkl")


def test_the_sum_is_of_values_not_of_the_order_they_came_in():
    held = net().state_dict()
    assert tensors_sha256(dict(reversed(held.items()))) == tensors_sha256(held)
    other = {**held, "0.bias": held["0.bias"] + 1}
    assert tensors_sha256(other) != tensors_sha256(held)


def test_how_tensors_lie_in_memory_makes_no_difference():
    held = {"w": torch.rand(2, 3, 4, 5)}
    turned = {"w": held["w"].contiguous(memory_format=torch.channels_last)}
    assert tensors_sha256(turned) == tensors_sha256(held)


def test_weights_of_a_finished_run_are_known_by_names_and_values_in_the_order_of_the_model():
    """Results of any version are compared by it."""
    model = nn.Linear(2, 1)
    nn.init.constant_(model.weight, 1.0)
    nn.init.constant_(model.bias, -2.0)
    expected = hashlib.sha256(b"weight" + b"\0\0\x80\x3f" * 2 + b"bias" + b"\0\0\0\xc0")
    assert weights_sha256(model) == expected.hexdigest()
