"""Gradient noise and AdaScale on real ranks, against the gradients of single samples."""

from __future__ import annotations

from types import SimpleNamespace

import gate
import numpy as np
import pytest

from paceline import catalog
from paceline.analyze.learning.noise import noise_scale
from paceline.records.run import NoiseEpoch

STRATEGIES = [name for name, entry in catalog.entries("strategy") if entry.shows_noise and not entry.needs_mpi]
SGD = {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9}


def noisy(
    groups,
    data,
    folder,
    *,
    size,
    strategy="flat",
    samples=640,
    model=gate.TINY,
    look="exact",
    stop_at=0,
    seed=3,
    **train,
):
    """What every rank says of a run that measures noise."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"strategy": strategy, "seed": seed, "data": {"train_samples": samples}, "train": {**SGD, **train}}
    settings = gate.with_model(folder, model, settings)
    return groups[size].run("noise", folder=str(folder), data=data, settings=settings, look=look, stop_at=stop_at)


@pytest.mark.parametrize(
    ("size", "strategy", "accumulate"),
    [(2, "ddp", 1), (3, "ddp", 1), (4, "flat", 1), (2, "ddp", 3), (1, "ddp", 4), (2, "flat", 2)],
)
def test_measured_is_what_the_gradients_of_single_samples_say(
    groups, digits_folder, tmp_path, size, strategy, accumulate
):
    gate.shows_noise(groups[size], digits_folder, tmp_path, strategy, accumulate=accumulate)


@pytest.mark.parametrize(("size", "strategy"), [(2, "ddp"), (4, "flat")])
def test_the_interval_covers_the_true_noise_scale(groups, digits_folder, tmp_path, size, strategy):
    """The truth is taken along the very path that training took, epoch by epoch."""
    train = {"batch_global": 16, "epochs": 2, "noise_every": 1, "momentum": 0.0, "lr": 0.05}
    runs, shares = [], []
    for seed in range(3):
        folder = tmp_path / str(seed)
        answer = noisy(groups, digits_folder, folder, size=size, strategy=strategy, seed=seed, look="true", **train)[0]
        variance, signal = np.array(answer["true"]).reshape(2, -1, 2).mean(1).T
        shares.append((variance / (variance + 16 * signal)).mean())
        runs.append(SimpleNamespace(epochs=(), noise=tuple(NoiseEpoch(**epoch) for epoch in answer["epochs"])))
    found, share = noise_scale(runs, 16), np.mean(shares)
    assert found is not None and found.low is not None and found.high is not None
    assert (found.steps, found.over) == (240, "steps")
    assert found.low <= 16 * share / (1 - share) <= found.high
    assert found.high < 2.5 * found.low, "an interval this wide would cover anything"


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_measuring_changes_no_bit_of_what_is_learned(groups, digits_folder, tmp_path, size, strategy):
    train = {"batch_global": 40, "epochs": 2, "precision": "float32", "accumulate": 2, "clip_norm": 1.0}
    measured, not_measured = (
        noisy(groups, digits_folder, tmp_path / str(every), size=size, strategy=strategy, model=gate.SMALL,
              look="", noise_every=every, **train)
        for every in (1, 0)
    )  # fmt: skip
    assert measured[0]["epochs"] and not not_measured[0]["epochs"]
    assert [answer["weights"] for answer in measured] == [answer["weights"] for answer in not_measured]


def test_a_resumed_run_measures_the_same_bits(groups, digits_folder, tmp_path):
    """Stopped in the middle of an epoch, at a step that has no checkpoint: three ranks, whose sums have an order."""
    train = {"batch_global": 40, "epochs": 3, "precision": "float32", "checkpoint_every": 4, "noise_every": 3}
    more = {"size": 3, "strategy": "ddp", "model": gate.SMALL, "look": "", "samples": 500}
    whole = noisy(groups, digits_folder, tmp_path / "whole", **more, **train)
    noisy(groups, digits_folder, tmp_path / "stopped", stop_at=22, **more, **train)
    resumed = noisy(groups, digits_folder, tmp_path / "stopped", **more, **train)
    assert resumed[0]["resumed_from"] == 20
    assert [epoch["measured"] for epoch in whole[0]["epochs"]] == [5, 4, 4]
    assert [epoch["differences"] for epoch in whole[0]["epochs"]] == [4, 4, 4]
    assert resumed[0]["epochs"] == whole[0]["epochs"]
    assert (tmp_path / "stopped/noise.csv").read_text() == (tmp_path / "whole/noise.csv").read_text()


ADASCALE = {"lr_rule": "adascale", "lr_batch": 8, "batch_global": 40, "epochs": 2, "lr": 0.05}


@pytest.mark.parametrize(("size", "strategy", "accumulate"), [(2, "ddp", 1), (4, "flat", 1), (1, "ddp", 4)])
def test_adascale_takes_the_steps_of_its_paper(groups, digits_folder, tmp_path, size, strategy, accumulate):
    """Gain, rate and progress of every step, from the gradients of single samples and the formulas alone."""
    train = {**ADASCALE, "accumulate": accumulate, "schedule": "cosine"}
    answers = noisy(groups, digits_folder, tmp_path, size=size, strategy=strategy, **train)
    scale, steps, progress = 40 / 8, 32, 0.0
    variance = signal = 0.0
    pairs = zip(answers[0]["exact"], answers[0]["rates"], strict=True)
    for step, ((samples, parts, local, mean), rate) in enumerate(pairs, 1):
        weight = 1 / step  # all of them within the first 1000 / parts steps
        spread = samples * (local - mean) / (parts - 1)
        variance = (1 - weight) * variance + weight * spread
        signal = (1 - weight) * signal + weight * (mean - spread / samples)
        sigma, mu = variance / 8, max(signal, 0.0)
        gain = (sigma + mu) / (sigma / scale + mu)
        lr = 0.05 * (1 + np.cos(np.pi * progress / steps)) / 2
        progress += gain / scale
        assert rate == pytest.approx((lr * gain, gain, progress), rel=1e-7)
    assert 1 < gain < scale
    assert all(answer["rates"] == answers[0]["rates"] for answer in answers), "ranks do not agree"
    assert len({answer["weights"] for answer in answers}) == 1
    assert answers[0]["epochs"][-1]["progress"] == pytest.approx(progress)


def test_adascale_is_the_same_for_the_same_parts_on_any_number_of_ranks(groups, digits_folder, tmp_path):
    """Four parts of a step, of one, two or four ranks: the same losses as one process that computes four parts."""
    runs = {
        size: noisy(groups, digits_folder, tmp_path / str(size), size=size, strategy="ddp", model=gate.SMALL,
                    look="", accumulate=4 // size, **ADASCALE)
        for size in (1, 2, 4)
    }  # fmt: skip
    for size in (2, 4):
        assert runs[size][0]["losses"] == pytest.approx(runs[1][0]["losses"], rel=1e-5, abs=1e-12)
        assert runs[size][0]["rates"] == [pytest.approx(rate, rel=1e-9) for rate in runs[1][0]["rates"]]
    assert runs[1][0]["losses"][-1] < runs[1][0]["losses"][0] / 2, "nothing was learned, so nothing was compared"


def test_adascale_resumes_bit_for_bit(groups, digits_folder, tmp_path):
    train = {**ADASCALE, "precision": "float32", "epochs": 3, "checkpoint_every": 5, "schedule": "cosine"}
    more = {"size": 4, "strategy": "ddp", "model": gate.SMALL, "look": ""}
    whole = noisy(groups, digits_folder, tmp_path / "whole", **more, **train)
    noisy(groups, digits_folder, tmp_path / "stopped", stop_at=23, **more, **train)
    resumed = noisy(groups, digits_folder, tmp_path / "stopped", **more, **train)
    assert resumed[0]["resumed_from"] == 20
    for what in ("weights", "adascale", "epochs"):
        assert [answer[what] for answer in resumed] == [answer[what] for answer in whole], what
    assert resumed[0]["rates"] == whole[0]["rates"][20:]
