"""Effects of one factor at a time, in per cent of the baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.analyze.study.one_factor import effects, training_time_s
from paceline.records.results import Effect
from paceline.records.settings import RunSettings, TrainSettings
from paceline.records.study import Study
from paceline.studies.expand.expand import expand

STUDY = Study(
    name="s",
    design="one-at-a-time",
    train=TrainSettings(batch_global=8, epochs=2),
    run=RunSettings(ranks=(1, 2)),
    vary={"train.lr": (0.1, 0.2, 0.4), "run.threads": (1, 2)},
)
NOISE = (1.0, 1.02, 0.98, 1.01, 0.99)


@pytest.fixture
def found(run):
    """Effects where some values multiply the time, the loss and the accuracy."""

    def found(study: Study = STUDY, repeats: int = 5, **factors: dict[str, float]) -> dict[tuple[str, object], Effect]:
        runs = {}
        points = expand(study, data_digest="", model_digest="")
        for point in points:
            told = {"lr": point.train.lr, "threads": point.threads, "ranks": point.ranks}
            scale = {name: 1.0 for name in ("time", "loss", "accuracy")}
            for name, values in factors.items():
                key, figure = name.rsplit("_", 1)
                scale[figure] *= values.get(str(told[key]), 1.0)
            runs[point.point_id] = [
                run(
                    point,
                    number,
                    epoch_s=scale["time"] * NOISE[number % 5],
                    test_loss=0.1 * scale["loss"] * NOISE[(2 * number + round(10 * point.train.lr)) % 5],
                    test_accuracy=0.9 * scale["accuracy"],
                )
                for number in range(1, repeats + 1)
            ]
        return {(effect.factor, effect.value): effect for effect in effects(study, points, runs)}

    return found


def test_every_value_of_every_factor_is_there_in_order_and_the_first_is_100(found) -> None:
    made = found()
    assert list(made) == [
        ("train.lr", 0.1),
        ("train.lr", 0.2),
        ("train.lr", 0.4),
        ("run.threads", 1),
        ("run.threads", 2),
        ("run.ranks", 1),
        ("run.ranks", 2),
    ]
    for (_, value), effect in made.items():
        assert effect.is_baseline == (value in (0.1, 1))
    first = made["run.ranks", 1]
    for percent in (first.loss_pct, first.accuracy_pct, first.time_pct):
        assert (percent.interval.median, percent.interval.low, percent.interval.high) == (100, 100, 100)
        assert percent.p is None and not percent.real


def test_what_differs_is_real_and_what_does_not_is_not(found) -> None:
    made = found(lr_loss={"0.4": 0.5}, threads_time={"2": 0.6}, ranks_accuracy={"2": 0.9})
    assert made["train.lr", 0.4].loss_pct.interval.median == pytest.approx(50, rel=0.05)
    assert made["run.threads", 2].time_pct.interval.median == pytest.approx(60)
    assert made["run.ranks", 2].accuracy_pct.interval.median == pytest.approx(90)
    real = {
        (*key, name)
        for key, effect in made.items()
        for name in ("loss_pct", "accuracy_pct", "time_pct")
        if getattr(effect, name).real
    }
    assert real == {
        ("train.lr", 0.4, "loss_pct"),
        ("run.threads", 2, "time_pct"),
        ("run.ranks", 2, "accuracy_pct"),
    }
    assert made["train.lr", 0.2].time_pct.p == 1.0


def test_a_test_that_says_so_is_not_believed_against_the_interval(found, run) -> None:
    """Four of five repeats on one side: the interval, which is their range, has 100 in it."""
    points = expand(STUDY, data_digest="", model_digest="")
    runs = {p.point_id: [run(p, n, epoch_s=1.0) for n in range(1, 8)] for p in points}
    odd = next(p for p in points if p.threads == 2)
    times = (1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0.999)
    runs[odd.point_id] = [run(odd, n, epoch_s=t) for n, t in enumerate(times, start=1)]
    effect = next(e for e in effects(STUDY, points, runs) if (e.factor, e.value) == ("run.threads", 2))
    assert effect.time_pct.p < 0.05 and not effect.time_pct.real


def test_p_are_corrected_for_all_effects_on_the_same_figure(found) -> None:
    alone = replace(STUDY, run=RunSettings(ranks=(1,)), vary={"train.lr": (0.1, 0.2)})
    one = found(alone, lr_loss={"0.2": 1.05})["train.lr", 0.2].loss_pct
    many = found(lr_loss={"0.2": 1.05})["train.lr", 0.2].loss_pct
    assert one.interval == many.interval and 0 < one.p < many.p <= 4 * one.p


def test_with_fewer_than_five_repeats_there_is_a_range_and_no_test(found) -> None:
    effect = found(repeats=4, threads_time={"2": 9.0})["run.threads", 2]
    assert effect.time_pct.p is None and not effect.time_pct.real and effect.time_pct.interval.coverage is None


def test_what_no_ratio_can_be_of_is_none(found, run) -> None:
    points = expand(STUDY, data_digest="", model_digest="")
    runs = {p.point_id: [run(p, 1, test_loss=float("nan"), test_accuracy=None)] for p in points}
    for effect in effects(STUDY, points, runs):
        assert effect.loss_pct is None and effect.accuracy_pct is None and effect.time_pct is not None


def test_points_that_were_left_out_have_no_effect_and_without_a_baseline_there_is_none(run) -> None:
    points = expand(STUDY, data_digest="", model_digest="")
    runs = {p.point_id: [run(p, 1)] for p in points}
    kept = [point for point in points if point.ranks == 1]
    assert ("run.ranks", 2) not in {(e.factor, e.value) for e in effects(STUDY, kept, runs)}
    assert effects(STUDY, points, runs | {points[0].point_id: []}) == ()
    assert effects(replace(STUDY, design="grid"), points, runs) == ()


def test_training_time_is_that_of_all_epochs_and_of_a_script_that_of_the_run(run, point) -> None:
    assert training_time_s(run(point(), epoch_s=2.0)) == 8.0  # the first epoch of these runs takes three times as long
    assert training_time_s(run(point(), epochs=(), total_s=5.0)) == 5.0
    assert training_time_s(run(point(), resumed_from_step=3)) is None


def test_a_run_that_learned_nothing_hides_no_effect_on_accuracy_and_has_its_time(run, epoch) -> None:
    """As a rate that is too high does: one of six at chance, the others two points below."""
    study = replace(STUDY, vary={"train.lr": (0.1, 0.2)}, run=RunSettings(ranks=(1,)))
    points = expand(study, data_digest="", model_digest="")
    guess = replace(epoch(1, 1.0), train_loss=2.303, train_accuracy=0.1, validation_loss=None, validation_accuracy=None)
    runs = {}
    for point in points:
        high = point.train.lr == 0.1
        runs[point.point_id] = [
            run(
                point,
                number,
                test_accuracy=(0.965 if high else 0.985) + 0.001 * (number % 3) * (1 if high else -1),
                **({"classes": 10} if number > 1 or not high else {"epochs": (guess,), "classes": 10}),
            )
            for number in range(1, 7)
        ]
        if high:
            runs[point.point_id][0] = replace(runs[point.point_id][0], test_accuracy=0.1135)
    made = {effect.value: effect for effect in effects(study, points, runs)}
    assert made[0.2].accuracy_pct.interval.n == 5 and made[0.2].accuracy_pct.real
    assert made[0.2].accuracy_pct.interval.high < 105
    assert made[0.2].time_pct.interval.n == 6
