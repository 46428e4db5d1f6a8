"""Data sets. A new one is a file in data/ and an entry here."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.catalog.entry import Entry

DATA_FORMS = ("npz", "idx", "images")
"""Prefixes of a data set's path, followed by a colon, if the path does not show the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetEntry(Entry):
    """The source of a data set, and the settings it takes."""

    image_folder: bool = False
    """Whether its object is a `NamedFolder`: image files, decoded to the size of the study.
    They may include a validation set. If false, the object is a function that returns arrays."""
    made: bool = False
    """Whether it is generated with the shape, classes and samples of the study."""
    version: int = 1
    """Incremented when the arrays of the function change, to invalidate the cache."""


DATASETS: dict[str, DatasetEntry] = {
    "mnist": DatasetEntry(at="paceline.data.mnist:mnist", text="70,000 handwritten digits, 28×28×1"),
    "fashion-mnist": DatasetEntry(at="paceline.data.mnist:fashion_mnist", text="70,000 pieces of clothing, 28×28×1"),
    "cifar10": DatasetEntry(at="paceline.data.cifar10:cifar10", text="60,000 photos of ten kinds of things, 32×32×3"),
    "flowers": DatasetEntry(
        at="paceline.data.named_folders:FLOWERS",
        text="photos of five kinds of flowers, 224×224×3",
        image_folder=True,
    ),
    "fruits": DatasetEntry(
        at="paceline.data.named_folders:FRUITS",
        text="fruits from all sides (Fruits-360), 100×100×3",
        image_folder=True,
    ),
    "caltech256": DatasetEntry(
        at="paceline.data.named_folders:CALTECH256",
        text="photos of 257 kinds of things, 128×128×3",
        image_folder=True,
    ),
    "digits": DatasetEntry(
        at="paceline.data.digits:digits", text="1,797 handwritten digits, 8×8×1, shipped with Paceline"
    ),
    "synthetic": DatasetEntry(
        at="paceline.data.synthetic:synthetic", text="random images of any shape that can be learned", made=True
    ),
}
