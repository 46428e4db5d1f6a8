"""Random images that can be learned: a pattern per class with three times as much noise.

    image = pattern[label] / 4 + noise × 3 / 4        pattern and noise uniform in 0..255

Computed from raw random words in integers: equal bytes on every machine and version.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from paceline.data.arrays import TEST_SHARE, Arrays, normalised, order
from paceline.data.bounded_reads import limit_bytes
from paceline.errors import DataError
from paceline.records.settings import DataSettings
from paceline.units import bytes_text

DEFAULT_SHAPE = (28, 28, 1)
DEFAULT_CLASSES = 10
DEFAULT_SAMPLES = 6000
_PATTERN_SEED, _TRAIN_SEED, _TEST_SEED = 1, 2, 3
_CHUNK_BYTES = 1 << 24


def synthetic(settings: DataSettings, *, sources: Path, say: Callable[[str], None]) -> Arrays:
    """Images of the configured shape, classes and number."""
    shape, classes, num_train = synthetic_options(settings)
    num_test = max(1, num_train // TEST_SHARE)
    needed = (num_train + num_test + classes) * math.prod(shape)
    if needed > limit_bytes():
        raise DataError(
            f"{num_train:,} synthetic images of {'×'.join(map(str, shape))} take {bytes_text(needed)}.",
            right=f"On this machine at most {bytes_text(limit_bytes())} are made.",
            next="Ask for fewer samples or a smaller shape.",
        )
    patterns = _random_bytes(np.random.PCG64(_PATTERN_SEED), (classes, *shape)) >> 2
    four = (*_samples(patterns, num_train, _TRAIN_SEED), *_samples(patterns, num_test, _TEST_SEED))
    return normalised(replace(Arrays.of(four, source="made here"), classes=classes), "synthetic")


def synthetic_options(settings: DataSettings) -> tuple[tuple[int, ...], int, int]:
    """Shape, classes and training samples, with defaults."""
    shape = settings.shape or DEFAULT_SHAPE
    classes = DEFAULT_CLASSES if settings.classes is None else settings.classes
    samples = DEFAULT_SAMPLES if settings.samples is None else settings.samples
    if len(shape) != 3 or min(shape) < 1 or classes < 2 or samples < 1:
        raise DataError(
            f"Synthetic data of shape {list(shape)}, {classes} classes and {samples} samples cannot be made.",
            right="shape is [height, width, channels], each 1 or more; classes is 2 or more, samples 1 or more.",
            next="Correct [data] in the study file.",
        )
    return shape, classes, samples


def _samples(patterns: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels, with balanced classes."""
    labels = order(count, seed) % len(patterns)
    images = np.empty((count, *patterns.shape[1:]), dtype=np.uint8)
    words = np.random.PCG64(seed + 1000)
    per_chunk = max(1, _CHUNK_BYTES // patterns[0].nbytes)
    for start in range(0, count, per_chunk):
        part = images[start : start + per_chunk]
        noise = _random_bytes(words, part.shape)
        np.subtract(noise, noise >> 2, out=part)
        part += patterns[labels[start : start + per_chunk]]
    return images, labels


def _random_bytes(words: np.random.PCG64, shape: tuple[int, ...]) -> np.ndarray:
    size = math.prod(shape)
    raw = words.random_raw(-(-size // 8)).astype("<u8", copy=False)
    return raw.view(np.uint8)[:size].reshape(shape)
