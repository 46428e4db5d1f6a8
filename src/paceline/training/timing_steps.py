"""How long one rank takes for one sample: a few steps before any run, for an estimate of what a study will take.

Left out: starting the ranks, what they exchange, evaluation, and whatever ranks side by side cost one another.
"""

from __future__ import annotations

import time
from pathlib import Path

import torch
from torch.nn import functional

from paceline.data.cache import open_dataset
from paceline.records.run import Manifest
from paceline.training.batches import Samples
from paceline.training.group import choose_device
from paceline.training.models.build_model import build_model
from paceline.training.optim.build_optimizer import build_optimizer
from paceline.training.precision import WEIGHTS, lay_out
from paceline.training.session import scaling

_WARM_UP, _STEPS = 3, 20
_FEWEST = 2
"""Samples of a step: batch-norm takes no fewer."""
_MOST_SAMPLES = 1024
"""Of one step: beyond it the time of a sample hardly changes, and the rehearsal should be short."""
_ENOUGH_S = 3.0


def sample_s(manifest: Manifest) -> float:
    """Seconds of one rank for one sample, forward to optimizer step, over a few steps of a manifest's model."""
    point, held = manifest.point, open_dataset(Path(manifest.data_folder))
    dataset, device, dtype = held.dataset, choose_device(point.device, 0), WEIGHTS[point.train.precision]
    model = build_model(
        point.model.name,
        point.model.options,
        shape=dataset.shape,
        classes=dataset.classes,
        model_file=Path(manifest.model_file) if manifest.model_file else None,
    )
    lay_out(model, point.train, device)
    mean, std = scaling(dataset, pixels=getattr(model, "wants_pixels", False))
    samples = Samples(held.train_images, held.train_labels, mean=mean, std=std, device=device, dtype=dtype)
    optimizer = build_optimizer(point.train, model.parameters())
    batch = max(_FEWEST, min(point.batch_global // point.data_size, _MOST_SAMPLES, dataset.train))
    # With few samples first: a large network would take minutes for a thousand images.
    for _ in range(_WARM_UP):
        _step(model, optimizer, samples, _FEWEST)
    started_at = time.perf_counter()
    _step(model, optimizer, samples, _FEWEST)
    few_s = time.perf_counter() - started_at
    batch = max(_FEWEST, min(batch, int(_ENOUGH_S * _FEWEST / few_s)))
    _step(model, optimizer, samples, batch)
    num_steps, started_at = 0, time.perf_counter()
    while num_steps < _STEPS and time.perf_counter() - started_at < _ENOUGH_S:
        _step(model, optimizer, samples, batch)
        num_steps += 1
    return (time.perf_counter() - started_at) / (num_steps * batch)


def _step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, samples: Samples, batch: int) -> None:
    inputs, labels = samples.gather(torch.arange(batch))
    loss = functional.cross_entropy(model(inputs), labels.to(torch.int64))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()  # device sync: a GPU's step is over when its loss is here
