from __future__ import annotations

import pytest
import torch

from paceline import catalog
from paceline.records.study import TrainSettings
from paceline.train.optim.build import build_optimizer


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "adadelta"])
def test_every_optimizer_takes_a_step_like_the_plain_one(name):
    """Fused or not, the update is the one that PyTorch's defaults make."""
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.full((5, 3), 2.0)) for _ in range(2))
    gradient = torch.randn(5, 3)
    plain = catalog.load("optimizer", name)([theirs], lr=0.1, foreach=False)
    mine = build_optimizer(TrainSettings(optimizer=name, lr=0.1), [ours])
    for _ in range(3):
        for parameter, optimizer in ((ours, mine), (theirs, plain)):
            parameter.grad = gradient.clone()
            optimizer.step()
    assert torch.allclose(ours, theirs, rtol=1e-6)
    assert not torch.equal(ours, torch.full((5, 3), 2.0))


def test_weight_decay_is_the_optimizers_own_unless_it_is_given():
    parameter = [torch.nn.Parameter(torch.ones(1))]
    assert build_optimizer(TrainSettings(optimizer="adamw"), parameter).defaults["weight_decay"] == 0.01
    assert build_optimizer(TrainSettings(optimizer="adamw", weight_decay=0.0), parameter).defaults["weight_decay"] == 0
    assert build_optimizer(TrainSettings(optimizer="sgd", momentum=0.9), parameter).defaults["momentum"] == 0.9


def test_frozen_parameters_are_left_alone():
    frozen = torch.nn.Parameter(torch.ones(1), requires_grad=False)
    moving = torch.nn.Parameter(torch.ones(1))
    optimizer = build_optimizer(TrainSettings(optimizer="adam"), [frozen, moving])
    assert optimizer.param_groups[0]["params"] == [moving]
