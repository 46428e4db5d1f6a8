"""Random augmentation of training images, one batch at a time.

    crop, shift          by indices, on the bytes                       rows are copied, nothing is computed
    zoom, rotation       with crop and shift, as one affine mapping     bilinear, once for all four
    colour               brightness, contrast and saturation            one weighted sum for all three
    flip                 by indices, on bytes
    cutout               a square with the mean of the data set

They are applied in this order. The augmentation of a sample follows from its key (`draws.py`), and the key from seed,
epoch and index: it is equal on any number of ranks and after a resume. Every transform has separate draws: enabling
one changes no other.

torchvision's transforms.v2 draw once per call, for a whole batch, or have to be called per sample; kornia draws per
sample, but in floats and from a generator's state. bench/augment.py has the ratios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

from paceline.errors import RequestError
from paceline.records.settings import AugmentSettings
from paceline.training.draws import uniform

# Index of each draw.
_CROP_Y, _CROP_X, _FLIP, _SHIFT_Y, _SHIFT_X, _ZOOM, _TURN = range(7)
_BRIGHTNESS, _CONTRAST, _SATURATION, _CUT_Y, _CUT_X = range(7, 12)
_DRAWS = 12

# Perceived brightness of red, green and blue (ITU-R BT.601).
_LUMA = (0.299, 0.587, 0.114)


class Augmentation:
    """Applies `[augment]` to batches of N×H×W×C, bytes or floats."""

    def __init__(self, settings: AugmentSettings, shape: Sequence[int], blank: Sequence[float] = ()) -> None:
        """For images of one shape (height, width, channels); `blank` fills a cutout, one value per channel."""
        self._settings = settings
        self._height, self._width, self._channels = shape
        self._blank = tuple(blank) or (0.0,) * self._channels
        self._changes = settings != AugmentSettings()
        self._turns = settings.zoom > 0 or settings.rotation > 0
        # Whole pixels: a shift does not blur.
        self._most_y = math.floor(settings.shift * self._height + 0.5)
        self._most_x = math.floor(settings.shift * self._width + 0.5)
        self._check()

    def __call__(self, images: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        """Augmented images in the same shape and type; one key (int64) per image."""
        if not self._changes:
            return images
        settings, draws = self._settings, uniform(keys, _DRAWS)
        done = images if self._turns else self._moved(images, draws)
        if self._turns or settings.colour:
            done = done.to(torch.float32) if images.dtype == torch.uint8 else done
            done = self._mapped(done, draws) if self._turns else done
            done = self._coloured(done, draws) if settings.colour else done
            done = done.round().clamp_(0, 255).to(torch.uint8) if images.dtype == torch.uint8 else done
        # After all mappings: the direction of a shift does not depend on the flip.
        done = _flipped(done, draws[_FLIP] < 0.5) if settings.flip else done
        return self._cut(done, draws) if settings.cutout else done

    def _check(self) -> None:
        """Raise RequestError if a crop or cutout is larger than the image."""
        settings, size = self._settings, min(self._height, self._width)
        for key, most in (("crop", size - 1), ("cutout", size)):
            value = getattr(settings, key)
            if value > most:
                raise RequestError(
                    f"augment.{key} = {value}: the images of this data set have {self._height}×{self._width} pixels.",
                    right=f"For them it is at most {most}.",
                    next=f"For example: --set augment.{key}={max(1, size // 8)}",
                )

    def _moved(self, images: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
        """Crop and shift without other mappings: a window of each image, padded with black."""
        pad, most_y, most_x = self._settings.crop, self._most_y, self._most_x
        if not (pad or most_y or most_x):
            return images
        count, height, width, channels = images.shape
        pad_y, pad_x = pad + most_y, pad + most_x
        padded = images.new_zeros(count, height + 2 * pad_y, width + 2 * pad_x, channels)
        padded[:, pad_y : pad_y + height, pad_x : pad_x + width] = images
        top = _integers(draws[_CROP_Y], 2 * pad + 1) + _integers(draws[_SHIFT_Y], 2 * most_y + 1)
        left = _integers(draws[_CROP_X], 2 * pad + 1) + _integers(draws[_SHIFT_X], 2 * most_x + 1)
        # Every row of the result is contiguous in the padded images: rows are found by their offsets.
        row = padded.stride(1)
        begins = torch.arange(count, device=images.device) * padded.stride(0) + top * row + left * channels
        begins = begins[:, None] + torch.arange(height, device=images.device) * row
        rows = padded.as_strided((padded.numel() - width * channels + 1, width * channels), (1, 1))
        return rows.index_select(0, begins.flatten()).view(images.shape)

    def _mapped(self, images: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
        """Cropped, zoomed, turned and shifted: each pixel is looked up where it comes from, black outside of the image.

        A pixel at p, measured from the centre, comes from R⁻¹ (p − t) / z − c, with crop c, zoom z, rotation R and
        shift t.
        """
        settings, height, width = self._settings, self._height, self._width
        zoom = 1 + settings.zoom * (2 * draws[_ZOOM] - 1)
        angle = math.radians(settings.rotation) * (2 * draws[_TURN] - 1)
        # A window that begins further down shows the image further up.
        shift_y, shift_x, crop_y, crop_x = (
            (most - _integers(draws[row], 2 * most + 1))[:, None, None]
            for row, most in (
                *((_SHIFT_Y, self._most_y), (_SHIFT_X, self._most_x)),
                *((_CROP_Y, settings.crop), (_CROP_X, settings.crop)),
            )
        )
        cosine, sine = (angle.cos() / zoom)[:, None, None], (angle.sin() / zoom)[:, None, None]
        y = (torch.arange(height, device=images.device) - (height - 1) / 2)[:, None] - shift_y
        x = torch.arange(width, device=images.device) - (width - 1) / 2 - shift_x
        # grid_sample counts from −1 to 1, from edge to edge. Not affine_grid: its product of matrices may round
        # otherwise in a batch of another size.
        from_x, from_y = cosine * x + sine * y - crop_x, cosine * y - sine * x - crop_y
        grid = torch.stack((from_x * (2 / width), from_y * (2 / height)), dim=3)
        planes = images.permute(0, 3, 1, 2)
        sampled = functional.grid_sample(planes, grid.to(images.dtype), mode="bilinear", align_corners=False)
        return sampled.permute(0, 2, 3, 1)

    def _coloured(self, images: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
        """Brightness b, then contrast c about the mean grey, then saturation s about each pixel's grey.

        Written out, that is s·c·b·x + (1 − s)·c·b·grey(x) + (1 − c)·b·mean grey: one sum, cut off once, at its end.
        """
        around = 1 + self._settings.colour * (2 * draws - 1)
        b, c, s = (around[row][:, None, None, None] for row in (_BRIGHTNESS, _CONTRAST, _SATURATION))
        weights = _LUMA if self._channels == 3 else (1 / self._channels,) * self._channels
        grey = sum(images[..., n : n + 1] * weight for n, weight in enumerate(weights))
        assert isinstance(grey, torch.Tensor)
        # In float64: the mean must not depend on the order of summation.
        mean = grey.mean((1, 2, 3), keepdim=True, dtype=torch.float64)
        own, others, all_over = s * c * b, (1 - s) * c * b, (1 - c) * b * mean
        return images * own.to(images.dtype) + (grey * others.to(images.dtype) + all_over.to(images.dtype))

    def _cut(self, images: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
        """A square about a pixel anywhere in the image, as much of it as lies inside (DeVries, Taylor 2017)."""
        side = self._settings.cutout
        blank = torch.tensor(self._blank, device=images.device)
        blank = (blank.round() if images.dtype == torch.uint8 else blank).to(images.dtype)
        inside = []
        for draw, size in ((draws[_CUT_Y], self._height), (draws[_CUT_X], self._width)):
            begin = (_integers(draw, size) - side // 2)[:, None]
            at = torch.arange(size, device=images.device)
            inside.append((at >= begin) & (at < begin + side))
        return torch.where((inside[0][:, :, None] & inside[1][:, None, :])[..., None], blank, images)


def _flipped(images: torch.Tensor, turned: torch.Tensor) -> torch.Tensor:
    """Images, mirrored left to right if `turned`."""
    # Whole images are copied: a fifth of the time of `where` for bytes.
    both, count = torch.cat((images, images.flip(2))), len(images)
    return both.index_select(0, torch.arange(count, device=images.device) + count * turned)


def _integers(draws: torch.Tensor, count: int) -> torch.Tensor:
    """Uniform integers from 0 to `count` - 1."""
    return (draws * count).to(torch.int64)
