"""Strategies that do not follow one process: what they lose in accuracy on Fashion-MNIST, against ddp.

Ranks with servers are started by the local launcher, all others by one spawned group.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "multiproc"))

import gate
from ranks import SpawnedRanks

from checks.ci import in_ci
from light_ranks.light_launch import launch, manifest, point
from paceline import catalog
from paceline.data.store import prepare
from paceline.errors import DataError
from paceline.launch.local import LocalLauncher
from paceline.records.settings import DataSettings, ModelSettings, TrainSettings

DATA = DataSettings(dataset="fashion-mnist", train_samples=30_000)
# A single hidden layer: it learns this in seconds, and PowerSGD compresses nearly all of it.
MODEL = ModelSettings(name="mlp", options={"layers": 1, "neurons": 128, "dropout": 0.0})
TRAIN = {"optimizer": "adam", "lr": 0.0005, "batch_global": 128, "epochs": 4, "precision": "float32"}


@pytest.fixture(scope="module")
def data_folder() -> str:
    """The user's own cache serves: the data set is fetched once, and verified by its SHA-256."""
    try:
        return str(prepare(DATA, base=Path()).folder)
    except DataError as error:
        if in_ci():
            raise
        pytest.skip(f"Fashion-MNIST cannot be had: {error.what}")


@pytest.fixture(scope="module")
def spawned() -> Iterator[SpawnedRanks]:
    ranks = SpawnedRanks(2)
    yield ranks
    ranks.close()


@pytest.fixture(scope="module")
def accuracy(spawned: SpawnedRanks, data_folder: str, tmp_path_factory) -> Callable[[str], float]:
    """The accuracy that two ranks reach under a strategy."""

    def reached(strategy: str) -> float:
        folder = tmp_path_factory.mktemp(strategy)
        if catalog.strategy(strategy).has_servers:
            return _launched(strategy, folder, data_folder)
        settings = {
            "strategy": strategy,
            "data": {"dataset": DATA.dataset, "train_samples": DATA.train_samples},
            "model": MODEL.name,
            "options": MODEL.options,
            "train": TRAIN,
        }
        return spawned.run("learned", folder=str(folder), data=data_folder, settings=settings)[0]

    return reached


def _launched(strategy: str, folder: Path, data_folder: str) -> float:
    options = dict(catalog.strategy(strategy).options)
    wanted = replace(
        point(2, pin=False), data=DATA, model=MODEL, train=TrainSettings(**TRAIN), strategy=strategy, options=options
    )
    told = replace(manifest(wanted), seed=3, data_folder=data_folder)
    found = launch(folder, told, LocalLauncher()).reports[0].training.test_accuracy
    assert found is not None
    return found


@pytest.fixture(scope="module")
def synchronous(accuracy: Callable[[str], float]) -> float:
    return accuracy("ddp")


@pytest.mark.parametrize("strategy", [name for name in gate.LOSSY if name in catalog.names("strategy")])
def test_a_lossy_strategy_is_within_one_point_of_the_synchronous_accuracy(accuracy, synchronous, strategy):
    assert synchronous > 0.8, "nothing was learned, so nothing was compared"
    assert accuracy(strategy) == pytest.approx(synchronous, abs=0.01)
