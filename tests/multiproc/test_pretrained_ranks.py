"""A frozen base on real ranks: the same losses on any number of them, and statistics that never move."""

from __future__ import annotations

import pytest

SETTINGS = {
    "model": "efficientnet-lite0",
    "options": {"weights": "none", "freeze": True, "image_size": 32},
    "data": {"train_samples": 70},
    "train": {"batch_global": 24, "epochs": 1, "optimizer": "adam", "lr": 0.01},
}


@pytest.fixture(scope="module")
def alone(groups, digits_folder, tmp_path_factory):
    """What one process does."""
    folder = str(tmp_path_factory.mktemp("alone"))
    return groups[1].run("frozen_base", folder=folder, data=digits_folder, settings=SETTINGS)[0]


def test_one_rank_trains_the_head_alone(alone):
    assert alone["changed"] == [] and alone["learned"]
    assert len(alone["losses"]) == 3
    assert alone["network"]["preprocessing"].startswith("own: 32×32 pixels (bicubic")


@pytest.mark.parametrize("strategy", ["ddp", "flat"])
def test_two_ranks_follow_one_process_and_leave_the_base_alone(groups, digits_folder, tmp_path, alone, strategy):
    settings = {**SETTINGS, "strategy": strategy}
    ranks = groups[2].run("frozen_base", folder=str(tmp_path), data=digits_folder, settings=settings)
    for found in ranks:
        assert found["changed"] == [] and found["learned"]
        assert found["losses"] == pytest.approx(alone["losses"], rel=1e-9)
        assert found["sent"] == 0  # what cannot change is not sent at every step


def test_a_base_that_learns_with_its_own_statistics_sends_them(groups, digits_folder, tmp_path):
    """As any network with batch-norm does; on the same ranks, so that the test above is not of a broken counter."""
    settings = {**SETTINGS, "options": {**SETTINGS["options"], "freeze": False}}
    for found in groups[2].run("frozen_base", folder=str(tmp_path), data=digits_folder, settings=settings):
        assert found["sent"] == 49 * 3
        assert any("running_mean" in name for name in found["changed"])
