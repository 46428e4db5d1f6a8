"""The optimizers that are PyTorch's against their papers' formulas, written out number by number."""

from __future__ import annotations

import math

import pytest
import torch

from paceline.records.settings import TrainSettings
from paceline.training.optim.build_optimizer import build_optimizer

GRADIENTS = ([0.5, -1.0, 2.0, 0.0], [-0.25, 0.5, 1.0, 3.0], [1.0, 1.0, -1.0, 0.5])
RATES = [0.1, 0.01, 0.04]
START = [3.0, 0.0, -1.0, 4.0]


def stepped(settings: TrainSettings) -> list[float]:
    """A parameter after three steps, each at its own rate."""
    parameter = torch.nn.Parameter(torch.tensor(START, dtype=torch.float64))
    optimizer = build_optimizer(settings, [parameter])
    for gradient, rate in zip(GRADIENTS, RATES, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    return parameter.tolist()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [None, 0.1])
def test_sgd_is_that_of_its_paper(momentum, decay):
    """Goyal et al. 2017, equation 9, with the gradient of λ ÷ 2 · w²: the rate is outside the momentum."""
    w, u = list(START), [0.0] * 4
    for g, rate in zip(GRADIENTS, RATES, strict=True):
        u = [momentum * ui + gi + (decay or 0.0) * wi for ui, gi, wi in zip(u, g, w, strict=True)]
        w = [wi - rate * ui for wi, ui in zip(w, u, strict=True)]
    found = stepped(TrainSettings(optimizer="sgd", momentum=momentum, weight_decay=decay))
    assert found == pytest.approx(w, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "given", "l2", "decoupled"),
    [("adam", None, 0.0, 0.0), ("adam", 0.1, 0.1, 0.0), ("adamw", None, 0.0, 0.01), ("adamw", 0.1, 0.0, 0.1)],
)
def test_adam_and_adamw_are_those_of_their_papers(name, given, l2, decoupled):
    """Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2, whose schedule is the rate itself."""
    w, m, v = list(START), [0.0] * 4, [0.0] * 4
    for t, (gradient, rate) in enumerate(zip(GRADIENTS, RATES, strict=True), start=1):
        g = [gi + l2 * wi for gi, wi in zip(gradient, w, strict=True)]
        m = [0.9 * mi + 0.1 * gi for mi, gi in zip(m, g, strict=True)]
        v = [0.999 * vi + 0.001 * gi * gi for vi, gi in zip(v, g, strict=True)]
        r = [mi / (1 - 0.9**t) / (math.sqrt(vi / (1 - 0.999**t)) + 1e-8) for mi, vi in zip(m, v, strict=True)]
        w = [wi - rate * (ri + decoupled * wi) for wi, ri in zip(w, r, strict=True)]
    assert stepped(TrainSettings(optimizer=name, weight_decay=given)) == pytest.approx(w, rel=1e-12)


@pytest.mark.parametrize(("given", "rho", "epsilon"), [({}, 0.9, 1e-6), ({"rho": 0.95, "epsilon": 1e-7}, 0.95, 1e-7)])
def test_adadelta_is_that_of_its_paper(given, rho, epsilon):
    """Zeiler 2012, algorithm 1, with its update multiplied by the rate."""
    w, squares, updates = list(START), [0.0] * 4, [0.0] * 4
    for g, rate in zip(GRADIENTS, RATES, strict=True):
        squares = [rho * si + (1 - rho) * gi * gi for si, gi in zip(squares, g, strict=True)]
        root = [math.sqrt((ui + epsilon) / (si + epsilon)) for ui, si in zip(updates, squares, strict=True)]
        delta = [ri * gi for ri, gi in zip(root, g, strict=True)]
        updates = [rho * ui + (1 - rho) * di * di for ui, di in zip(updates, delta, strict=True)]
        w = [wi - rate * di for wi, di in zip(w, delta, strict=True)]
    assert stepped(TrainSettings(optimizer="adadelta", **given)) == pytest.approx(w, rel=1e-12)


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
