"""The gate that every strategy has to pass, whoever carries its ranks: a spawned group, or mpiexec.

Each check takes live ranks (`ranks.py`) and fails where they did not do as promised. A strategy is synchronous
unless it is named here as lossy: then it need not follow one process, and everything else holds all the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ranks import Ranks

from paceline import catalog

LOSSY = ("local-sgd", "ddp-fp16", "ddp-powersgd", "parameter-server-async")
# Servers are processes of their own, which these groups do not have.
SPAWNED = tuple(name for name, entry in catalog.entries("strategy") if not entry.needs_mpi and not entry.has_servers)
SYNCHRONOUS = tuple(name for name in SPAWNED if name not in LOSSY)
MPI = tuple(name for name, entry in catalog.entries("strategy") if entry.needs_mpi)

# 640 samples in batches of 64: even shares on 1, 2 and 4 ranks. 601 in batches of 40: the last
# step has a single sample, so all ranks but one have none; 40 over 3 ranks is uneven.
EVEN = {"data": {"train_samples": 640}, "train": {"batch_global": 64, "steps": 100, "epochs": None}}
UNEVEN = {"data": {"train_samples": 601}, "train": {"batch_global": 40, "steps": 100, "epochs": None}}

# Small, because a gate has many runs, but with weights of all ranks from 1 to 4, those of a convolution channels-last.
SMALL = """
from torch import nn
def build(classes, dropout=0.0):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Dropout(dropout), nn.Linear(144, 32), nn.ReLU(), nn.Linear(32, classes),
    )
"""
NORMED = """
from torch import nn
def build(classes):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, classes)
    )
"""

Losses = Callable[[str, dict[str, Any]], list[float]]


def with_model(folder: Path, text: str, settings: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Settings with a model of this file's own."""
    file = folder / "model.py"
    file.write_text(text)
    return {**settings, "model": "model.py:build", "model_file": str(file), "options": options}


def learning(optimizer: str, batches: dict[str, Any]) -> dict[str, Any]:
    """Settings of a run that learns within a hundred steps."""
    lr = 0.003 if optimizer == "adam" else 0.1
    return {**batches, "train": {**batches["train"], "optimizer": optimizer, "lr": lr}}


def follows_one_process(ranks: Ranks, data: str, folder: Path, expected: list[float], settings: dict[str, Any]) -> None:
    """The loss of every step is that of one process with the same batches; ranks end with the same bits."""
    answers = ranks.run("train", folder=str(folder), data=data, settings=with_model(folder, SMALL, settings))
    assert len(expected) == 100
    assert answers[0]["losses"] == pytest.approx(expected, rel=1e-5, abs=1e-12)
    assert expected[-1] < expected[0] / 2, "nothing was learned, so nothing was compared"
    assert len({answer["weights"] for answer in answers}) == 1, "ranks ended with different bits"


def shares_buffers(ranks: Ranks, data: str, folder: Path, strategy: str) -> None:
    """Batch-norm statistics, the only state that gradients do not carry, are equal wherever ranks look at them."""
    settings = {"strategy": strategy, "data": {"validation": 200}, "train": {"epochs": 2}}
    answers = ranks.run("train", folder=str(folder), data=data, settings=with_model(folder, NORMED, settings))
    assert len({answer["weights"] for answer in answers}) == 1
    assert len({answer["curves"] for answer in answers}) == 1, "ranks evaluated with statistics of their own"


def repeats_itself(ranks: Ranks, data: str, folder: Path, strategy: str) -> None:
    """The same seed gives the same bits, another seed gives others."""
    settings = {"strategy": strategy, "train": {"precision": "float32", "epochs": 2}}
    settings = with_model(folder, SMALL, settings, dropout=0.3)
    first, again, other = (
        ranks.run("train", folder=str(folder / name), data=data, settings={**settings, "seed": seed})
        for name, seed in (("a", 5), ("b", 5), ("c", 6))
    )
    assert first == again
    assert first[0]["weights"] != other[0]["weights"]
    assert len({answer["weights"] for answer in first}) == 1, "ranks ended with different bits"


def resumes(
    ranks: Ranks,
    data: str,
    folder: Path,
    strategy: str,
    chance: random.Random,
    precision: str = "float32",
    **more: Any,
) -> None:
    """Stopped twice at any steps, a run has weights, optimizer state and curves of one that never was."""
    optimizer = chance.choice(("adam", "sgd", "adadelta", "adamw"))
    train = {
        "precision": precision,
        "epochs": 3,
        "batch_global": 48,
        "optimizer": optimizer,
        "momentum": 0.9 if optimizer == "sgd" else 0.0,
        "checkpoint_every": chance.choice([1, 2, 3, 5, 7]),
    }
    settings = {"strategy": strategy, "data": {"train_samples": 500, "validation": 100}, "train": train, **more}
    settings = with_model(folder, SMALL, settings, dropout=0.2)
    whole = ranks.run("train", folder=str(folder / "whole"), data=data, settings=settings)
    for stop_at in sorted(chance.sample(range(8, 33), 2)):
        ranks.run("train", folder=str(folder / "stopped"), data=data, settings=settings, stop_at=stop_at)
    resumed = ranks.run("train", folder=str(folder / "stopped"), data=data, settings=settings)
    for before, after in zip(whole, resumed, strict=True):
        assert after["resumed_from"] is not None
        for what in ("weights", "state", "curves"):
            assert after[what] == before[what], what


# Few parameters, because the gradient of every sample is held; 601 samples in batches of 40, as above.
TINY = """
from torch import nn
def build(classes):
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 8), nn.Tanh(), nn.Linear(8, classes)
    )
"""


def shows_noise(ranks: Ranks, data: str, folder: Path, strategy: str, **train: Any) -> None:
    """Gradient noise is measured as the gradients of single samples say; the last step, of one sample, is not."""
    sgd = {"optimizer": "sgd", "lr": 0.1, "batch_global": 40, "epochs": 2, "noise_every": 1, "clip_norm": 0.1}
    settings = {"strategy": strategy, "data": {"train_samples": 601}, "train": {**sgd, **train}}
    settings = with_model(folder, TINY, settings)
    answers = ranks.run("noise", folder=str(folder), data=data, settings=settings, look="exact")
    exact = [step for step in answers[0]["exact"] if step[0] > 1]
    assert len(exact) == 30
    assert np.array(answers[0]["seen"]) == pytest.approx(np.array(exact), rel=1e-9)
    assert all(answer["seen"] == answers[0]["seen"] for answer in answers), "ranks do not agree"


def one_process_losses(ranks: Ranks, data: str, folder: Path) -> Losses:
    """What one process sees, by optimizer and batches; trained once."""
    known: dict[str, list[float]] = {}

    def losses(optimizer: str, batches: dict[str, Any]) -> list[float]:
        name = f"{optimizer} {batches}"
        if name not in known:
            settings = with_model(folder, SMALL, learning(optimizer, batches))
            known[name] = ranks.run("train", folder=str(folder / str(len(known))), data=data, settings=settings)[0][
                "losses"
            ]
        return known[name]

    return losses
