from __future__ import annotations

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline.records.settings import AugmentSettings
from paceline.training.augment import Augmentation
from paceline.training.batches import Batches, Samples, ShareBatches, share


@given(count=st.integers(0, 500), size=st.integers(1, 17))
def test_shares_cover_everything_once_and_differ_by_one_at_most(count, size):
    parts = [share(count, rank, size) for rank in range(size)]
    assert parts[0][0] == 0 and parts[-1][1] == count
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
    sizes = [end - start for start, end in parts]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def batches(num_samples: int, batch: int, rank: int, size: int) -> Batches:
    images = np.arange(200, dtype=np.uint8).reshape(200, 1, 1, 1)
    labels = np.arange(200)
    samples = Samples(images, labels, mean=(0.0,), std=(1 / 255,), device=torch.device("cpu"), dtype=torch.float32)
    return Batches(samples, np.arange(num_samples), batch_global=batch, seed=7, index=rank, size=size)


@given(num_samples=st.integers(1, 200), batch=st.integers(1, 64), size=st.integers(1, 5))
def test_every_sample_is_used_exactly_once_an_epoch_on_any_number_of_ranks(num_samples, batch, size):
    everyone = [batches(num_samples, batch, rank, size) for rank in range(size)]
    alone = batches(num_samples, batch, 0, 1)
    order = alone.order(3)
    assert all(one.order(3).samples.equal(order.samples) for one in everyone)
    used = []
    for step in range(alone.steps_per_epoch):
        parts = [one.take(order, step) for one in everyone]
        labels = [label for part in parts for label in part.labels[: part.samples].tolist()]
        assert labels == alone.take(order, step).labels.tolist()
        assert sum(part.samples for part in parts) == parts[0].samples_global
        used += labels
    assert sorted(used) == list(range(num_samples))


def test_inputs_are_scaled_and_stay_with_their_labels():
    batch = batches(200, 50, 0, 1).take(batches(200, 50, 0, 1).order(0), 1)
    assert torch.allclose(batch.inputs.flatten(), batch.labels.float(), atol=1e-4)


def test_epochs_differ_in_order():
    one = batches(200, 50, 0, 1)
    assert one.order(0).samples.tolist() != one.order(1).samples.tolist()
    assert sorted(one.order(0).samples.tolist()) == sorted(one.order(1).samples.tolist())


@given(
    num_samples=st.integers(1, 200),
    batch=st.integers(1, 64),
    size=st.integers(1, 5),
    epoch=st.integers(0, 3),
)
def test_ranks_that_hold_only_their_share_use_every_sample_once_an_epoch(num_samples, batch, size, epoch):
    size = min(size, num_samples)
    spans = [share(num_samples, rank, size) for rank in range(size)]
    counts = [end - start for start, end in spans]
    everyone = []
    for rank, (start, end) in enumerate(spans):
        labels = np.arange(start, end)
        images = labels.astype(np.uint8).reshape(-1, 1, 1, 1)
        samples = Samples(images, labels, mean=(0.0,), std=(1.0,), device=torch.device("cpu"), dtype=torch.float32)
        everyone.append(ShareBatches(samples, counts, batch_global=batch, seed=7, index=rank))
    orders = [one.order(epoch) for one in everyone]
    used = []
    for step in range(everyone[0].steps_per_epoch):
        parts = [one.take(order, step) for one, order in zip(everyone, orders, strict=True)]
        assert {part.samples_global for part in parts} == {sum(part.samples for part in parts)}
        assert abs(parts[0].samples_global - min(batch, num_samples - step * batch)) < size
        assert all(len(part.inputs) for part in parts), "a rank without samples still has one to pass through"
        used += [label for part in parts for label in part.labels[: part.samples].tolist()]
        assert everyone[0].samples_until(step + 1) == len(used)
    assert sorted(used) == list(range(num_samples))


CHANGED = AugmentSettings(crop=1, flip=True, shift=0.2, zoom=0.2, rotation=20.0, colour=0.3, cutout=2)


def augmented(batch: int, rank: int, size: int, *, seed: int = 7) -> Batches:
    """Batches of 90 samples of a larger set, augmented; a label is a sample's index."""
    images = np.random.default_rng(0).integers(0, 256, (100, 6, 5, 3), dtype=np.uint8)
    samples = Samples(
        images, np.arange(100), mean=(0.5,) * 3, std=(0.2,) * 3, device=torch.device("cpu"), dtype=torch.float32
    )
    change = Augmentation(CHANGED, samples.shape)
    return Batches(
        samples, np.arange(10, 100), batch_global=batch, seed=seed, index=rank, size=size, augmentation=change
    )


def epoch_inputs(size: int, epoch: int, *, batch: int = 16, seed: int = 7, first: int = 0) -> dict[int, torch.Tensor]:
    """Sample -> what the network was given of it in an epoch, over all ranks, from step `first` on."""
    everyone = [augmented(batch, rank, size, seed=seed) for rank in range(size)]
    found = {}
    for step in range(first, everyone[0].steps_per_epoch):
        for one in everyone:
            part = one.take(one.order(epoch), step)
            found |= dict(zip(part.labels[: part.samples].tolist(), part.inputs[: part.samples], strict=True))
    return found


def test_any_number_of_ranks_and_any_batch_sees_the_same_augmented_samples():
    alone = epoch_inputs(1, 3)
    assert len(alone) == 90
    for size, batch in ((2, 16), (3, 16), (4, 16), (4, 7), (1, 90)):
        others = epoch_inputs(size, 3, batch=batch)
        assert all(others[sample].equal(inputs) for sample, inputs in alone.items())


def test_augmentation_differs_with_epoch_and_seed_and_not_with_where_an_epoch_was_resumed():
    first = epoch_inputs(1, 0)
    for other in (epoch_inputs(1, 1), epoch_inputs(1, 0, seed=8)):
        same = [sample for sample, inputs in first.items() if other[sample].equal(inputs)]
        assert not same
    resumed = epoch_inputs(1, 0, first=3)
    assert len(resumed) == 90 - 3 * 16
    assert all(first[sample].equal(inputs) for sample, inputs in resumed.items())


def test_only_training_batches_are_augmented():
    batches = augmented(16, 0, 1)
    order = batches.order(0)
    plain, _ = batches._samples.gather(order.samples[:16])
    assert not batches.take(order, 0).inputs.equal(plain)


def test_ranks_that_hold_only_their_share_change_no_two_samples_alike():
    """The same image a hundred times over: what becomes of it differs from rank to rank."""
    images = np.broadcast_to(np.random.default_rng(0).integers(0, 256, (1, 16, 16, 3), dtype=np.uint8), (50, 16, 16, 3))
    found = []
    for rank in range(2):
        samples = Samples(
            images.copy(),
            np.arange(50),
            mean=(0.0,) * 3,
            std=(1.0,) * 3,
            device=torch.device("cpu"),
            dtype=torch.float32,
        )
        change = Augmentation(CHANGED, samples.shape)
        batches = ShareBatches(samples, (50, 50), batch_global=100, seed=7, index=rank, augmentation=change)
        found.append(batches.take(batches.order(0), 0).inputs)
    assert len(torch.cat(found).flatten(1).unique(dim=0)) == 100
