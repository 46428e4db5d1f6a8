"""One image file as pixels: decoded, upright, in RGB, cropped and resized to a square.

    file ─▶ format from its contents, not its name ─▶ first frame ─▶ RGB ─▶ largest centre square ─▶ side × side

Transparent pixels become white; 16 bits per colour become 8. Formats whose decoders run other programs, such as EPS,
are not supported. The declared size is checked before decoding.
"""

from __future__ import annotations

import os
import stat
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
EXTENSIONS = frozenset(
    (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pnm")
)
MAX_PIXELS = 64_000_000
"""A photo of the largest cameras; four bytes per pixel during decoding."""
_STARTS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")
_ORIENTATION = 0x0112
# Values of that tag, and the transposition of Pillow that sets the image upright.
_UPRIGHT = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
# Exceptions of Pillow for damaged files, which have no common base.
_DECODING_ERRORS = (
    OSError,
    ValueError,
    SyntaxError,
    TypeError,
    IndexError,
    KeyError,
    AttributeError,
    EOFError,
    OverflowError,
    ZeroDivisionError,
    RuntimeError,
    AssertionError,
    MemoryError,
    struct.error,
    Warning,
)


class Damaged(Exception):
    """Reason why a file has no image."""


def pillow() -> Any:
    """Pillow's Image module; DataError if it is not installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise DataError(
            f"Images cannot be decoded here: {error}.",
            right="Image files are decoded by Pillow, which Paceline does not need for anything else.",
            next="Install it: pip install 'paceline[vision]'",
        ) from error
    return Image


@contextmanager
def without_warnings() -> Iterator[None]:
    """Context that silences warnings of Pillow about files that it decodes.

    It affects the whole process: enter it before threads start and leave it after they have ended.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")
        warnings.filterwarnings("ignore", category=pillow().DecompressionBombWarning)
        yield


def has_image_signature(path: str | Path) -> bool:
    """Whether the first bytes of a file are those of an image; False if it cannot be read."""
    try:
        with open(path, "rb") as file:
            start = file.read(16)
    except OSError:
        return False
    return start.startswith(_STARTS) or (start[:4] == b"RIFF" and start[8:12] == b"WEBP")


def pixels(path: str | Path, side: int) -> np.ndarray:
    """The image in a file, side × side × 3 bytes; raises Damaged without one."""
    image_module = pillow()
    try:
        _refuse_file(path)
        with open(path, "rb") as file, image_module.open(file, formats=FORMATS) as image:
            _refuse_size(image)
            # A JPEG can be decoded at a reduced size in less time: at twice the final size.
            image.draft(None, (2 * side, 2 * side))
            square = _square(_upright(image, image_module), side, image_module)
            return np.asarray(_in_colour(square, image_module))
    except Damaged:
        raise
    except image_module.DecompressionBombError as error:
        raise Damaged(f"declares more than {MAX_PIXELS // 10**6} million pixels") from error
    except image_module.UnidentifiedImageError as error:
        raise Damaged("is not an image") from error
    except _DECODING_ERRORS as error:
        reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
        raise Damaged(f"cannot be decoded: {reason[:100]}") from error


def _refuse_file(path: str | Path) -> None:
    """Refuse other than plain files: opening a pipe could block."""
    try:
        found = os.stat(path)
    except FileNotFoundError as error:
        raise Damaged("is a link to nothing" if os.path.islink(path) else "is gone") from error
    if not stat.S_ISREG(found.st_mode):
        raise Damaged("is not a file")
    if not found.st_size:
        raise Damaged("is empty")


def _refuse_size(image: Image.Image) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise Damaged(f"declares {width}×{height} pixels, more than {MAX_PIXELS // 10**6} million")
    if not width or not height:
        raise Damaged(f"declares {width}×{height} pixels")


def _upright(image: Image.Image, image_module: Any) -> Image.Image:
    """The image, rotated as its EXIF orientation says."""
    # First: reading EXIF may load the pixels and hide damage.
    image.load()
    try:
        turn = _UPRIGHT.get(image.getexif().get(_ORIENTATION, 1))
    except (*_DECODING_ERRORS, image_module.DecompressionBombError):  # damaged EXIF is ignored
        turn = None
    return image if turn is None else image.transpose(image_module.Transpose[turn])


def _square(image: Image.Image, side: int, image_module: Any) -> Image.Image:
    """The largest centre square, cropped and resized in one operation."""
    image = _resizable(image)
    width, height = image.size
    short = min(width, height)
    left, top = (width - short) / 2, (height - short) / 2
    return image.resize((side, side), image_module.Resampling.BICUBIC, box=(left, top, left + short, top + short))


def _resizable(image: Image.Image) -> Image.Image:
    """The image in a mode whose values can be averaged: not palettes or single bits."""
    if image.mode in ("I", "I;16", "I;16L", "I;16B", "I;16N"):
        return _from_16_bits(image)
    if image.mode in ("RGB", "RGBa", "L"):
        return image if "transparency" not in image.info else image.convert("RGBA").convert("RGBa")
    if image.has_transparency_data:
        # Premultiplied alpha: transparent colours must not affect visible ones.
        return image.convert("RGBA").convert("RGBa")
    if image.mode == "F":
        raise Damaged("has floating-point pixels, whose range is not known")
    return image.convert("RGB")


def _from_16_bits(image: Image.Image) -> Image.Image:
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise Damaged(f"has values from {values.min()} to {values.max()}, beyond 16 bits")
    return pillow().fromarray((values >> 8).astype(np.uint8))


def _in_colour(square: Image.Image, image_module: Any) -> Image.Image:
    if square.mode == "RGBa":
        white = image_module.new("RGBA", square.size, (255, 255, 255, 255))
        return image_module.alpha_composite(white, square.convert("RGBA")).convert("RGB")
    return square.convert("RGB")
