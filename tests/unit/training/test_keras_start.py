from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from paceline.training.models.build_model import init_as_keras
from paceline.training.models.cnn import cnn_small
from paceline.training.models.transfer import Transfer


def test_kernels_fill_the_range_of_glorot_and_biases_are_zero():
    """A uniform distribution has the standard deviation of its bound divided by √3."""
    torch.manual_seed(0)
    model = cnn_small(shape=(28, 28, 1), classes=10)
    init_as_keras(model)
    fans = {"0": (9, 9 * 32), "2": (9 * 32, 9 * 64), "7": (9216, 128), "10": (128, 10)}
    for name, (inputs, outputs) in fans.items():
        weight, bias = (model.get_parameter(f"{name}.{kind}").detach() for kind in ("weight", "bias"))
        bound = math.sqrt(6 / (inputs + outputs))
        assert bound * 0.9 < weight.abs().max().item() <= bound
        assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.1)
        assert not bias.any()


def test_a_pretrained_base_is_left_as_it_is():
    base, head = nn.Conv2d(1, 2, 3), nn.Linear(2, 3)
    model = Transfer(base, head)
    before = base.weight.detach().clone(), head.weight.detach().clone()
    init_as_keras(model)
    assert torch.equal(base.weight, before[0])
    assert not torch.equal(head.weight, before[1]) and not head.bias.any()
