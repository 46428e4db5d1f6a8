"""The 1,797 handwritten digits that Paceline ships: real data without a download.

They are the test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI, CC BY 4.0;
see `assets/digits.txt`). Pixels count 0 to 16 dots; they are stored as round(dots × 255 / 16): white is 255 as in every
other data set. A fixed selection of 300 samples is the test set.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from paceline.data.arrays import Arrays, normalised, order, sha256
from paceline.errors import DataError
from paceline.records.settings import DataSettings

FILE = Path(__file__).parent / "assets" / "digits.npz"
IMAGES_SHA256 = "8f26b2bd9d135c256808f68f14fdabddde6d9c7f869ae419704b051f0f14b3b3"
LABELS_SHA256 = "8ba4f891220f5e4c9c819638d1602d74b83618f167043c6da52a2a247841ddf0"
NUM_TEST = 300
_SPLIT_SEED = 1797


def digits(settings: DataSettings, *, sources: Path, say: Callable[[str], None]) -> Arrays:
    """1,797 handwritten digits, 8×8×1, from the file inside the package."""
    dots, labels = read_digits(FILE)
    images = np.rint(dots * (255 / 16)).astype(np.uint8)
    shuffled = order(len(images), _SPLIT_SEED)
    test, train = np.sort(shuffled[:NUM_TEST]), np.sort(shuffled[NUM_TEST:])
    four = (images[train], labels[train], images[test], labels[test])
    return normalised(Arrays.of(four, source="shipped with Paceline"), "digits")


def read_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Dots (0..16, N×8×8) and labels of the file, both uint8 and verified."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            dots, labels = file["dots"], file["labels"]
    except (OSError, EOFError, KeyError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        raise _damaged(path, f"cannot be read: {error}") from error
    if (sha256(dots), sha256(labels)) != (IMAGES_SHA256, LABELS_SHA256):
        raise _damaged(path, "does not have the expected SHA-256")
    return dots, labels


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(
        f"The digits file {path} {reason}.",
        right=f"Expected SHA-256: {IMAGES_SHA256} of the pixels, {LABELS_SHA256} of the labels.",
        next="Install Paceline again: its package contains the file.",
    )
