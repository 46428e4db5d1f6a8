"""Gradient noise where the truth is known: gradients drawn with a given mean and covariance."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from paceline.analyze.learning.noise import noise_scale
from paceline.training.batches import Batch
from paceline.training.gradient_noise import GradientNoise, NoiseSample, noise_epoch
from paceline.training.parallel.strategy import NoPeers

SPREAD = np.array([2.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.2, 0.2, 0.1, 0.1])
TRACE = float((SPREAD**2).sum())


def steps(chance, *, signals, shares, draws=1):
    """Measured steps, one row per draw: gradients of the samples are G + noise, where |G|² is as given."""
    shares = np.asarray(shares)
    batch, count = int(shares.sum()), len(signals)
    direction = np.ones(10) / np.sqrt(10)
    true = np.sqrt(np.asarray(signals))[:, None, None] * direction
    noise = chance.standard_normal((draws, count, len(shares), 10)) * SPREAD / np.sqrt(shares)[:, None]
    parts = true + noise
    mean = (parts * (shares / batch)[:, None]).sum(2)
    local, whole = ((parts**2).sum(3) * (shares / batch)).sum(2), (mean**2).sum(2)
    return [
        [NoiseSample(t, batch, len(shares), float(local[d, t]), float(whole[d, t])) for t in range(count)]
        for d in range(draws)
    ]


def as_run(rows, per_epoch):
    """A run whose epochs have so many measured steps."""
    starts = range(0, len(rows), per_epoch)
    noise = (noise_epoch(n + 1, start, rows[max(start - 1, 0) : start + per_epoch]) for n, start in enumerate(starts))
    return SimpleNamespace(epochs=(), noise=tuple(noise))


@pytest.mark.parametrize("shares", [(8, 8), (32, 32, 32, 32), (20, 20, 13), (1, 3, 30)])
def test_estimates_are_right_on_average_for_shares_of_any_size(shares):
    (rows,) = steps(np.random.default_rng(5), signals=[0.3] * 40_000, shares=shares)
    variances, signals = (np.array([getattr(row, name) for row in rows]) for name in ("variance", "signal"))
    for found, true in ((variances, TRACE), (signals, 0.3)):
        assert abs(found.mean() - true) < 4 * found.std() / np.sqrt(len(found))


# |G|² over a run: level, falling as training goes on, and far below the noise. Epochs of 12, 40 and 100 steps.
@pytest.mark.parametrize("shares", [(16, 16), (8, 8, 8, 8)], ids=["2 ranks", "4 ranks"])
@pytest.mark.parametrize(
    ("signals", "per_epoch"),
    [
        (np.full(12, TRACE / 32), 12),
        (np.full(80, TRACE / 32), 40),
        (TRACE / 4 * 0.97 ** np.arange(120), 40),
        (TRACE / 32 * 0.95 ** np.arange(200), 100),
        (np.full(80, TRACE / 1000), 40),
    ],
    ids=["one short epoch", "level", "falling", "falling to nothing", "little but noise"],
)
def test_the_interval_covers_the_truth(signals, per_epoch, shares):
    """At least 90 in 100 of a thousand generated runs; the truth is the share of noise, averaged over the steps."""
    runs = steps(np.random.default_rng(11), signals=signals, shares=shares, draws=1000)
    epochs = [signals[start : start + per_epoch].mean() for start in range(0, len(signals), per_epoch)]
    share = np.mean([TRACE / (TRACE + 32 * signal) for signal in epochs])
    true = 32 * share / (1 - share)
    found = [noise_scale([as_run(rows, per_epoch)], 32) for rows in runs]
    covered = [each.low is not None and each.low <= true and (each.high is None or true <= each.high) for each in found]
    assert np.mean(covered) >= 0.9
    assert {each.over for each in found} == {"steps"}


def test_five_runs_are_covered_by_their_scatter():
    """Where runs differ by more than their steps can say, as seeds do."""
    chance, covered = np.random.default_rng(2), []
    shares = np.array([TRACE / (TRACE + 32 * s) for s in (TRACE / 32 * chance.lognormal(0, 0.3, 100_000))])
    true = shares.mean()
    for _ in range(300):
        levels = TRACE / 32 * chance.lognormal(0, 0.3, 5)
        runs = [as_run(steps(chance, signals=np.full(40, level), shares=(8,) * 4)[0], 40) for level in levels]
        found = noise_scale(runs, 32)
        assert found.over == "runs"
        covered.append(found.efficiency_low <= true <= found.efficiency_high)
    assert np.mean(covered) >= 0.9


def test_drift_is_not_taken_for_noise():
    """A signal that falls evenly and scatters not at all has no variance from step to step to speak of."""
    rows = [NoiseSample(t, 32, 2, local=5.0 - t / 100, mean=4.0 - t / 100) for t in range(100)]
    found = noise_epoch(1, 0, rows)
    assert found is not None
    assert found.signal_var == pytest.approx(0.01**2 / 2)
    assert np.var([row.signal for row in rows]) > 0.08


def test_an_epoch_counts_its_own_steps_and_one_difference_to_the_last():
    rows = [NoiseSample(t, 32, 2, local=5.0 + t, mean=4.0) for t in range(6)]
    first, second = noise_epoch(1, 0, rows[:4]), noise_epoch(2, 4, rows[3:])
    assert (first.measured, first.differences, second.measured, second.differences) == (4, 3, 2, 2)
    assert second.variance == pytest.approx(np.mean([rows[4].variance, rows[5].variance]))
    assert noise_epoch(3, 6, rows[5:]) is None
    alone = noise_epoch(1, 0, rows[:1])
    assert (alone.differences, alone.variance_var, alone.covariance) == (0, None, None)


def test_a_diverged_epoch_is_written_down_as_it_is():
    rows = [NoiseSample(t, 32, 2, local=float("inf"), mean=float("inf")) for t in range(3)]
    found = noise_epoch(1, 0, rows)
    assert np.isnan(found.variance) and found.noise_scale is None
    assert noise_scale([SimpleNamespace(epochs=(), noise=(found,))], 32) is None


def linear_step(noise, model, inputs, *, step=0, parts=1):
    """One step of a linear model, whose gradient at a sample is the sample itself, in equal parts."""
    model.zero_grad()
    for part in inputs.chunk(parts):
        batch = Batch(part, torch.zeros(len(part)), len(part), len(inputs))
        with noise.watching(model, step, batch, loss_factor=1.0):
            (model(part).sum() / len(inputs)).backward()
    noise.exchanged(model, step, len(inputs))


@given(st.integers(2, 6), st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_parts_of_one_rank_are_told_apart(parts, seed):
    generator = torch.Generator().manual_seed(seed)
    model, noise = nn.Linear(5, 1, bias=False).double(), GradientNoise(every=1, parts=parts, batch=24)
    inputs = torch.randn(24, 5, generator=generator, dtype=torch.float64)
    linear_step(noise, model, inputs, parts=parts)
    (row,) = noise.gather(NoPeers())
    chunks = inputs.chunk(parts)
    assert (row.step, row.samples, row.parts) == (0, 24, len(chunks))
    local = sum(len(chunk) * chunk.mean(0).square().sum().item() for chunk in chunks) / 24
    assert row.local == pytest.approx(local) and row.mean == pytest.approx(inputs.mean(0).square().sum().item())
    assert row.variance >= 0


def test_hooks_are_gone_after_a_measured_step_and_were_never_there_in_others():
    model, noise = nn.Linear(5, 1), GradientNoise(every=3, parts=2, batch=8)
    for step in range(7):
        linear_step(noise, model, torch.randn(8, 5), step=step, parts=2)
        assert not model.weight._backward_hooks
    linear_step(noise, model, torch.randn(3, 5), step=9, parts=2)  # too small a rest to say anything
    assert [row.step for row in noise.gather(NoPeers())] == [0, 3, 6]


def test_a_single_part_measures_nothing():
    model, noise = nn.Linear(5, 1), GradientNoise(every=1, parts=1, batch=8)
    linear_step(noise, model, torch.randn(8, 5))
    assert not noise.on
    assert not noise.gather(NoPeers())


def test_frozen_weights_are_left_out():
    model = nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 1, bias=False))
    model[0].requires_grad_(False)
    noise = GradientNoise(every=1, parts=2, batch=8)
    linear_step(noise, model, torch.randn(8, 5), parts=2)
    assert len(noise.gather(NoPeers())) == 1


def test_state_comes_back_whole():
    noise, again = (GradientNoise(every=1, parts=2, batch=8) for _ in range(2))
    assert noise.state().shape == (0, 5)
    noise.rows = [NoiseSample(7, 8, 2, 0.1 + 0.2, 1 / 3), NoiseSample(8, 8, 2, 1e-30, 1e30)]
    again.restore(noise.state())
    assert again.rows == noise.rows
