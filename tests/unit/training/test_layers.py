"""Layers of our own do what PyTorch's do."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from paceline.training.models.layers import Dropout, Flatten, dropout_mask

SHAPES = st.sampled_from([(), (1,), (5,), (3, 7), (2, 3, 4, 5), (4, 1, 1, 9), (2, 16, 3, 3), (0, 4)])


def test_flatten_is_keras_order_and_a_view_of_images_that_lie_channels_last():
    images = torch.arange(2 * 3 * 4 * 5.0).view(2, 4, 5, 3).permute(0, 3, 1, 2)
    flat = Flatten()(images)
    assert torch.equal(flat, torch.arange(2 * 3 * 4 * 5.0).view(2, 60))
    assert flat.data_ptr() == images.data_ptr()
    assert torch.equal(Flatten()(images.contiguous()), flat), "the same order however they lie"


@given(shape=SHAPES, p=st.floats(0, 1) | st.sampled_from([0.25, 0.5]), seed=st.integers(0, 2**32))
def test_dropout_leaves_out_or_enlarges_and_its_gradient_does_the_same(shape, p, seed):
    values = torch.rand(shape, dtype=torch.float64).add_(1.0).requires_grad_()
    torch.manual_seed(seed)
    dropped = Dropout(p)(values)
    stays = dropped != 0
    grown = 1 / (1 - p) if p < 1 else 0.0
    assert torch.allclose(dropped, values * stays * grown, rtol=1e-12)
    dropped.sum().backward()
    assert torch.allclose(values.grad, stays * torch.tensor(grown).double(), rtol=1e-6)
    torch.manual_seed(seed)
    assert torch.equal(Dropout(p)(values), dropped), "the seed decides"
    assert torch.equal(Dropout(p).eval()(values), values)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_as_many_are_left_out_as_were_asked_for_wherever_they_are(p, layout):
    torch.manual_seed(3)
    values = torch.ones(40, 50, 10, 20).to(memory_format=layout)
    stays = dropout_mask(values, p).double()
    for axes in ((0, 1, 2, 3), (1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)):
        means = stays.mean(dim=axes)
        error = math.sqrt(p * (1 - p) * means.numel() / stays.numel())
        assert (means - (1 - p)).abs().max() <= 5 * error + 1 / 65536


def test_neighbours_are_drawn_apart():
    """Four draws come out of one word of 64 bits, and its sign is one of them."""
    torch.manual_seed(4)
    stays = dropout_mask(torch.ones(400_000), 0.5).double().view(-1, 4)
    assert (stays.mean(0) - 0.5).abs().max() < 0.01
    together = torch.corrcoef(stays.T) - torch.eye(4, dtype=torch.float64)
    assert together.abs().max() < 0.02
    later = torch.corrcoef(torch.stack((stays.flatten()[:-4], stays.flatten()[4:])))[0, 1]
    assert abs(later) < 0.02


@pytest.mark.parametrize(
    "values",
    [
        torch.rand(6, 8, 10)[:, ::2],
        torch.rand(3, 5).expand(4, 3, 5),
        torch.rand(2, 16, 6, 6).to(memory_format=torch.channels_last),
        torch.rand(7, 3, 1, 1).to(memory_format=torch.channels_last),
    ],
)
def test_however_values_lie_they_are_dropped_where_their_gradients_are(values):
    values = values.add(1.0).requires_grad_() if values.is_contiguous() else (values + 1.0).requires_grad_()
    dropped = Dropout(0.5)(values)
    dropped.sum().backward()
    assert torch.equal(dropped != 0, values.grad != 0) and 0 < (dropped == 0).sum() < dropped.numel()
    assert torch.allclose(dropped, 2 * values * (dropped != 0))


def test_in_bfloat16_nothing_grows_by_more_than_it_should():
    """1 / (1 - 0.15) itself is not a number of bfloat16, and would be off by a quarter of a per cent."""
    values = torch.full((100_000,), 85.0, dtype=torch.bfloat16)
    assert Dropout(0.15)(values).unique().tolist() == [0.0, 100.0]


def test_a_dropped_layer_learns_as_with_pytorchs():
    """The mean of many passes is that of the layer without dropout, for both."""
    torch.manual_seed(5)
    linear, values = nn.Linear(64, 3), torch.rand(32, 64)
    means = []
    for dropout in (Dropout(0.25), nn.Dropout(0.25)):
        means.append(torch.stack([linear(dropout(values)) for _ in range(2000)]).mean(0))
    assert torch.allclose(means[0], linear(values), atol=0.05)
    assert torch.allclose(means[0], means[1], atol=0.05)
