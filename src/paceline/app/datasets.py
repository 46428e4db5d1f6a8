"""The data sets of the catalog and the user's own: fetch, check and describe them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import RequestError
from paceline.units import count_text

if TYPE_CHECKING:
    from paceline.data.cache import Dataset
    from paceline.data.store import Prepared
    from paceline.records.settings import DataSettings


def dataset_settings(
    name: str, *, image_size: int | None = None, test: float = 0.0, damaged: str = "refuse"
) -> DataSettings:
    """The settings of a data set, by its name in the catalog or its path; RequestError if they are impossible."""
    from paceline.records.settings import DataSettings
    from paceline.studies.load.checks import image_problems

    settings = DataSettings(dataset=name, image_size=image_size, test=test, damaged=damaged)
    for problem in image_problems(settings):
        raise RequestError(problem.text, next="See: paceline data fetch --help")
    return settings


def cached_dataset(settings: DataSettings) -> Prepared:
    """A data set in the cache; DataError if it has not been fetched."""
    from paceline.data.store import cached, not_cached

    found = cached(settings, base=Path.cwd())
    if found is None:
        raise not_cached(settings)
    return found


def class_rows(dataset: Dataset) -> list[tuple[int, str, int, int]]:
    """Label, name, training samples and test samples of each class; empty if they were not counted."""
    names = dataset.class_names or tuple(map(str, range(dataset.classes)))
    counts = zip(names, dataset.train_counts, dataset.test_counts, strict=False)
    return [(label, *row) for label, row in enumerate(counts)]


def class_balance(dataset: Dataset) -> str:
    """The smallest and the largest class as text; empty if they were not counted."""
    counts = dataset.train_counts
    if not counts:
        return ""
    names = dataset.class_names or tuple(map(str, range(len(counts))))
    low, high = min(counts), max(counts)
    if low == high:
        return f"{count_text(low)} to train of each class"
    few, many = names[counts.index(low)], names[counts.index(high)]
    return f"from {count_text(low)} to train ({few}) to {count_text(high)} ({many})"
