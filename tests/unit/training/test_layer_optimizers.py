"""LARS and LAMB against their papers' formulas, written out number by number."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from paceline.records.settings import TrainSettings
from paceline.training import checkpoint
from paceline.training.optim.build_optimizer import build_optimizer

GRADIENTS = ([[0.5, -1.0], [2.0, 0.0]], [[-0.25, 0.5], [1.0, 3.0]], [[1.0, 1.0], [-1.0, 0.5]])
START = [[3.0, 0.0], [0.0, 4.0]]


def stepped(settings: TrainSettings, rates: list[float], *, bias: bool = False) -> torch.Tensor:
    """A parameter after three steps, each at its own rate; a vector of the same numbers where it is a bias."""
    parameter = nn.Parameter(
        torch.tensor(START, dtype=torch.float64).flatten() if bias else torch.tensor(START).double()
    )
    optimizer = build_optimizer(settings, [parameter])
    for gradient, rate in zip(GRADIENTS, rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        parameter.grad = torch.tensor(gradient, dtype=torch.float64).reshape(parameter.shape)
        optimizer.step()
    return parameter.detach().flatten()


def length(numbers: list[float]) -> float:
    return math.sqrt(sum(number * number for number in numbers))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("rates", [[10.0, 10.0, 10.0], [10.0, 1.0, 4.0]])
def test_lars_is_that_of_its_paper(momentum, rates):
    """You et al. 2017, algorithm 1, with η = 0.001 and β = 0.01."""
    w, v = [3.0, 0.0, 0.0, 4.0], [0.0] * 4
    for matrix, rate in zip(GRADIENTS, rates, strict=True):
        g = [number for row in matrix for number in row]
        trust = 0.001 * length(w) / (length(g) + 0.01 * length(w))
        v = [momentum * vi + rate * trust * (gi + 0.01 * wi) for vi, gi, wi in zip(v, g, w, strict=True)]
        w = [wi - vi for wi, vi in zip(w, v, strict=True)]
    found = stepped(TrainSettings(optimizer="lars", momentum=momentum, weight_decay=0.01, epsilon=1e-30), rates)
    assert found.tolist() == pytest.approx(w, rel=1e-12)


def test_the_first_step_of_lars_by_hand():
    """|w| = 5, |∇| = √5.25: 0.001 · 5 / (2.29129 + 0.05) = 0.00213557 of the rate, along ∇ + 0.01 w."""
    parameter = nn.Parameter(torch.tensor(START, dtype=torch.float64))
    parameter.grad = torch.tensor(GRADIENTS[0], dtype=torch.float64)
    build_optimizer(TrainSettings(optimizer="lars", lr=10.0, weight_decay=0.01), [parameter]).step()
    assert parameter[0].tolist() == pytest.approx([3 - 0.0213557 * 0.53, 0.0213557], abs=1e-7)


def test_a_bias_takes_the_plain_step_of_sgd_under_lars():
    """At η of the rate: neither ratio nor decay."""
    settings = TrainSettings(optimizer="lars", momentum=0.9, weight_decay=0.01)
    plain = TrainSettings(optimizer="sgd", momentum=0.9)
    # At one rate it does not matter that LARS has it inside the momentum.
    moved, expected = stepped(settings, [100.0] * 3, bias=True), stepped(plain, [0.1] * 3, bias=True)
    assert torch.allclose(moved, expected, rtol=1e-12)
    assert not torch.allclose(stepped(settings, [100.0] * 3), expected)


@pytest.mark.parametrize("rates", [[0.1, 0.1, 0.1], [0.1, 0.01, 0.04]])
def test_lamb_is_that_of_its_paper(rates):
    """You et al. 2020, algorithm 2, with λ = 0.1 and ε = 1e-6."""
    w, m, v = [3.0, 0.0, 0.0, 4.0], [0.0] * 4, [0.0] * 4
    for t, (matrix, rate) in enumerate(zip(GRADIENTS, rates, strict=True), start=1):
        g = [number for row in matrix for number in row]
        m = [0.9 * mi + 0.1 * gi for mi, gi in zip(m, g, strict=True)]
        v = [0.999 * vi + 0.001 * gi * gi for vi, gi in zip(v, g, strict=True)]
        r = [mi / (1 - 0.9**t) / (math.sqrt(vi / (1 - 0.999**t)) + 1e-6) for mi, vi in zip(m, v, strict=True)]
        u = [ri + 0.1 * wi for ri, wi in zip(r, w, strict=True)]
        w = [wi - rate * length(w) / length(u) * ui for wi, ui in zip(w, u, strict=True)]
    found = stepped(TrainSettings(optimizer="lamb", weight_decay=0.1), rates)
    assert found.tolist() == pytest.approx(w, rel=1e-12)


def test_a_bias_takes_the_plain_step_of_adam_under_lamb():
    settings = TrainSettings(optimizer="lamb", weight_decay=0.1, epsilon=1e-8)
    rates = [0.1, 0.01, 0.04]
    plain = stepped(TrainSettings(optimizer="adam"), rates, bias=True)
    assert torch.allclose(stepped(settings, rates, bias=True), plain, rtol=1e-12)


@pytest.mark.parametrize("name", ["lars", "lamb"])
def test_a_layer_leaves_zero_and_is_left_alone_without_a_gradient(name):
    layer, idle = (nn.Parameter(torch.zeros(2, 2)) for _ in range(2))
    optimizer = build_optimizer(
        TrainSettings(optimizer=name, lr=0.1, momentum=0.5 if name == "lars" else 0), [layer, idle]
    )
    layer.grad = torch.ones(2, 2)
    optimizer.step()
    assert layer.isfinite().all() and (layer < 0).all()
    assert not idle.any()
    layer.grad = torch.zeros(2, 2)
    optimizer.step()
    assert layer.isfinite().all()


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("lars", {}, {"weight_decay": 0.0005, "momentum": 0.0, "eps": 1e-9}),
        ("lars", {"momentum": 0.9, "weight_decay": 0.0}, {"weight_decay": 0.0, "momentum": 0.9}),
        ("lamb", {}, {"weight_decay": 0.01, "eps": 1e-6}),
        ("adam", {"epsilon": 1e-7}, {"eps": 1e-7}),
        ("adadelta", {"epsilon": 1e-7, "rho": 0.95}, {"eps": 1e-7, "rho": 0.95}),
        ("adadelta", {}, {"eps": 1e-6, "rho": 0.9}),
    ],
)
def test_defaults_are_the_optimizers_own_unless_given(name, options, expected):
    defaults = build_optimizer(TrainSettings(optimizer=name, **options), [nn.Parameter(torch.ones(1))]).defaults
    assert {key: defaults[key] for key in expected} == expected


@pytest.mark.parametrize("name", ["lars", "lamb"])
def test_a_checkpoint_restores_their_state_bit_for_bit(tmp_path, name):
    settings = TrainSettings(optimizer=name, lr=0.1, momentum=0.9 if name == "lars" else 0)

    def made(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten())
        model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        return model, build_optimizer(settings, model.parameters())

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        model(torch.ones(2, 3, 5, 5)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    model, optimizer = made(0)
    step(model, optimizer)
    standing = checkpoint.CheckpointState(
        point_id="p", seed=1, layout={"data": 1}, step=1, epochs=(), epoch_elapsed_s=0.0, host="h", versions={}
    )
    folder = checkpoint.write_checkpoint(tmp_path, standing, checkpoint.state_tensors(model, optimizer))
    other, other_optimizer = made(1)
    checkpoint.restore(other, other_optimizer, checkpoint.read_checkpoint(folder)[1])
    for pair in ((model, optimizer), (other, other_optimizer)):
        step(*pair)
    before, after = checkpoint.state_tensors(model, optimizer), checkpoint.state_tensors(other, other_optimizer)
    assert before.keys() == after.keys() and any(name.startswith("optimizer.") for name in before)
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
