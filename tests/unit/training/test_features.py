"""Features of a frozen base: in the cache whole or not at all, and never those of something else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from paceline.errors import DataError
from paceline.probe.recorder import Recorder
from paceline.records.rank_trace import SPAN_KINDS
from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import PulseWriter
from paceline.storage.span_stream import SpanWriter, read_spans
from paceline.training import features
from paceline.training.batches import Samples
from paceline.training.evaluate import evaluation_batch
from paceline.training.models.preprocessing import Preparation, Preprocessing
from paceline.training.models.transfer import Transfer
from paceline.training.parallel.strategy import NoPeers

POINT = Point(
    data=DataSettings(dataset="digits"),
    data_digest="",
    model=ModelSettings(name="mine.py:build", options={"width": 3}),
    model_digest="abc",
    train=TrainSettings(batch_global=8, epochs=1, cached_features=True),
    ranks=1,
)


def samples(count: int) -> Samples:
    images = np.random.default_rng(1).integers(0, 256, (count, 4, 4, 1), dtype=np.uint8)
    device = torch.device("cpu")
    return Samples(images, np.arange(count), mean=(0.5,), std=(0.25,), device=device, dtype=torch.float32)


def network(seed: int = 0) -> Transfer:
    torch.manual_seed(seed)
    base = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout(0.5), nn.Flatten())
    made = Transfer(base, nn.Linear(12, 10))
    made.freeze()
    return made.train()


@pytest.fixture
def recorder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    made = Recorder(SpanWriter(folder.rank_spans(0)), PulseWriter(folder.rank_pulse(0)))
    yield made
    made.close()


@pytest.fixture
def wanted(tmp_path) -> features.FeatureRequest:
    sources = {"train": (samples(200), np.arange(20, 170)), "test": (samples(30), np.arange(30))}
    return features.FeatureRequest(model=network(), point=POINT, digest="d", cache=tmp_path / "cache", sources=sources)


def ready(wanted: features.FeatureRequest, recorder: Recorder):
    return features.cached_features(wanted, recorder, NoPeers(), 0)


def test_a_row_is_what_the_base_makes_of_its_image(wanted, recorder, tmp_path):
    made, facts = ready(wanted, recorder)
    chosen = torch.tensor([20, 77, 169])
    images, labels = wanted.sources["train"][0].gather(chosen)
    wanted.model.eval()
    inputs, own_labels = made["train"].gather(chosen)
    assert torch.allclose(inputs, wanted.model.features(images), rtol=1e-6)
    assert torch.equal(labels, own_labels)
    assert len(made["test"]) == 30
    assert (facts.samples, facts.size, facts.found) == (180, 12, False)
    assert made["train"].gather(torch.tensor([0]))[0].abs().sum() == 0, "nobody uses it, so nobody computed it"
    recorder.flush()
    trace = read_spans(RunFolder(tmp_path / "run").rank_spans(0), 0)
    assert [(SPAN_KINDS[kind], name) for kind, name in zip(trace.kind, trace.operation, strict=True)] == [
        ("load", "features")
    ]


def test_they_are_found_again_and_only_by_those_who_would_make_the_same(wanted, recorder):
    assert not ready(wanted, recorder)[1].found
    assert ready(wanted, recorder)[1].found
    others = [
        replace(wanted, digest="e"),
        replace(wanted, model=network(seed=1)),
        replace(wanted, point=replace(POINT, model_digest="other")),
        replace(wanted, point=replace(POINT, model=ModelSettings(name="mine.py:build", options={"width": 4}))),
        replace(wanted, point=replace(POINT, train=replace(POINT.train, precision="float64"))),
        replace(wanted, sources={**wanted.sources, "test": (wanted.sources["test"][0], np.arange(29))}),
    ]
    assert len({each.key for each in (wanted, *others)}) == len(others) + 1
    # Neither the head nor the folder of the model's file makes other features.
    again = network()
    again.head = nn.Linear(12, 5)
    moved = replace(POINT, model=ModelSettings(name="/else/mine.py:build", options={"width": 3}))
    assert replace(wanted, model=again, point=moved).key == wanted.key


class Failing(Transfer):
    """Fails at its third batch, as a rank that is killed then."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(16, 10))
        self.calls = 0

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == 3:
            raise KeyboardInterrupt
        return super().features(inputs)


def test_what_was_not_finished_is_not_used(wanted, recorder):
    failing = replace(wanted, model=Failing())
    with pytest.raises(KeyboardInterrupt):
        ready(failing, recorder)
    assert list(wanted.cache.iterdir()) == []
    # A kill leaves what it was filling.
    left = wanted.cache / f".making-features-{failing.key[:16]}-0123"
    left.mkdir()
    (left / "train.npy").write_bytes(b"half")
    made, facts = ready(failing, recorder)
    assert not facts.found
    assert made["train"].gather(torch.tensor([169]))[0].abs().sum() > 0


@pytest.mark.parametrize("damage", ["shorter", "no-record", "other-key"])
def test_a_damaged_folder_is_made_again(wanted, recorder, damage):
    expected = ready(wanted, recorder)[0]["train"].gather(torch.arange(30, 40))[0].clone()
    (folder,) = wanted.cache.iterdir()
    damaged(folder, damage)
    with pytest.raises(DataError, match="cannot be used"):
        features._opened(folder, wanted.key)
    made, facts = ready(wanted, recorder)
    assert not facts.found
    assert torch.equal(made["train"].gather(torch.arange(30, 40))[0], expected)


def damaged(folder: Path, damage: str) -> None:
    if damage == "shorter":
        path = folder / "train.npy"
        path.write_bytes(path.read_bytes()[:-8])
    elif damage == "no-record":
        (folder / "features.json").unlink()
    else:
        path = folder / "features.json"
        path.write_text(path.read_text().replace('"key": "', '"key": "0'))


@pytest.mark.parametrize(("size", "count"), [(None, 256), (32, 256), (64, 64), (112, 32), (224, 32)])
def test_as_many_images_are_computed_at_once_as_their_size_leaves_room_for(size, count):
    images = np.zeros((3, 28, 28, 1), np.uint8)
    given = {"mean": (0.0,), "std": (1.0,), "device": torch.device("cpu"), "dtype": torch.float32}
    samples = Samples(images, np.zeros(3, np.int64), **given)
    prepared = Preprocessing(Preparation(size=size), (28, 28, 1))
    assert evaluation_batch(Transfer(nn.Identity(), nn.Identity(), preprocessing=prepared), samples) == count
    assert evaluation_batch(nn.Identity(), samples) == 256, "28×28, and no preprocessing of its own"
