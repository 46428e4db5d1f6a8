from __future__ import annotations

import numpy as np
import pytest
import torch

from paceline.errors import ModelError
from paceline.training.models.preprocessing import Preparation, Preprocessing, selected_preparation

OWN = Preparation(size=224, resize=256, interpolation="bicubic", mean=(127.0,) * 3, std=(128.0,) * 3)


def photo(height: int, width: int, low: int = 64, high: int = 192) -> torch.Tensor:
    rng = np.random.default_rng(3)
    return torch.from_numpy(rng.integers(low, high, (2, 3, height, width))).float()


@pytest.mark.parametrize(("height", "width"), [(32, 32), (300, 300), (40, 64), (90, 70)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_it_does_what_pillow_does(height, width, interpolation):
    """Shorter side to 64, the middle 56×56: the networks were trained on images that Pillow had resized."""
    image = pytest.importorskip("PIL.Image")
    ours = Preprocessing(Preparation(size=56, resize=64, interpolation=interpolation), (height, width, 3))
    pixels = photo(height, width)
    factor = 64 / min(height, width)
    side = (int(width * factor), int(height * factor))
    method = {"bilinear": image.Resampling.BILINEAR, "bicubic": image.Resampling.BICUBIC}[interpolation]
    array = pixels[0].permute(1, 2, 0).byte().numpy()
    left, top = (side[0] - 56) // 2, (side[1] - 56) // 2
    theirs = np.asarray(image.fromarray(array).resize(side, method).crop((left, top, left + 56, top + 56)))
    difference = (ours(pixels)[0].permute(1, 2, 0).numpy() - theirs).astype(float)
    assert np.abs(difference).max() < 1.5  # Pillow rounds to whole values, after rows and after columns


def test_bicubic_weights_do_not_leave_the_range_of_pixels():
    """Pillow cuts off what overshoots, and so no network has seen it."""
    resized = Preprocessing(Preparation(size=64, interpolation="bicubic"), (16, 16, 3))(photo(16, 16, 0, 256))
    assert (resized.min(), resized.max()) == (0.0, 255.0)


def test_scaling_is_the_published_formula_and_channels_may_be_reversed():
    pixels = photo(8, 8)
    scaled = Preprocessing(Preparation(mean=(10.0, 20.0, 30.0), std=(2.0, 4.0, 8.0)), (8, 8, 3))(pixels)
    torch.testing.assert_close(scaled[:, 2], (pixels[:, 2] - 30.0) / 8.0)
    reversed_ = Preprocessing(Preparation(mean=(10.0, 20.0, 30.0), reverse=True), (8, 8, 3))(pixels)
    torch.testing.assert_close(reversed_[:, 0], pixels[:, 2] - 30.0)


def test_a_grey_image_is_given_three_times():
    ready = Preprocessing(Preparation(size=8), (8, 8, 1))(torch.full((2, 1, 8, 8), 9.0))
    assert ready.shape == (2, 3, 8, 8) and bool((ready == 9.0).all())


def test_other_numbers_of_channels_are_refused():
    with pytest.raises(ModelError, match="8×8×4 have 4 channels"):
        Preprocessing(OWN, (8, 8, 4))


@pytest.mark.parametrize(
    ("kind", "image_size", "size", "resize", "mean", "std"),
    [
        ("own", None, 224, 256, 127.0, 128.0),
        ("own", 112, 112, 128, 127.0, 128.0),
        ("twice", None, 224, 256, 127.0 * 255, 128.0 * 255),
        ("unit", None, None, None, 0.0, 255.0),
        ("unit", 112, 112, None, 0.0, 255.0),
        ("none", None, None, None, 0.0, 1.0),
        ("none", 224, 224, None, 0.0, 1.0),
    ],
)
def test_what_the_options_ask_for(kind, image_size, size, resize, mean, std):
    found = selected_preparation(OWN, kind=kind, image_size=image_size)
    assert (found.size, found.resize, found.mean[0], found.std[0]) == (size, resize, mean, std)


@pytest.mark.parametrize("wrong", [{"kind": "ours"}, {"image_size": 0}, {"image_size": True}, {"image_size": 2.5}])
def test_impossible_options_are_refused(wrong):
    with pytest.raises(ModelError):
        selected_preparation(OWN, **{"kind": "own", "image_size": None, **wrong})


def test_what_was_done_is_said_in_a_line():
    assert OWN.text == "224×224 pixels (bicubic, antialiased, the middle of 256), (x - 127) / 128"
    assert selected_preparation(OWN, kind="none", image_size=None).text == "size as given, values 0 to 255 as they are"


def test_it_has_nothing_that_ranks_would_exchange():
    steps = Preprocessing(OWN, (8, 8, 3))
    assert not list(steps.parameters()) and not list(steps.buffers())
