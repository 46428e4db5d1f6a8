"""The division of parameters over servers, and that a part steps as it would in the whole."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from paceline.errors import ModelError
from paceline.records.settings import TrainSettings
from paceline.training.optim.build_optimizer import build_optimizer
from paceline.training.parallel.server import Shard
from paceline.training.parallel.shards import FlatParameters, shards, slots

OPTIMIZERS = {
    "sgd": TrainSettings(optimizer="sgd", lr=0.1),
    "momentum": TrainSettings(optimizer="sgd", lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": TrainSettings(optimizer="adam", lr=0.01, weight_decay=0.1),
    "adamw": TrainSettings(optimizer="adamw", lr=0.01),
    "adadelta": TrainSettings(optimizer="adadelta", lr=1.0),
}


@given(st.integers(0, 10_000), st.integers(1, 9))
def test_every_number_is_on_one_server_and_parts_are_equal(count, servers):
    parts = shards(count, servers)
    assert [number for part in parts for number in range(part.start, part.stop)] == list(range(count))
    sizes = [part.stop - part.start for part in parts]
    assert len(sizes) == servers and max(sizes) - min(sizes) <= 1


def model() -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8, 5)).double()
    made.to(memory_format=torch.channels_last)
    made[2].bias.requires_grad_(False)
    return made


def test_a_line_holds_every_trainable_number_once_in_the_layout_of_its_parameter():
    trained = model()
    line = FlatParameters(trained)
    numbers = torch.zeros(line.count, dtype=line.dtype)
    views = line.views(numbers)
    for parameter, view in zip(line.parameters, views, strict=True):
        view.copy_(parameter.detach())
        assert view.stride() == parameter.stride()
    assert line.count == 3 * 8 * 9 + 8 + 8 * 5, "a parameter that is not trained is not in it"
    assert numbers.sum().item() == pytest.approx(sum(p.sum().item() for p in line.parameters))
    assert all(torch.equal(view, p) for view, p in zip(views, line.parameters, strict=True))


def test_parameters_of_two_types_are_refused():
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    with pytest.raises(ModelError, match=r"several types: torch\.float32, torch\.float64"):
        FlatParameters(mixed)


@pytest.mark.parametrize(
    ("name", "each", "common"),
    [
        ("sgd", (), ()),
        ("momentum", ("momentum_buffer",), ()),
        ("adam", ("exp_avg", "exp_avg_sq"), ("step",)),
        ("adamw", ("exp_avg", "exp_avg_sq"), ("step",)),
        ("adadelta", ("acc_delta", "square_avg"), ("step",)),
    ],
)
def test_what_an_optimizer_keeps(name, each, common):
    found = slots(OPTIMIZERS[name], torch.float64)
    assert (found.each, tuple(found.common)) == (each, common)
    assert found.length(10) == len(common) + 10 * len(each)


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parts_step_as_the_whole_does(name, servers):
    """Also when half-way all parts are thrown away and made anew of what they said, and while the rate changes."""
    whole, settings = model(), OPTIMIZERS[name]
    line = FlatParameters(whole)
    start = torch.cat([p.detach().as_strided((p.numel(),), (1,)) for p in line.parameters])
    optimizer = build_optimizer(settings, whole.parameters())
    parts = shards(line.count, servers)
    held = [Shard(settings, start[part].clone()) for part in parts]
    generator = torch.Generator().manual_seed(1)
    for step in range(6):
        gradient = torch.randn(line.count, generator=generator, dtype=torch.float64)
        for parameter, view in zip(line.parameters, line.views(gradient), strict=True):
            parameter.grad = view.clone()
        rate = settings.lr / (1 + step)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        if step == 3:
            states = [shard.state() for shard in held]
            held = [Shard(settings, shard.values.clone()) for shard in held]
            for shard, state in zip(held, states, strict=True):
                shard.load(state)
        for shard, part in zip(held, parts, strict=True):
            shard.step(gradient[part], rate)
    together = torch.cat([shard.values for shard in held])
    for parameter, view in zip(line.parameters, line.views(together), strict=True):
        torch.testing.assert_close(view, parameter.detach(), rtol=1e-12, atol=1e-15)
    assert not torch.equal(together, start)


def test_a_part_that_has_not_stepped_says_zeros():
    shard = Shard(OPTIMIZERS["adam"], torch.ones(4))
    assert shard.state().tolist() == [0.0] * 9
