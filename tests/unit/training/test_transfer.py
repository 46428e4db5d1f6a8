from __future__ import annotations

import pytest
import torch
from torch import nn

from paceline.errors import ModelError
from paceline.training.models.transfer import Transfer, dense_head


def small_base() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.AdaptiveAvgPool2d(1))


def made() -> Transfer:
    torch.manual_seed(0)
    return Transfer(small_base(), dense_head(4, 5, []))


def copied(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def changed(module: nn.Module, before: dict[str, torch.Tensor]) -> set[str]:
    return {name for name, tensor in module.state_dict().items() if not torch.equal(tensor, before[name])}


def step(model: Transfer) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(6, 3, 8, 8)).square().sum().backward()
    optimizer.step()


def test_scores_are_the_head_of_the_features():
    model = made().eval()
    images = torch.randn(3, 3, 8, 8)
    assert model.features(images).shape == (3, 4)
    torch.testing.assert_close(model(images), model.head(model.features(images)))


def test_a_frozen_base_neither_learns_nor_counts_statistics_in_training_mode():
    model = made()
    model.freeze()
    model.train()
    before = copied(model.base)
    step(model)
    assert changed(model.base, before) == set()
    assert [name for name, p in model.named_parameters() if p.requires_grad] == ["head.0.weight", "head.0.bias"]
    assert all(p.grad is None for p in model.base.parameters())
    assert model.training and model.head.training
    assert not any(module.training for module in model.base.modules())


def test_features_of_a_frozen_base_are_the_same_in_either_mode():
    """Dropout and batch statistics would make them depend on the batch: then they could not be computed once."""
    model = made()
    model.freeze()
    images = torch.randn(5, 3, 8, 8)
    alone = torch.cat([model.eval().features(images[i : i + 1]) for i in range(5)])
    torch.testing.assert_close(model.train().features(images), alone)


@pytest.mark.parametrize(("batchnorm", "moved"), [("frozen", set()), ("train", {"1.running_mean", "1.running_var"})])
def test_an_unfrozen_base_learns_and_its_statistics_stay_or_move_by_choice(batchnorm, moved):
    model = made()
    model.freeze()
    model.unfreeze(batchnorm=batchnorm)
    model.train()
    before = copied(model.base)
    step(model)
    found = changed(model.base, before)
    assert {"0.weight", "1.weight"} <= found
    assert {name for name in found if "running" in name} == moved
    assert model.base[3].training  # dropout is the base's own, and learns with it


def test_evaluation_mode_holds_for_all_parts():
    model = made()
    model.unfreeze(batchnorm="frozen")
    assert not any(module.training for module in model.train().eval().modules())
    assert model.train().base[0].training


@pytest.mark.parametrize(("sizes", "parameters"), [([], 2048 * 10 + 10), ([20], 2048 * 20 + 20 + 20 * 10 + 10)])
def test_heads_of_the_published_studies(sizes, parameters):
    head = dense_head(2048, 10, sizes)
    assert sum(p.numel() for p in head.parameters()) == parameters
    assert head(torch.zeros(2, 2048)).shape == (2, 10)


@pytest.mark.parametrize("sizes", [[0], [-3], [2.5], [True], ["20"]])
def test_an_impossible_head_is_refused(sizes):
    with pytest.raises(ModelError, match="cannot be built"):
        dense_head(8, 2, sizes)
