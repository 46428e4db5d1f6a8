from __future__ import annotations

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline.train.batches import Batches, Samples, ShareBatches, share


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
    return Batches(samples, np.arange(num_samples), batch_global=batch, seed=7, rank=rank, size=size)


@given(num_samples=st.integers(1, 200), batch=st.integers(1, 64), size=st.integers(1, 5))
def test_every_sample_is_used_exactly_once_an_epoch_on_any_number_of_ranks(num_samples, batch, size):
    everyone = [batches(num_samples, batch, rank, size) for rank in range(size)]
    alone = batches(num_samples, batch, 0, 1)
    order = alone.order(3)
    assert all(one.order(3).equal(order) for one in everyone)
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
    assert one.order(0).tolist() != one.order(1).tolist()
    assert sorted(one.order(0).tolist()) == sorted(one.order(1).tolist())


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
        everyone.append(ShareBatches(samples, counts, batch_global=batch, seed=7, rank=rank))
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
