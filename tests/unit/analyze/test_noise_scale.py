"""The noise scale of a point, from records made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.analyze.learning.noise import noise_scale
from paceline.analyze.study.study_results import study_results
from paceline.records.finding import Finding
from paceline.records.run import NoiseEpoch
from paceline.records.study import Study
from samples.trace_samples import traces_of


def epoch(number: int = 1, *, variance: float = 64.0, signal: float = 1.0, measured: int = 20, scatter: float = 0.1):
    """An epoch whose measured steps scatter by a fraction of their mean, variance and signal independently."""
    return NoiseEpoch(
        epoch=number,
        step=number * 94 - 1,
        measured=measured,
        noise_scale=variance / signal if signal > 0 else None,
        variance=variance,
        signal=signal,
        differences=measured - 1,
        variance_var=(scatter * variance) ** 2 if measured > 1 else None,
        signal_var=(scatter * signal) ** 2 if measured > 1 else None,
        covariance=0.0 if measured > 1 else None,
    )


def of(*noise: NoiseEpoch, epochs: tuple = ()) -> Any:
    """A run with so much of it as is looked at."""
    return SimpleNamespace(noise=noise, epochs=epochs)


def test_one_epoch_is_variance_over_signal():
    found = noise_scale([of(epoch(variance=64.0, signal=2.0))], 128)
    assert found is not None
    assert (found.samples, found.steps, found.over) == (pytest.approx(32.0), 20, "steps")
    assert found.efficiency == pytest.approx(1 / (1 + 128 / 32))
    assert (found.epochs, found.by_epoch) == ((1,), (pytest.approx(32.0),))


def test_the_interval_by_hand():
    """s = S / (S + B G); var(s) = (B / (S + B G)²)² (G² var(S) + S² var(G)) to first order, over 20 steps."""
    found = noise_scale([of(epoch(variance=64.0, signal=1.0))], 64)
    assert found is not None and found.low is not None and found.high is not None
    deviation = 64 / 128**2 * math.sqrt(6.4**2 + 64**2 * 0.1**2) / math.sqrt(20)
    t = 2.165  # of 19 · 2/3 degrees of freedom, from a table between 12 and 13
    assert found.efficiency_low == pytest.approx(0.5 - t * deviation, rel=1e-3)
    assert found.efficiency_high == pytest.approx(0.5 + t * deviation, rel=1e-3)
    assert found.low == pytest.approx(64 * found.efficiency_low / (1 - found.efficiency_low))


def test_over_epochs_shares_are_averaged_by_steps():
    """At a batch of 64: noise scales of 64 and 192 are shares of 1/2 and 3/4."""
    found = noise_scale([of(epoch(1, measured=30), epoch(2, variance=192.0, measured=10))], 64)
    assert found is not None
    share = (30 * 0.5 + 10 * 0.75) / 40
    assert found.efficiency == pytest.approx(share)
    assert found.samples == pytest.approx(64 * share / (1 - share))
    assert found.by_epoch == (pytest.approx(64.0), pytest.approx(192.0))


@given(st.floats(0.01, 1e4), st.floats(1e-4, 1e2), st.integers(1, 4096))
def test_the_smallest_and_the_largest_batch_would_take_what_the_paper_says(variance, signal, batch):
    found = noise_scale([of(epoch(variance=variance, signal=signal))], batch)
    assert found is not None and found.samples is not None and found.efficiency is not None
    assert found.samples == pytest.approx(variance / signal, rel=1e-6)
    assert found.efficiency == pytest.approx(1 / (1 + batch / found.samples), rel=1e-6)
    assert 1 / (1 - found.efficiency) == pytest.approx(1 + found.samples / batch, rel=1e-6)


def test_repeats_narrow_the_interval_and_five_speak_for_themselves():
    one, four = noise_scale([of(epoch())], 64), noise_scale([of(epoch()) for n in range(1, 5)], 64)
    assert one is not None and four is not None
    assert (four.over, four.steps) == ("steps", 80)
    assert four.efficiency_high - 0.5 < 0.55 * (one.efficiency_high - 0.5)
    apart = [of(epoch(variance=64.0 * n)) for n in range(1, 6)]
    five = noise_scale(apart, 64)
    assert five is not None and five.over == "runs"
    shares = [n / (n + 1) for n in range(1, 6)]
    mean = sum(shares) / 5
    deviation = math.sqrt(sum((share - mean) ** 2 for share in shares) / 4 / 5)
    assert five.efficiency_low == pytest.approx(mean - 2.776 * deviation, rel=1e-3)


def test_nothing_but_noise_has_a_lower_bound_and_no_upper():
    found = noise_scale([of(epoch(variance=64.0, signal=0.01, scatter=5.0))], 64)
    assert found is not None
    assert found.low is not None and found.high is None
    below = noise_scale([of(epoch(variance=64.0, signal=-0.1))], 64)
    assert below is not None
    assert (below.samples, below.efficiency, below.by_epoch) == (None, 1.0, (None,))


def test_too_few_steps_have_no_interval():
    found = noise_scale([of(epoch(measured=5))], 64)
    assert found is not None
    assert (found.low, found.high, found.coverage, found.over) == (None, None, None, None)
    single = noise_scale([of(*(epoch(n, measured=1) for n in range(1, 30)))], 64)
    assert single is not None and single.low is None


def test_what_was_not_measured_or_is_no_number_is_left_out():
    assert noise_scale([], 64) is None
    assert noise_scale([of()], 64) is None
    assert noise_scale([of(epoch(variance=math.nan, signal=math.nan))], 64) is None
    assert noise_scale([of(epoch(variance=0.0, signal=0.0))], 64) is None
    found = noise_scale([of(epoch(1), epoch(2, variance=math.inf, signal=1.0))], 64)
    assert found is not None and found.epochs == (1,)


def test_a_second_phase_is_another_training():
    epochs = tuple(SimpleNamespace(epoch=n, phase=phase) for n, phase in ((1, "train"), (2, "finetune")))
    found = noise_scale([of(epoch(1), epoch(2, variance=1e6), epochs=epochs)], 64)
    assert found is not None
    assert found.epochs == (1,) and found.samples == pytest.approx(64.0)


@pytest.fixture
def told(point, run, machine):
    """The findings of a study of 2 ranks with a global batch of 128, by name, where its runs measured this noise."""

    def told(*noise: NoiseEpoch) -> dict[str, Finding]:
        runs = [run(point(2), noise=noise)]
        found = study_results(
            Study(name="by-hand"), "folder", [point(2)], runs, traces=traces_of([]), machine=machine(), expected_runs=1
        )
        return {finding.code: finding for finding in found.findings}

    return told


def test_a_batch_beyond_the_noise_scale(told):
    found = told(epoch(1, variance=20.0), epoch(2, variance=20.0))["batch-beyond-noise"]
    assert (found.values["worst"], found.values["batch"]) == ("2 ranks", 128)
    assert found.values["noise"].samples == pytest.approx(20.0)
    assert found.values["noise"].efficiency == pytest.approx(0.135, abs=0.001)
    assert "batch-beyond-noise" not in told(epoch(variance=120.0, scatter=1.0)), "its interval reaches above"
    assert "batch-beyond-noise" not in told(epoch(variance=2000.0))
    assert "batch-beyond-noise" not in told()


def test_a_schedule_that_was_not_finished(told):
    """188 steps, of which AdaScale came to as many as are said."""
    found = told(epoch(1), replace(epoch(2), gain=1.5, progress=141.0))["schedule-unfinished"]
    assert (found.values["worst"], found.values["progress"]) == ("2 ranks", pytest.approx(0.75))
    assert "schedule-unfinished" not in told(epoch(1), replace(epoch(2), gain=1.9, progress=180.0))
    assert "schedule-unfinished" not in told(epoch(1), epoch(2))
