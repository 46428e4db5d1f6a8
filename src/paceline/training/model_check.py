"""Does the model build and fit the data? Checked once in a separate process, before any rank starts.

    python -m paceline.training.model_check [--timed] MANIFEST...

prints one JSON object: {"ok": true, "models": [{"parameters": ...}, ...]} for all manifests, or
{"ok": false, "error": ..., "right": ..., "next": ...} for the first that is refused. With --timed it adds the time per
sample. A user's model runs the user's code, so it is never imported into the process that runs the study.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from paceline import catalog
from paceline.data.cache import Dataset, open_dataset
from paceline.data.store import split
from paceline.errors import ModelError, PacelineError, RequestError
from paceline.guard import end_with_launcher
from paceline.identity import this_rank
from paceline.records.run import Manifest
from paceline.records.study import Point
from paceline.storage.codec import read_record
from paceline.training.augment import Augmentation
from paceline.training.batches import Samples
from paceline.training.group import choose_device
from paceline.training.models.build_model import build_model
from paceline.training.optim.build_optimizer import build_optimizer
from paceline.training.phases import freeze_for_first_phase, unfreeze
from paceline.training.precision import WEIGHT_DTYPES, move_to_device
from paceline.training.session import scaling

_WARM_UP, _STEPS = 3, 20
_MIN_SAMPLES = 2
"""Per step: the minimum for batch-norm."""
_MAX_SAMPLES = 1024
"""Per step: beyond it the time per sample hardly changes."""
_BUDGET_S = 3.0


def checked_model(manifest: Manifest) -> dict[str, Any]:
    """Facts about the model, after one forward and backward pass over two samples."""
    point = manifest.point
    dataset = open_dataset(Path(manifest.data_folder)).dataset
    split(dataset, point.data)
    Augmentation(point.augment, dataset.shape)
    model = build_model(
        point.model.name,
        point.model.options,
        shape=dataset.shape,
        classes=dataset.classes,
        model_file=Path(manifest.model_file) if manifest.model_file else None,
    )
    parameters = sum(p.numel() for p in model.parameters())
    freeze_for_first_phase(model, point)
    move_to_device(model, point.train, torch.device("cpu"))
    _check_phase(point, model, dataset)
    if point.train.cached_features:
        _check_features(point, model, dataset)
    if point.finetune.epochs:
        unfreeze(model, point.finetune.batchnorm)
        _check_phase(point, model, dataset)
    # Ranks on other hosts check their own devices.
    if not catalog.launcher(point.launcher).several_hosts:
        choose_device(point.device, point.ranks - 1)
    _check_mpi(point)
    return {"ok": True, "parameters": parameters}


def _check_phase(point: Point, model: torch.nn.Module, dataset: Dataset) -> None:
    """Check a pass with the trainable parameters of one phase."""
    if not any(p.requires_grad for p in model.parameters()):
        raise ModelError(f"The model {point.model.name!r} has no parameter to train.")
    model.zero_grad(set_to_none=True)
    _try_pass(point, model, dataset)
    _check_gradients(point, model)


def _try_pass(point: Point, model: torch.nn.Module, dataset: Dataset) -> None:
    name, (height, width, channels) = point.model.name, dataset.shape
    inputs = torch.zeros(2, channels, height, width, dtype=WEIGHT_DTYPES[point.train.precision])
    shape_text = "×".join(map(str, dataset.shape))
    try:
        scores = model(inputs)
        if tuple(scores.shape) != (2, dataset.classes):
            raise ModelError(
                f"The model {name!r} returns {tuple(scores.shape)} for 2 images of {dataset.name}.",
                right=f"With {dataset.classes} classes it must return (2, {dataset.classes}).",
                next="Correct the size of its last layer.",
            )
        functional.cross_entropy(scores, torch.zeros(2, dtype=torch.int64)).backward()
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"The model {name!r} does not fit {dataset.name}, images of {shape_text}: {error}",
            right=f"It gets 2×{channels}×{height}×{width} floats and must return (2, {dataset.classes}).",
            next="Choose another model (`paceline models`) or correct this one.",
        ) from error


@torch.no_grad()
def _check_features(point: Point, model: torch.nn.Module, dataset: Dataset) -> None:
    """Check that head(features(inputs)) gives the scores of the model."""
    name, (height, width, channels) = point.model.name, dataset.shape
    inputs = torch.rand(2, channels, height, width, dtype=WEIGHT_DTYPES[point.train.precision])
    model.eval()
    features: Any = model.features(inputs)  # pyright: ignore[reportCallIssue]  checked before
    if not isinstance(features, torch.Tensor) or features.dim() != 2 or len(features) != 2:
        found = tuple(features.shape) if isinstance(features, torch.Tensor) else type(features).__name__
        raise ModelError(
            f"features() of the model {name!r} returns {found} for 2 images.",
            right="For train.cached_features it must return a row of numbers for each.",
            next="Flatten them, or remove train.cached_features.",
        )
    scores: Any = model.head(features)  # pyright: ignore[reportCallIssue]
    # In mixed precision, features are rounded to three digits on one of the two paths.
    rtol, atol = (0.05, 0.05) if point.train.precision == "bfloat16" else (1e-3, 1e-4)
    if not torch.allclose(scores, model(inputs), rtol=rtol, atol=atol):
        raise ModelError(
            f"The model {name!r} does more than head(features(inputs)): their scores differ.",
            right="With train.cached_features its head is trained on features alone.",
            next="Put all layers into features() and head, or remove train.cached_features.",
        )
    model.train()


def _check_gradients(point: Point, model: torch.nn.Module) -> None:
    """DDP waits for the gradient of every parameter: one without a gradient would stop it."""
    unused = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
    if unused and catalog.strategy(point.strategy).needs_every_gradient and point.ranks > 1:
        raise ModelError(
            f"The loss does not depend on parameter {unused[0]!r} of the model {point.model.name!r}.",
            right=f"The strategy {point.strategy} needs a gradient for every parameter that is trained.",
            next="Remove it, set its requires_grad to False, or use `--set run.strategy=flat`.",
        )


def _check_mpi(point: Point) -> None:
    """mpi4py is an optional dependency, and MPI strategies send from host memory."""
    if not catalog.strategy(point.strategy).needs_mpi or point.ranks == 1:
        return
    if importlib.util.find_spec("mpi4py") is None:
        raise RequestError(
            f"The strategy {point.strategy} communicates through MPI, and mpi4py is not installed.",
            right="Paceline's extra `mpi` installs it, with an MPI library for machines without one.",
            next="Install it with `pip install 'paceline[mpi]'`, or use `--set run.strategy=flat`.",
        )
    if point.device == "cuda" or (point.device == "auto" and torch.cuda.is_available()):
        raise RequestError(
            f"The strategy {point.strategy} sends gradients from the host's memory, and this run's are on a GPU.",
            right="On GPUs, ddp and flat send them with NCCL.",
            next="Use `--set run.strategy=ddp`, or `--set run.device=cpu`.",
        )


def sample_s(manifest: Manifest) -> float:
    """Seconds per sample on one rank, forward pass to optimizer step, over a few steps.

    For an estimate of the duration of a study. Not included: startup, communication, evaluation, and contention between
    ranks of a host.
    """
    point, mapped = manifest.point, open_dataset(Path(manifest.data_folder))
    dataset, device, dtype = mapped.dataset, choose_device(point.device, 0), WEIGHT_DTYPES[point.train.precision]
    model = build_model(
        point.model.name,
        point.model.options,
        shape=dataset.shape,
        classes=dataset.classes,
        model_file=Path(manifest.model_file) if manifest.model_file else None,
    )
    move_to_device(model, point.train, device)
    mean, std = scaling(dataset, pixels=getattr(model, "wants_pixels", False))
    samples = Samples(mapped.train_images, mapped.train_labels, mean=mean, std=std, device=device, dtype=dtype)
    optimizer = build_optimizer(point.train, model.parameters())
    batch = max(_MIN_SAMPLES, min(point.batch_global // point.data_size, _MAX_SAMPLES, dataset.train))
    # Few samples first: a large network would take minutes for a thousand images.
    for _ in range(_WARM_UP):
        _step(model, optimizer, samples, _MIN_SAMPLES)
    started_at = time.perf_counter()
    _step(model, optimizer, samples, _MIN_SAMPLES)
    few_s = time.perf_counter() - started_at
    batch = max(_MIN_SAMPLES, min(batch, int(_BUDGET_S * _MIN_SAMPLES / few_s)))
    _step(model, optimizer, samples, batch)
    num_steps, started_at = 0, time.perf_counter()
    while num_steps < _STEPS and time.perf_counter() - started_at < _BUDGET_S:
        _step(model, optimizer, samples, batch)
        num_steps += 1
    return (time.perf_counter() - started_at) / (num_steps * batch)


def _step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, samples: Samples, batch: int) -> None:
    inputs, labels = samples.gather(torch.arange(batch))
    loss = functional.cross_entropy(model(inputs), labels.to(torch.int64))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()  # device sync


def _answer(manifests: list[Manifest]) -> dict[str, Any]:
    facts: list[dict[str, Any]] = [{"parameters": checked_model(manifest)["parameters"]} for manifest in manifests]
    if "--timed" in sys.argv:
        timed: dict[str, float] = {}
        for manifest, fact in zip(manifests, facts, strict=True):
            # Independent of the strategy.
            key = f"{manifest.data_folder} {manifest.point.model} {manifest.point.train.precision}"
            timed[key] = timed[key] if key in timed else sample_s(manifest)
            fact["sample_s"] = timed[key]
    return {"ok": True, "models": facts}


def main() -> int:
    """Print the result; output of the model goes to standard error."""
    end_with_launcher(this_rank())
    answer_to = os.fdopen(os.dup(1), "w")
    with contextlib.redirect_stdout(sys.stderr):
        try:
            answer = _answer([read_record(Path(path), Manifest) for path in sys.argv[1:] if path != "--timed"])
        except PacelineError as error:
            answer = {"ok": False, "error": error.what, "right": error.right, "next": error.next}
    with answer_to:
        answer_to.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
