"""Every transform against a slow one that goes sample by sample and pixel by pixel; and what holds for all of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from paceline.errors import RequestError
from paceline.records.settings import AugmentSettings
from paceline.training.augment import Augmentation
from paceline.training.draws import sample_keys, uniform

ALL = AugmentSettings(crop=2, flip=True, shift=0.2, zoom=0.3, rotation=25.0, colour=0.4, cutout=3)
SHAPES = [(8, 8, 1), (7, 10, 3), (11, 5, 2)]
# Which draw is whose; written down again here, because results of finished runs depend on it.
NAMES = ("crop_y", "crop_x", "flip", "shift_y", "shift_x", "zoom", "turn", "b", "c", "s", "cut_y", "cut_x")
DRAWS = {name: at for at, name in enumerate(NAMES)}


def images(count: int, shape: tuple[int, ...], dtype: str = "uint8") -> torch.Tensor:
    generator = np.random.default_rng(count)
    if dtype == "uint8":
        return torch.from_numpy(generator.integers(0, 256, (count, *shape), dtype=np.uint8))
    return torch.from_numpy(generator.normal(size=(count, *shape)).astype(dtype))


def augmented(given: AugmentSettings, batch: torch.Tensor, keys: torch.Tensor, **more: Any) -> torch.Tensor:
    return Augmentation(given, batch.shape[1:], **more)(batch, keys)


def drawn(keys: torch.Tensor) -> list[dict[str, float]]:
    values = uniform(keys, len(DRAWS)).numpy()
    return [{name: float(values[at, n]) for name, at in DRAWS.items()} for n in range(len(keys))]


def moved(image: np.ndarray, down: int, right: int) -> np.ndarray:
    """An image further down and to the right, black where it came from."""
    height, width, _ = image.shape
    out = np.zeros_like(image)
    for y in range(height):
        for x in range(width):
            if 0 <= y - down < height and 0 <= x - right < width:
                out[y, x] = image[y - down, x - right]
    return out


def displacement(given: AugmentSettings, draw: dict[str, float], axis: str, size: int) -> tuple[int, int]:
    """Pixels that crop and shift move an image along an axis."""
    most = math.floor(given.shift * size + 0.5)
    crop = given.crop - math.floor(draw[f"crop_{axis}"] * (2 * given.crop + 1))
    return crop, most - math.floor(draw[f"shift_{axis}"] * (2 * most + 1))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(
    "given",
    [
        AugmentSettings(crop=3),
        AugmentSettings(flip=True),
        AugmentSettings(shift=0.3),
        AugmentSettings(crop=1, flip=True, shift=0.25),
    ],
)
def test_crop_flip_and_shift_move_pixels_and_change_none(given, shape, dtype):
    batch, keys = images(40, shape, dtype), sample_keys(1, 2, torch.arange(40))
    for image, draw, found in zip(batch.numpy(), drawn(keys), augmented(given, batch, keys).numpy(), strict=True):
        down, right = (sum(displacement(given, draw, axis, size)) for axis, size in zip("yx", shape[:2], strict=True))
        expected = moved(image, down, right)
        if given.flip and draw["flip"] < 0.5:
            expected = expected[:, ::-1]
        assert np.array_equal(found, expected)


def test_crop_cuts_any_window_of_the_padded_image_and_flip_turns_half():
    batch = torch.arange(1, 26, dtype=torch.uint8).reshape(1, 5, 5, 1).expand(4000, 5, 5, 1).contiguous()
    done = augmented(AugmentSettings(crop=1), batch, sample_keys(0, 0, torch.arange(4000)))
    windows, counts = done.flatten(1).unique(dim=0, return_counts=True)
    assert len(windows) == 9
    assert counts.min() > 4000 / 9 * 0.7
    turned = augmented(AugmentSettings(flip=True), batch, sample_keys(0, 0, torch.arange(4000)))[:, 0, 0, 0] == 5
    assert 0.45 < turned.double().mean() < 0.55


def mapped(image: np.ndarray, given: AugmentSettings, draw: dict[str, float]) -> np.ndarray:
    """Zoom, rotation and shift through Pillow, which asks for every pixel of the result where it comes from."""
    height, width, channels = image.shape
    zoom = 1 + given.zoom * (2 * draw["zoom"] - 1)
    angle = math.radians(given.rotation) * (2 * draw["turn"] - 1)
    down, right = (displacement(given, draw, axis, size)[1] for axis, size in (("y", height), ("x", width)))
    cosine, sine = math.cos(angle) / zoom, math.sin(angle) / zoom
    # Pillow counts from the corner of the image, where a pixel's centre is at a half; a border of black pixels all
    # around makes it fade out at the edge as it does for us.
    border = 2
    centre_x, centre_y = width / 2 + border, height / 2 + border
    a, b, d, e = cosine, sine, -sine, cosine
    c = centre_x - a * (centre_x + right) - b * (centre_y + down)
    f = centre_y - d * (centre_x + right) - e * (centre_y + down)
    out = np.zeros_like(image)
    for channel in range(channels):
        padded = np.pad(image[..., channel], border).astype(np.float32)
        plane = Image.fromarray(padded)
        turned = plane.transform(plane.size, Image.Transform.AFFINE, (a, b, c, d, e, f), Image.Resampling.BILINEAR)
        out[..., channel] = np.asarray(turned)[border:-border, border:-border]
    return out


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "given",
    [
        AugmentSettings(zoom=0.4),
        AugmentSettings(rotation=180.0),
        AugmentSettings(rotation=1e-9, shift=0.3),
        AugmentSettings(zoom=0.3, rotation=40.0, shift=0.3),
    ],
)
def test_zoom_rotation_and_shift_are_those_of_pillow(given, shape):
    batch, keys = images(30, shape, "float32"), sample_keys(1, 2, torch.arange(30))
    batch = batch.abs()
    for image, draw, found in zip(batch.numpy(), drawn(keys), augmented(given, batch, keys).numpy(), strict=True):
        assert found == pytest.approx(mapped(image, given, draw), abs=2e-3)


def test_a_quarter_turn_of_a_square_is_that_of_numpy():
    """Of many samples, some are turned by nearly 90 degrees: clockwise for a draw near 1."""
    given, keys = AugmentSettings(rotation=90.0), sample_keys(0, 0, torch.arange(200_000))
    turns = uniform(keys, 7)[6]
    for chosen, quarters in ((turns.argmax(), -1), (turns.argmin(), 1)):
        batch = images(1, (6, 6, 1), "float32")
        found = augmented(given, batch, keys[chosen][None])[0].numpy()
        assert found == pytest.approx(np.rot90(batch[0].numpy(), quarters), abs=2e-3)


def coloured(image: np.ndarray, strength: float, draw: dict[str, float]) -> np.ndarray:
    """Brightness, contrast, saturation one after another, as they are defined."""
    b, c, s = (1 + strength * (2 * draw[name] - 1) for name in "bcs")
    weights = (0.299, 0.587, 0.114) if image.shape[2] == 3 else (1 / image.shape[2],) * image.shape[2]
    bright = image.astype(np.float64) * b
    mean = (bright @ weights).mean()
    contrasted = (bright - mean) * c + mean
    grey = (contrasted @ weights)[..., None]
    return (contrasted - grey) * s + grey


@pytest.mark.parametrize("shape", [*SHAPES, (6, 6, 3)])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_colour_is_brightness_then_contrast_then_saturation(shape, dtype):
    batch, keys = images(30, shape, dtype), sample_keys(1, 2, torch.arange(30))
    found = augmented(AugmentSettings(colour=0.6), batch, keys)
    assert found.dtype == batch.dtype
    for image, draw, one in zip(batch.numpy(), drawn(keys), found.numpy(), strict=True):
        expected = coloured(image, 0.6, draw)
        if dtype == "uint8":
            expected = expected.round().clip(0, 255)
            assert np.abs(one.astype(float) - expected).max() <= 1  # a half may be rounded either way
            assert (one == expected).mean() > 0.99
        else:
            assert one == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_cutout_blanks_what_of_a_square_lies_in_the_image(shape, side, dtype):
    blank = (10.4, 20.6, 30.0)[: shape[2]]
    batch, keys = images(40, shape, dtype), sample_keys(1, 2, torch.arange(40))
    found = augmented(AugmentSettings(cutout=side), batch, keys, blank=blank)
    for image, draw, one in zip(batch.numpy(), drawn(keys), found.numpy(), strict=True):
        top, left = (math.floor(draw[f"cut_{a}"] * n) - side // 2 for a, n in zip("yx", shape[:2], strict=True))
        expected = image.copy()
        expected[max(top, 0) : top + side, max(left, 0) : left + side] = (
            np.round(blank) if dtype == "uint8" else np.float32(blank)
        )
        assert np.array_equal(one, expected)


@pytest.mark.parametrize("key", ["crop", "flip", "shift", "zoom", "rotation", "colour", "cutout"])
def test_turning_one_transform_on_leaves_the_draws_of_the_others_alone(key):
    """Without `key`, a batch in which the others are on is what it is with `key` at almost nothing."""
    without = replace(ALL, **{key: type(getattr(ALL, key))()})
    batch, keys = images(10, (9, 9, 3), "float32"), sample_keys(0, 0, torch.arange(10))
    if key in ("shift", "zoom", "rotation", "colour"):
        near = replace(ALL, **{key: 1e-9})
        assert augmented(near, batch, keys) == pytest.approx(augmented(without, batch, keys), abs=1e-4)
    assert not augmented(ALL, batch, keys).equal(augmented(without, batch, keys)), "it does nothing"


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("key", ["zoom", "rotation"])
def test_crop_shift_and_flip_do_the_same_whether_or_not_an_image_is_zoomed_or_turned_too(key, dtype):
    given = AugmentSettings(crop=2, flip=True, shift=0.3)
    batch, keys = images(40, (9, 9, 3), dtype), sample_keys(0, 0, torch.arange(40))
    near, alone = (augmented(each, batch, keys).double() for each in (replace(given, **{key: 1e-9}), given))
    assert near.numpy() == pytest.approx(alone.numpy(), abs=1e-4 if dtype == "float32" else 1)


@settings(deadline=None, max_examples=60)
@given(
    crop=st.integers(0, 3),
    flip=st.booleans(),
    shift=st.sampled_from([0.0, 0.1, 0.5]),
    zoom=st.sampled_from([0.0, 0.2]),
    rotation=st.sampled_from([0.0, 30.0, 180.0]),
    colour=st.sampled_from([0.0, 0.5]),
    cutout=st.integers(0, 4),
    shape=st.sampled_from([*SHAPES, (4, 9, 3), (5, 5, 4)]),
    dtype=st.sampled_from(["uint8", "float32", "float64"]),
    split=st.integers(1, 12),
)
def test_a_sample_is_changed_alike_in_any_batch(shape, dtype, split, **given):
    """Bit for bit, whatever stands beside it: so any number of ranks sees the same images."""
    batch, keys = images(12, shape, dtype), sample_keys(5, 1, torch.arange(100, 112))
    before, change = batch.clone(), Augmentation(AugmentSettings(**given), shape)
    whole = change(batch, keys)
    assert whole.shape == batch.shape and whole.dtype == batch.dtype
    assert batch.equal(before), "changed in place"
    parts = [change(*part) for part in zip(batch.split(split), keys.split(split), strict=True)]
    assert torch.cat(parts).equal(whole)
    backwards = change(batch.flip(0), keys.flip(0)).flip(0)
    assert backwards.equal(whole)


def test_nothing_asked_for_is_nothing_done():
    batch = images(4, (8, 8, 3))
    assert augmented(AugmentSettings(), batch, torch.arange(4)) is batch


@pytest.mark.parametrize(("key", "value"), [("crop", 8), ("cutout", 9)])
def test_more_than_the_image_is_refused(key, value):
    with pytest.raises(RequestError, match=rf"augment\.{key} = {value}.*8×12 pixels"):
        Augmentation(AugmentSettings(**{key: value}), (8, 12, 3))
    Augmentation(AugmentSettings(**{key: value - 1}), (8, 12, 3))
