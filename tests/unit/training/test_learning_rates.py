"""The learning rate of every step, against the formulas of its sources worked out by hand."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.records.lr_rules import rule_factor
from paceline.records.settings import TrainSettings
from paceline.training.optim.lr_schedule import LrSchedule, planned_steps

PLAIN = TrainSettings(lr=0.1, batch_global=1024, lr_batch=256)


def pace(
    settings: TrainSettings, *, batch: int = 1024, ranks: int = 4, per_epoch: int = 10, epochs: int = 10
) -> LrSchedule:
    return LrSchedule(
        settings, batch_global=batch, ranks=ranks, steps_per_epoch=per_epoch, total_steps=per_epoch * epochs
    )


@pytest.mark.parametrize(("rule", "factor"), [("none", 1.0), ("linear", 4.0), ("sqrt", 2.0), ("adascale", 1.0)])
def test_a_rule_multiplies_the_rate_by_what_the_batch_grew(rule, factor):
    """1,024 samples in place of 256."""
    assert pace(replace(PLAIN, lr_rule=rule)).lr(0) == pytest.approx(0.1 * factor)


@pytest.mark.parametrize(
    ("given", "meant_for"),
    [
        ({"batch_global": 1024}, 1024),
        ({"batch_global": 1024, "lr_batch": 64}, 64),
        ({"batch_per_rank": 256}, 256),
        ({"batch_per_rank": 256, "lr_batch": 32}, 32),
    ],
)
def test_the_batch_that_the_rate_is_meant_for(given, meant_for):
    settings = TrainSettings(lr_rule="linear", **given)
    assert rule_factor(settings, batch_global=1024, ranks=4) == 1024 / meant_for


def test_a_constant_rate_is_the_one_given_to_the_last_bit():
    assert {pace(TrainSettings(lr=0.1, batch_global=64)).lr(step) for step in range(100)} == {0.1}


def test_warm_up_rises_from_the_rate_given_to_the_peak_in_a_straight_line():
    """Goyal et al. 2017, 2.2: from η by equal amounts in every iteration to kη after five epochs."""
    settings = replace(PLAIN, lr_rule="linear", warmup_epochs=5)
    rates = [pace(settings).lr(step) for step in (0, 1, 10, 25, 49, 50, 51)]
    assert rates == pytest.approx([0.1, 0.1 + 0.3 / 50, 0.16, 0.25, 0.1 + 0.3 * 49 / 50, 0.4, 0.4])


def test_a_peak_below_the_rate_given_is_there_from_the_first_step_on():
    """√(64 ÷ 128): there is nothing to rise to, and nothing above the highest rate that is told."""
    settings = TrainSettings(lr=0.001, batch_global=64, lr_batch=128, lr_rule="sqrt", warmup_epochs=1)
    rates = [pace(settings, batch=64).lr(step) for step in range(20)]
    assert rates == pytest.approx([0.001 / math.sqrt(2)] * 20)


def test_step_falls_by_its_factor_every_so_many_epochs():
    """Goyal et al. 2017, 5.1: a tenth at the 30th and 60th of 90 epochs."""
    settings = TrainSettings(lr=0.1, batch_global=8, schedule="step", step_epochs=30)
    made = pace(settings, batch=8, epochs=90)
    assert [made.lr(step) for step in (0, 299, 300, 599, 600)] == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001])


def test_cosine_falls_along_half_a_wave_after_the_warm_up():
    """He et al. 2019, 3.1 with T = 8 epochs after 2 of warm-up: η/2 · (1 + cos(tπ/T))."""
    settings = replace(PLAIN, lr_rule="linear", warmup_epochs=2, schedule="cosine")
    made = pace(settings)
    assert made.lr(10) == pytest.approx(0.1 + 0.3 / 2), "the warm-up is as it would be without"
    wave = [0.2 * (1 + math.cos(math.pi * t)) for t in (0, 0.25, 0.5, 0.75)]
    assert [made.lr(20 + 80 * t) for t in (0, 0.25, 0.5, 0.75)] == pytest.approx(wave)
    assert wave[1:] == pytest.approx([0.3414214, 0.2, 0.0585786])
    assert made.lr(100) == pytest.approx(0, abs=1e-15)


def test_one_cycle_rises_falls_and_goes_far_below_its_start():
    """Smith 2018, 4.1: one cycle a little shorter than the run, then several orders of magnitude lower."""
    made = pace(TrainSettings(lr=1.0, batch_global=8, schedule="one-cycle"), batch=8)
    heights = [made.lr(step) for step in (0, 22.5, 45, 67.5, 90, 95, 100)]
    assert heights == pytest.approx([0.1, 0.55, 1.0, 0.55, 0.1, 0.0505, 0.001])


def test_how_long_settings_ask_to_train():
    assert planned_steps(TrainSettings(epochs=3), 7) == 21
    assert planned_steps(TrainSettings(steps=5), 7) == 5


SCHEDULES = st.sampled_from(["constant", "step", "cosine", "one-cycle"])


@st.composite
def settings(draw: st.DrawFn) -> TrainSettings:
    schedule = draw(SCHEDULES)
    return TrainSettings(
        lr=draw(st.floats(1e-5, 1)),
        lr_rule=draw(st.sampled_from(["none", "linear", "sqrt"])),
        lr_batch=draw(st.integers(1, 4096)),
        schedule=schedule,
        step_epochs=draw(st.integers(1, 5)) if schedule == "step" else None,
        warmup_epochs=0 if schedule == "one-cycle" else draw(st.integers(0, 8)) / 2,
    )


@given(settings(), st.integers(1, 9), st.integers(2, 50), st.integers(2, 40))
def test_epochs_and_not_steps_decide(train, ranks, few, many):
    """At the same part of an epoch the rate is the same, whatever the steps of an epoch."""
    first, second = (
        LrSchedule(train, batch_global=512, ranks=ranks, steps_per_epoch=steps, total_steps=10 * steps)
        for steps in (few, many)
    )
    for tenth in range(100):
        # A step of the schedule falls on a whole epoch, where rounding decides: look beside it.
        epoch = (tenth + 0.5) / 10
        assert first.lr(epoch * few) == pytest.approx(second.lr(epoch * many), rel=1e-6, abs=1e-12)


@given(settings(), st.integers(4, 200))
def test_the_rate_is_continuous_but_for_steps_and_never_above_the_peak(train, per_epoch):
    made = LrSchedule(train, batch_global=512, ranks=1, steps_per_epoch=per_epoch, total_steps=10 * per_epoch)
    rates = [made.lr(step) for step in range(10 * per_epoch + 1)]
    assert all(0 <= rate <= made.peak * (1 + 1e-9) for rate in rates)
    if train.schedule != "step":
        # The steepest of all is the warm-up over half an epoch, and one-cycle's rise over 4.5 of them.
        steepest = max(abs(made.peak - train.lr) / 0.5, made.peak) / per_epoch
        assert all(abs(b - a) <= steepest * 1.01 + 1e-12 for a, b in itertools.pairwise(rates))


@given(settings(), st.integers(1, 100))
def test_a_warm_up_begins_at_the_rate_given_if_it_is_below_the_peak_where_it_ends(train, per_epoch):
    if train.schedule == "one-cycle":
        return
    made = LrSchedule(
        replace(train, schedule="constant"), batch_global=512, ranks=1, steps_per_epoch=per_epoch, total_steps=9
    )
    assert made.lr(0) == (min(train.lr, made.peak) if train.warmup_epochs else made.peak)
    assert made.lr(math.ceil(train.warmup_epochs * per_epoch)) == made.peak
