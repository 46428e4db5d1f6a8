"""Which samples belong to which step, and this rank's share of them as a tensor.

The samples of a step follow from seed, epoch and step, never from the number of ranks:

    order(epoch)  =  permutation of all training samples, seeded by (seed, epoch)
    step i        =  order[i·B : (i+1)·B]           B = batch_global; the last step may be shorter
    index r of N  =  the r-th of N contiguous shares of the step; sizes differ by at most one, larger ones first

The index is that of a rank along the data axis of the layout: ranks that differ only along other axes use equal
samples. Every sample is used exactly once an epoch, and the steps are equal for any number of ranks. Augmentation
follows from seed, epoch and sample index. The data set stays memory-mapped: a batch reads only its own samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from paceline.training.augment import Augmentation
from paceline.training.draws import sample_keys


def share(count: int, index: int, size: int) -> tuple[int, int]:
    """Start and end of part `index` of `size` parts of `count` items."""
    base, extra = divmod(count, size)
    start = index * base + min(index, extra)
    return start, start + base + (index < extra)


@dataclass(frozen=True, slots=True)
class Batch:
    """This rank's share of one step."""

    inputs: torch.Tensor
    """N×C×H×W floats; a single sample of weight zero if the share is empty."""
    labels: torch.Tensor
    samples: int
    """Samples that count."""
    samples_global: int
    """Samples of this step over all ranks."""


@dataclass(frozen=True, slots=True)
class Order:
    """Order of samples in one epoch."""

    samples: torch.Tensor
    """Their indices."""
    epoch: int
    """From 0; also seeds the augmentation."""


class Samples:
    """Mapped images and labels of one set, with the scaling to inputs."""

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        *,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._images = torch.from_numpy(images)
        self.labels = torch.from_numpy(labels)
        # uint8 is divided by 255 before the mean is subtracted: one multiply and one add.
        self.unit = unit = 255.0 if images.dtype == np.uint8 else 1.0
        """Pixel value that corresponds to 1 in `mean` and `std`."""
        self._scale = torch.tensor([1.0 / (unit * s) for s in std], dtype=dtype, device=device)
        self._shift = torch.tensor([-m / s for m, s in zip(mean, std, strict=True)], dtype=dtype, device=device)
        self.device = device
        self._dtype = dtype

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """Height, width and channels of an image."""
        return tuple(self._images.shape[1:])

    def gather(
        self, indices: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs (N×C×H×W, channels last in memory) and labels at `indices`; `change` augments the images."""
        images = self._images.index_select(0, indices)
        images = (images if change is None else change(images)).to(self.device)
        inputs = images.to(self._dtype).mul_(self._scale).add_(self._shift)
        labels = self.labels.index_select(0, indices).to(self.device)
        return inputs.permute(0, 3, 1, 2), labels


class Batches:
    """Training batches of one rank."""

    def __init__(
        self,
        samples: Samples,
        indices: np.ndarray,
        *,
        batch_global: int,
        seed: int,
        index: int,
        size: int,
        augmentation: Augmentation | None = None,
    ) -> None:
        self._samples = samples
        self._augmentation = augmentation
        self._indices = indices
        self._batch_global = batch_global
        self._seed = seed
        self._index = index
        self._size = size
        self.num_samples = len(indices)
        self.steps_per_epoch = -(-self.num_samples // batch_global)

    def order(self, epoch: int) -> Order:
        """Order of all samples in an epoch, equal on every rank."""
        generator = np.random.default_rng((self._seed, epoch))
        return Order(torch.from_numpy(generator.permutation(self._indices)), epoch)

    def samples_until(self, steps: int) -> int:
        """Samples used in the first `steps` steps of an epoch."""
        return min(steps * self._batch_global, self.num_samples)

    def take(self, order: Order, number: int) -> Batch:
        """This rank's share of step `number` of an epoch."""
        first, last = number * self._batch_global, self.samples_until(number + 1)
        start, end = share(last - first, self._index, self._size)
        # An empty share still needs a forward pass with weight zero: DDP's hooks have to run.
        chosen = order.samples[first + start : first + end] if end > start else order.samples[first : first + 1]
        change = _augment(self._augmentation, self._seed, order.epoch, chosen)
        inputs, labels = self._samples.gather(chosen, change)
        return Batch(inputs, labels, end - start, last - first)


class ShareBatches:
    """Training batches of a rank that has loaded only its share of the samples.

    Each rank shuffles its own samples, and a step uses the same fraction of every share: when u of all N samples are
    due, rank r has used count[r] · u / N of its own, rounded down. A step may differ from the global batch by a few
    samples; every sample is still used once an epoch.
    """

    def __init__(
        self,
        samples: Samples,
        counts: Sequence[int],
        *,
        batch_global: int,
        seed: int,
        index: int,
        augmentation: Augmentation | None = None,
    ) -> None:
        self._samples = samples
        self._augmentation = augmentation
        self._counts = tuple(counts)
        self._batch_global = batch_global
        self._seed = seed
        self._index = index
        self.num_samples = sum(counts)
        self.steps_per_epoch = -(-self.num_samples // batch_global)

    def order(self, epoch: int) -> Order:
        """Order of this rank's samples in an epoch."""
        generator = np.random.default_rng((self._seed, epoch, self._index))
        return Order(torch.from_numpy(generator.permutation(self._counts[self._index])), epoch)

    def samples_until(self, steps: int) -> int:
        """Samples used in the first `steps` steps of an epoch, over all ranks."""
        return sum(self._own_until(steps, count) for count in self._counts)

    def take(self, order: Order, number: int) -> Batch:
        """This rank's part of step `number` of an epoch."""
        own = self._counts[self._index]
        start, end = self._own_until(number, own), self._own_until(number + 1, own)
        chosen = order.samples[start:end] if end > start else order.samples[:1]
        # Counted over all ranks: every sample has its own augmentation.
        numbers = chosen + sum(self._counts[: self._index])
        change = _augment(self._augmentation, self._seed, order.epoch, numbers)
        inputs, labels = self._samples.gather(chosen, change)
        return Batch(inputs, labels, end - start, self.samples_until(number + 1) - self.samples_until(number))

    def _own_until(self, steps: int, count: int) -> int:
        return count * min(steps * self._batch_global, self.num_samples) // self.num_samples


def _augment(
    augmentation: Augmentation | None, seed: int, epoch: int, numbers: torch.Tensor
) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """Augmentation of these samples in this epoch; None without augmentation."""
    if augmentation is None:
        return None
    keys = sample_keys(seed, epoch, numbers)
    return lambda images: augmentation(images, keys)
