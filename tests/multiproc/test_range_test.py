"""Range tests through the real trainer, on digits."""

from __future__ import annotations

import gate
import pytest

from paceline.analyze.learning.lr_advice import RangeTest, lr_advice

STEPS = 100
RANGE = {"schedule": "range", "lr": 1e-5, "step_factor": 1e6, "steps": STEPS, "epochs": None}


def settings(folder, **train):
    return gate.with_model(
        folder, gate.SMALL, {"data": {"train_samples": 1200}, "train": {"batch_global": 40, "lr": 0.1, **train}}
    )


@pytest.mark.parametrize("size", [2])
def test_any_number_of_ranks_sees_the_same_curve_and_stops_at_the_same_step(groups, digits_folder, tmp_path, size):
    given = settings(tmp_path, optimizer="sgd", momentum=0.9, **RANGE)
    (alone,) = groups[1].run("range_curve", folder=str(tmp_path / "one"), data=digits_folder, settings=given)
    found = groups[size].run("range_curve", folder=str(tmp_path / "all"), data=digits_folder, settings=given)
    assert alone["header"] == "step,lr,loss"
    steps, rates, losses = zip(*alone["curve"], strict=True)
    assert steps == tuple(range(1, len(steps) + 1))
    assert rates == pytest.approx([1e-5 * 1e6 ** (k / 99) for k in range(len(rates))])
    assert 20 < len(steps) < STEPS, "it was to run away before the rates end"
    assert losses[-1] > losses[0]
    for one in found:
        assert one["steps"] == alone["steps"] == len(steps)
        assert one["weights"] == found[0]["weights"]
        # What runs away enlarges the last digit: compared as long as it learns.
        calm = len(steps) - 20
        assert [loss for _, _, loss in one["curve"][:calm]] == pytest.approx(losses[:calm], rel=1e-5)


def test_ranks_that_are_told_to_leave_stay_until_the_curve_is_whole(groups, digits_folder, tmp_path):
    given = settings(tmp_path, optimizer="sgd", **{**RANGE, "steps": 20, "step_factor": 10.0})
    folder = tmp_path / "run"
    (found,) = groups[1].run("range_curve", folder=str(folder), data=digits_folder, settings=given, warned=True)
    assert [step for step, _, _ in found["curve"]] == list(range(1, 21))
    assert not (folder / "checkpoints").exists(), "one that is ended after all starts over"


@pytest.mark.parametrize(("optimizer", "momentum"), [("sgd", 0.9), ("adam", 0.0)])
def test_the_rate_that_is_found_learns_more_in_an_epoch_than_far_larger_and_smaller_ones(
    groups, digits_folder, tmp_path, optimizer, momentum
):
    kind = {"optimizer": optimizer, "momentum": momentum, "precision": "float32"}
    given = settings(tmp_path, **kind, **RANGE)
    (found,) = groups[1].run("range_curve", folder=str(tmp_path / "range"), data=digits_folder, settings=given)
    _, rates, losses = zip(*found["curve"], strict=True)
    test = RangeTest(seed=3, rates=rates, losses=losses, planned=STEPS)
    lr = lr_advice([test], batch_global=40, ranks=1).lr
    assert lr is not None
    accuracy = {}
    for factor in (1 / 30, 1, 30):
        given = settings(tmp_path, **{**kind, "lr": lr * factor})
        folder = str(tmp_path / f"{factor:.2f}")
        (accuracy[factor],) = groups[1].run("learned", folder=folder, data=digits_folder, settings=given)
    assert accuracy[1] > max(accuracy[1 / 30], accuracy[30]) + 0.1, accuracy
