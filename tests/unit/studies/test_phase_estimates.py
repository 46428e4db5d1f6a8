"""How long a run of two phases, or on cached features, is expected to take."""

from __future__ import annotations

import pytest

from paceline.records.settings import DataSettings, FinetuneSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.studies.folder.estimates import Estimates


def expected_s(ranks: int = 1, finetune: int = 0, **train) -> float | None:
    point = Point(
        data=DataSettings(),
        data_digest="",
        model=ModelSettings(),
        model_digest="",
        train=TrainSettings(batch_global=10, **train),
        finetune=FinetuneSettings(epochs=finetune),
        ranks=ranks,
    )
    return Estimates(lambda data: 60, sample_s=lambda point: 0.5).wall_s(point)


@pytest.mark.parametrize(
    ("settings", "samples"),
    [
        ({"epochs": 3}, 180),
        ({"epochs": 3, "finetune": 2}, 300),
        ({"epochs": 3, "cached_features": True}, 60),
        ({"epochs": 3, "cached_features": True, "finetune": 2, "ranks": 2}, 90),
        ({"steps": 4}, 40),
        ({"steps": 4, "finetune": 1}, 100),
    ],
)
def test_every_pass_of_an_image_counts(settings, samples):
    assert expected_s(**settings) == samples * 0.5
