from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from paceline.records.settings import TrainSettings
from paceline.training import loop
from paceline.training.batches import Batch
from paceline.training.loop import micro_batches
from paceline.training.objective import Objective


def batch(samples: int) -> Batch:
    rows = max(samples, 1)
    return Batch(torch.arange(rows).reshape(rows, 1), torch.arange(rows), samples, 100)


@pytest.mark.parametrize(
    ("samples", "parts", "sizes"), [(8, 1, [8]), (8, 2, [4, 4]), (7, 3, [3, 2, 2]), (2, 5, [1, 1]), (1, 4, [1])]
)
def test_parts_hold_every_sample_once_and_none_is_empty(samples, parts, sizes):
    found = micro_batches(batch(samples), parts)
    assert [part.samples for part in found] == [len(part.inputs) for part in found] == sizes
    assert torch.cat([part.labels for part in found]).tolist() == list(range(samples))
    assert {part.samples_global for part in found} == {100}, "each weighs as in the whole step"


def test_a_share_without_samples_is_one_part_of_weight_zero():
    assert [(part.samples, len(part.inputs)) for part in micro_batches(batch(0), 4)] == [(0, 1)]


@pytest.mark.parametrize(("samples", "parts", "largest"), [(8, 1, 8), (8, 4, 2), (7, 3, 3)])
def test_the_pass_before_the_first_step_needs_no_more_memory_than_a_step(samples, parts, largest):
    layer, seen = nn.Linear(1, 10), []
    layer.register_forward_hook(lambda module, inputs, scores: seen.append(len(scores)))
    given = Batch(torch.rand(samples, 1), torch.zeros(samples, dtype=torch.int64), samples, samples)
    point = SimpleNamespace(train=TrainSettings(accumulate=parts))
    rank: Any = SimpleNamespace(
        place=SimpleNamespace(manifest=SimpleNamespace(point=point)),
        inputs=SimpleNamespace(batches=SimpleNamespace(order=lambda epoch: None, take=lambda order, number: given)),
        optim=SimpleNamespace(strategy=SimpleNamespace(module=layer)),
        network=SimpleNamespace(participation=None),
        objective=Objective(label_smoothing=0.0, device=torch.device("cpu")),
    )
    loop._warm_up_pass(rank)
    assert seen == [largest] and layer.weight.grad is not None
