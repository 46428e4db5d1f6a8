from __future__ import annotations

import dataclasses

import pytest

from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point, Run

POINT = Point(
    data=DataSettings(),
    data_digest="d",
    model=ModelSettings(),
    model_digest="m",
    train=TrainSettings(batch_global=128, epochs=2, seed=5),
    ranks=2,
)


@pytest.mark.parametrize(
    "changes",
    [
        {"ranks": 3},
        {"threads": 2},
        {"strategy": "flat"},
        {"device": "cpu"},
        {"pin": False},
        {"data_digest": "other"},
        {"model_digest": "other"},
        {"train": dataclasses.replace(POINT.train, lr=0.002)},
        {"data": DataSettings(validation=0.1)},
        {"model": ModelSettings(options={"dropout": 0.5})},
    ],
)
def test_any_setting_makes_another_point(changes):
    assert dataclasses.replace(POINT, **changes).point_id != POINT.point_id


def test_where_the_data_lie_does_not():
    here = dataclasses.replace(POINT, data=DataSettings(dataset="/here/a.npz"))
    there = dataclasses.replace(POINT, data=DataSettings(dataset="there/a.npz"))
    assert here.point_id == there.point_id


def test_the_name_is_readable_and_stable():
    """Folders of finished studies are found by it: a change here orphans them."""
    assert POINT.point_id == "2-ranks-ddp-" + POINT.point_id[-10:]
    assert POINT.point_id == POINT.point_id
    assert dataclasses.replace(POINT, ranks=1).point_id.startswith("1-rank-ddp-")


def test_batches_and_seeds():
    assert POINT.batch_global == 128
    weak = dataclasses.replace(POINT, train=TrainSettings(batch_per_rank=64, epochs=1), ranks=3)
    assert weak.batch_global == 192
    assert [Run(point=POINT, number=n).seed for n in (1, 2, 3)] == [5, 6, 7]
