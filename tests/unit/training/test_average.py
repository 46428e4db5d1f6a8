from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from paceline.training.optim.average import Average


def test_the_average_is_the_weighted_mean_of_all_weights_so_far():
    """With d = exp(-1 / (0.5 · 4)): each step back weighs d times as much, the start nothing."""
    model = nn.Linear(1, 1, bias=False).double()
    average = Average(model, epochs=0.5, steps_per_epoch=4)
    seen: list[float] = []
    decay = math.exp(-0.5)
    for step, value in enumerate((4.0, 1.0, -2.0, 8.0), start=1):
        nn.init.constant_(model.weight, value)
        average.update(step)
        seen.append(value)
        weights = [decay ** (step - i) for i in range(1, step + 1)]
        mean = sum(w * x for w, x in zip(weights, seen, strict=True)) / sum(weights)
        assert average.tensors()["average.weight"].item() == pytest.approx(mean, rel=1e-12)


def test_a_model_has_its_own_weights_again_bit_for_bit():
    torch.manual_seed(0)
    first = nn.Conv2d(2, 3, 3)
    model = nn.Sequential(first, nn.BatchNorm2d(3))
    model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    average = Average(model, epochs=1, steps_per_epoch=3)
    average.update(1)
    with torch.no_grad():
        first.weight.mul_(3)
    average.update(2)
    own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with average.in_place():
        assert torch.equal(first.weight, average.tensors()["average.0.weight"])
        assert not torch.equal(first.weight, own["0.weight"])
    assert all(torch.equal(tensor, own[name]) for name, tensor in model.state_dict().items())
    with pytest.raises(KeyError), average.in_place():
        raise KeyError
    assert torch.equal(first.weight, own["0.weight"]), "whatever happens in between"


def test_what_is_frozen_is_not_averaged():
    model = nn.Sequential(nn.Linear(2, 2).requires_grad_(False), nn.Linear(2, 2))
    average = Average(model, epochs=1, steps_per_epoch=3)
    assert list(average.tensors()) == ["average.1.weight", "average.1.bias"]
    frozen = model[0].weight.clone()
    average.update(1)
    with average.in_place():
        assert torch.equal(model[0].weight, frozen)


def test_an_average_goes_on_from_what_was_kept():
    model = nn.Linear(2, 2)
    first, second = (Average(model, epochs=2, steps_per_epoch=5) for _ in range(2))
    first.update(1)
    with torch.no_grad():
        model.weight.add_(1)
    first.update(2)
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()})
    with torch.no_grad():
        model.weight.mul_(0.5)
    for average in (first, second):
        average.update(3)
    assert all(torch.equal(tensor, second.tensors()[name]) for name, tensor in first.tensors().items())
