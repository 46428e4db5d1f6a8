"""Preprocessing of a pretrained network, for a whole batch at once.

    pixels 0..255, N×C×H×W ──▶ three channels ──▶ shorter side to `resize` ──▶ middle `size`×`size` ──▶ (x - mean) / std

    own    as in pretraining: size, interpolation, scaling
    twice  `own` on pixels that were divided by 255 before: a script that scales images for a network with a scaling
           layer, as Keras's EfficientNet has
    unit   pixels ÷ 255 only: what most scripts do
    none   pixels unchanged, in their original size

All but `own` are mistakes, one of which is in a published study: comparing them with `own` shows which step makes a
pretrained network useless. With an `image_size` all resize images to that size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional

from paceline.catalog import PREPROCESSING
from paceline.errors import ModelError

CHANNELS = 3
PIXELS = 255.0
"""The largest value of a pixel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """Steps of a preprocessing; `size` None keeps the size of the images."""

    size: int | None = None
    """Height and width of the network input."""
    resize: int | None = None
    """Length of the shorter side before the centre crop; None for `size`."""
    interpolation: str = "bilinear"
    """bilinear or bicubic, antialiased."""
    mean: tuple[float, ...] = (0.0,) * CHANNELS
    std: tuple[float, ...] = (1.0,) * CHANNELS
    """Both in units of pixels, 0 to 255, in the order red, green, blue."""
    reverse: bool = False
    """Whether the network was trained on blue, green, red."""

    @property
    def text(self) -> str:
        """Description in one line, for the record."""
        parts = ["size as given"]
        if self.size is not None:
            before = f", the middle of {self.resize}" if self.resize not in (None, self.size) else ""
            parts = [f"{self.size}×{self.size} pixels ({self.interpolation}, antialiased{before})"]
        if (self.mean, self.std) == ((0.0,) * CHANNELS, (1.0,) * CHANNELS):
            parts.append("values 0 to 255 as they are")
        else:
            parts.append(f"(x - {_listed(self.mean)}) / {_listed(self.std)}")
        return ", ".join(parts + ["channels reversed"] * self.reverse)


def selected_preparation(own: Preparation, *, kind: str, image_size: int | None) -> Preparation:
    """Preparation of the options `preprocessing` and `image_size`."""
    if kind not in PREPROCESSING:
        known = ", ".join(PREPROCESSING)
        raise ModelError(f"preprocessing = {kind!r} is not known.", right=f"It is one of: {known}.")
    if image_size is not None and (isinstance(image_size, bool) or not isinstance(image_size, int) or image_size < 1):
        raise ModelError(f"image_size = {image_size!r} is impossible.", right="It is a number of pixels, 1 or more.")
    if kind in ("own", "twice"):
        sized = own if image_size is None else _sized(own, image_size)
        return sized if kind == "own" else _after_division(sized)
    std = PIXELS if kind == "unit" else 1.0
    return Preparation(size=image_size, interpolation=own.interpolation, std=(std,) * CHANNELS)


def _sized(own: Preparation, size: int) -> Preparation:
    """The preparation at another size, with the same fraction cropped."""
    if own.resize is None or own.size is None:
        return replace(own, size=size)
    return replace(own, size=size, resize=round(own.resize * size / own.size))


def _after_division(own: Preparation) -> Preparation:
    """The preparation applied to pixels ÷ 255: (x / 255 - mean) / std is (x - 255 mean) / (255 std)."""
    mean, std = (tuple(PIXELS * value for value in values) for values in (own.mean, own.std))
    return replace(own, mean=mean, std=std)


class Preprocessing(nn.Module):
    """A preparation as the first module of a network, without parameters or buffers."""

    def __init__(self, preparation: Preparation, shape: tuple[int, int, int]) -> None:
        super().__init__()
        if shape[2] not in (1, CHANNELS):
            raise ModelError(
                f"Images of {'×'.join(map(str, shape))} have {shape[2]} channels.",
                right="Pretrained networks take colour images, or grey ones, whose channel is then repeated.",
                next="Choose another model, for example `--set model.name=mlp`.",
            )
        self.preparation = preparation

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        wanted = self.preparation
        if pixels.shape[1] == 1:
            pixels = pixels.expand(-1, CHANNELS, -1, -1)
        if wanted.size is not None:
            pixels = _centre_crop(_resized(pixels, wanted.resize or wanted.size, wanted.interpolation), wanted.size)
        mean, std = (
            torch.tensor(values, dtype=pixels.dtype, device=pixels.device).view(-1, 1, 1)
            for values in (wanted.mean, wanted.std)
        )
        prepared = (pixels - mean) / std
        return prepared.flip(1) if wanted.reverse else prepared

    def extra_repr(self) -> str:
        return self.preparation.text


def _resized(pixels: torch.Tensor, shorter: int, interpolation: str) -> torch.Tensor:
    height, width = pixels.shape[2:]
    if min(height, width) == shorter:
        return pixels
    # As torchvision rounds the longer side.
    size = [shorter * side // min(height, width) for side in (height, width)]
    resized = functional.interpolate(pixels, size=size, mode=interpolation, align_corners=False, antialias=True)
    # Bicubic interpolation overshoots at edges, beyond the range of pixels.
    return resized.clamp(0.0, 255.0) if interpolation == "bicubic" else resized


def _centre_crop(pixels: torch.Tensor, size: int) -> torch.Tensor:
    top, left = ((side - size) // 2 for side in pixels.shape[2:])
    return pixels[:, :, top : top + size, left : left + size]


def _listed(values: tuple[float, ...]) -> str:
    texts = [f"{value:.4g}" for value in values]
    return texts[0] if len(set(texts)) == 1 else f"[{', '.join(texts)}]"
