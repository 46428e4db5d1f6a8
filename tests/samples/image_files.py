"""Small image files and folders of them, for the tests that read them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def plain(colour: tuple[int, ...] = (200, 30, 60), size: tuple[int, int] = (24, 16), mode: str = "RGB") -> Image.Image:
    """An image of one colour."""
    return Image.new(mode, size, colour if len(colour) > 1 else colour[0])


def noise(seed: int = 0, size: tuple[int, int] = (24, 16)) -> Image.Image:
    """An image that no other seed has."""
    values = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(values)


def image_bytes(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    """An image as the contents of a file."""
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def write_folder(root: Path, counts: Mapping[str, int], *, size: tuple[int, int] = (12, 10), seed: int = 0) -> Path:
    """One folder per class with so many images, all of them different; a class may be `train/daisy`."""
    for number, (label, count) in enumerate(counts.items()):
        (root / label).mkdir(parents=True, exist_ok=True)
        for image in range(count):
            data = image_bytes(noise(seed + 1000 * number + image, size))
            (root / label / f"{image:04d}.png").write_bytes(data)
    return root
