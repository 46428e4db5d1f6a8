"""One image file as pixels: the formats and modes that people have, upright, square, in colour."""

import numpy as np
import pytest
from PIL import Image

from paceline.data.pictures import Damaged, has_image_signature, pixels
from samples.image_files import image_bytes, noise, plain


def decoded(tmp_path, data, side=8, name="a.jpg"):
    path = tmp_path / name
    path.write_bytes(data)
    return pixels(path, side)


def close(found, colour, within=2):
    return np.abs(found.astype(int) - np.array(colour)).max() <= within


RED = (200, 30, 60)
GREY16 = Image.fromarray(np.full((16, 24), 0x80FF, dtype=np.uint16))
PALETTE = plain().convert("P", palette=Image.Palette.ADAPTIVE)
HALF_SEEN = Image.new("RGBA", (24, 16), (*RED, 128))
UNSEEN = Image.new("RGBA", (24, 16), (*RED, 0))
USUAL = {
    "png": (image_bytes(plain()), RED),
    "jpeg": (image_bytes(plain(), "JPEG", quality=95), RED),
    "gif": (image_bytes(plain(), "GIF"), RED),
    "bmp": (image_bytes(plain(), "BMP"), RED),
    "webp": (image_bytes(plain(), "WEBP", lossless=True), RED),
    "tiff": (image_bytes(plain(), "TIFF"), RED),
    "ppm": (image_bytes(plain(), "PPM"), RED),
    "grey": (image_bytes(plain((77,), mode="L")), (77, 77, 77)),
    "one bit": (image_bytes(Image.new("1", (24, 16), 1)), (255, 255, 255)),
    "cmyk jpeg": (image_bytes(Image.new("CMYK", (24, 16), (0, 255, 255, 0)), "JPEG", quality=95), (255, 0, 0)),
    "palette": (image_bytes(PALETTE), RED),
    "palette with transparency": (image_bytes(PALETTE, transparency=PALETTE.getpixel((0, 0))), (255, 255, 255)),
    "transparent": (image_bytes(UNSEEN), (255, 255, 255)),
    "half transparent": (image_bytes(HALF_SEEN), (227, 142, 157)),
    "grey with alpha": (image_bytes(Image.new("LA", (24, 16), (10, 0))), (255, 255, 255)),
    "16 bits": (image_bytes(GREY16), (0x80, 0x80, 0x80)),
    "16 bits in tiff": (image_bytes(GREY16, "TIFF"), (0x80, 0x80, 0x80)),
    "16 bits in pgm": (image_bytes(GREY16, "PPM"), (0x80, 0x80, 0x80)),
    "animated": (image_bytes(plain(), "GIF", save_all=True, append_images=[plain((1, 2, 3))]), RED),
    "a png called jpg": (image_bytes(plain()), RED),
}


@pytest.mark.parametrize("kind", USUAL)
def test_every_usual_kind_becomes_a_square_in_colour(tmp_path, kind):
    data, colour = USUAL[kind]
    found = decoded(tmp_path, data)
    assert (found.shape, found.dtype) == ((8, 8, 3), np.uint8)
    assert close(found, colour, 4 if "jpeg" in kind else 1), found[0, 0]


def test_an_image_of_the_wanted_size_is_not_changed(tmp_path):
    image = noise(1, (16, 16))
    np.testing.assert_array_equal(decoded(tmp_path, image_bytes(image), 16), np.asarray(image))


def test_the_centre_is_kept_and_the_sides_are_cut(tmp_path):
    values = np.zeros((10, 30, 3), dtype=np.uint8)
    values[:, 10:20] = 200
    found = decoded(tmp_path, image_bytes(Image.fromarray(values)), 10)
    assert (found == 200).all()
    found = decoded(tmp_path, image_bytes(Image.fromarray(values.transpose(1, 0, 2))), 10)
    assert (found == 200).all()


def test_a_fine_pattern_is_averaged_and_not_sampled(tmp_path):
    values = np.zeros((64, 64, 3), dtype=np.uint8)
    values[::2] = 255
    found = decoded(tmp_path, image_bytes(Image.fromarray(values)), 8)
    assert close(found[2:-2], (127, 127, 127), 4)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_is_set_upright(tmp_path, orientation):
    """Written with the turn that a camera notes, and seen as without it."""
    upright = Image.fromarray(np.kron([[10, 90], [170, 250]], np.ones((8, 8))).astype(np.uint8))
    undone = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
    turned = upright.transpose(Image.Transpose(undone[orientation])) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = decoded(tmp_path, image_bytes(turned, "PNG", exif=exif), 16)
    np.testing.assert_array_equal(found[..., 0], np.asarray(upright))


def test_a_large_photo_is_decoded_small_and_looks_the_same(tmp_path):
    small = noise(3, (10, 10)).resize((400, 400), Image.Resampling.BICUBIC)
    found = decoded(tmp_path, image_bytes(small, "JPEG", quality=95), 20)
    exact = np.asarray(small.resize((20, 20), Image.Resampling.BICUBIC))
    assert np.abs(found.astype(int) - exact).mean() < 3


def test_colours_that_cannot_be_seen_do_not_bleed(tmp_path):
    values = np.zeros((32, 32, 4), dtype=np.uint8)
    values[..., 0] = 255  # red that nobody sees ...
    values[:, 16:] = (0, 0, 255, 255)  # ... beside blue that everybody does
    found = decoded(tmp_path, image_bytes(Image.fromarray(values)), 8)
    assert close(found[:, 0], (255, 255, 255))
    assert close(found[:, -1], (0, 0, 255))
    # On the way from white to blue red only falls, and stays equal to green.
    np.testing.assert_allclose(found[..., 0].astype(int), found[..., 1], atol=2)


def test_what_begins_like_an_image(tmp_path):
    for form in ("PNG", "JPEG", "GIF", "WEBP", "TIFF"):
        (tmp_path / "a").write_bytes(image_bytes(plain(), form))
        assert has_image_signature(tmp_path / "a"), form
    for data in (b"", b"BMW and others", b"P5 is a form", b"RIFF    WAVE"):
        (tmp_path / "a").write_bytes(data)
        assert not has_image_signature(tmp_path / "a"), data
    assert not has_image_signature(tmp_path / "nothing")


def test_a_strip_does_not_grow_when_it_is_cut_to_a_square(tmp_path):
    found = decoded(tmp_path, image_bytes(plain(size=(60_000, 1))), 32)
    assert found.shape == (32, 32, 3)


def test_a_damaged_file_is_told_apart(tmp_path):
    whole = image_bytes(noise(1, (64, 64)), "JPEG")
    for data, says in ((whole[: len(whole) // 2], "truncated"), (b"", "is empty"), (b"hello", "is not an image")):
        with pytest.raises(Damaged, match=says):
            decoded(tmp_path, data)
