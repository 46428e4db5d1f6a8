"""The 1,797 handwritten digits that scikit-learn carries: real data where nothing can be fetched.

Their pixels count 0 to 16 dots; they are stored as round(dots × 255 / 16), so that white is 255
as in every other set. 300 samples, always the same, are the test set.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from paceline.data.arrays import Arrays, order, sha256, tidy
from paceline.errors import DataError
from paceline.records.settings import DataSettings

IMAGES_SHA256 = "8f26b2bd9d135c256808f68f14fdabddde6d9c7f869ae419704b051f0f14b3b3"
LABELS_SHA256 = "8ba4f891220f5e4c9c819638d1602d74b83618f167043c6da52a2a247841ddf0"
NUM_TEST = 300
_SPLIT_SEED = 1797
_REINSTALL = "Install it again: pip install --force-reinstall scikit-learn"


def digits(settings: DataSettings, *, sources: Path, say: Callable[[str], None]) -> Arrays:
    """1,797 handwritten digits, 8×8×1, from the file inside scikit-learn's package."""
    path = digits_file()
    dots, labels = read_digits(path)
    images = np.rint(dots * (255 / 16)).astype(np.uint8)
    shuffled = order(len(images), _SPLIT_SEED)
    test, train = np.sort(shuffled[:NUM_TEST]), np.sort(shuffled[NUM_TEST:])
    four = (images[train], labels[train], images[test], labels[test])
    return tidy(Arrays.of(four, source="scikit-learn"), "digits")


def digits_file() -> Path:
    """Where the digits lie; the package is found but not imported, which would take a second."""
    found = importlib.util.find_spec("sklearn")
    places = (found.submodule_search_locations or ()) if found else ()
    for place in places:
        path = Path(place) / "datasets" / "data" / "digits.csv.gz"
        if path.is_file():
            return path
    raise DataError(
        "The digits were not found: " + ("scikit-learn does not carry them." if places else "scikit-learn is missing."),
        right="They come with scikit-learn, which Paceline depends on.",
        next=_REINSTALL,
    )


def read_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Dots (0..16, N×8×8) and labels of the file, both uint8 and verified."""
    try:
        with gzip.open(path) as file:
            text = file.read(1 << 22)
        table = np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.float64, ndmin=2)
        values = table.astype(np.uint8)
        dots, labels = values[:, :-1].reshape(-1, 8, 8), values[:, -1]
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(
            f"{path} is damaged: {error}.", right="It must be scikit-learn's own.", next=_REINSTALL
        ) from error
    if (sha256(dots), sha256(labels)) != (IMAGES_SHA256, LABELS_SHA256):
        raise DataError(
            f"{path} does not hold the digits that were expected: its SHA-256 differs.",
            right=f"Expected {IMAGES_SHA256} over the pixels and {LABELS_SHA256} over the labels.",
            next=_REINSTALL,
        )
    return dots, labels
