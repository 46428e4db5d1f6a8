"""The data sets and model files of a study, each read once for all points.

[data]   dataset = ["mnist", "fashion-mnist"]      two data sets, decoded once each
[model]  name = ["mlp", "my_file.py:build"]        one file, whose digest is part of its points
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from paceline import catalog
from paceline.data import store
from paceline.data.cache import Dataset
from paceline.data.store import Prepared
from paceline.errors import DataError
from paceline.records.settings import DataSettings, ModelSettings
from paceline.records.study import Point, Study
from paceline.studies.expand.expand import variants
from paceline.studies.load.files import model_digest, model_path, weights_path
from paceline.studies.load.scripts import script_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The files of a study with absolute paths."""

    study: Study
    data: dict[DataSettings, Prepared | None] = field(default_factory=dict)
    """By the settings that affect decoding; None if it is not in the cache. Empty for a script."""
    _digests: dict[Path, str] = field(default_factory=dict, repr=False)
    """Of model files, cached because weights may be large."""

    @property
    def known(self) -> bool:
        """Whether every data set is cached: the names of all points are then known."""
        return None not in self.data.values()

    @property
    def first(self) -> Prepared | None:
        """The data set of the first point; None for a script, and if it is not in the cache."""
        return self.prepared(self.study.data)

    def prepared(self, settings: DataSettings) -> Prepared | None:
        """The data set of a point."""
        return self.data.get(decoding_settings(settings))

    def dataset(self, settings: DataSettings) -> Dataset | None:
        found = self.prepared(settings)
        return found.dataset if found else None

    def data_digest(self, settings: DataSettings) -> str:
        found = self.prepared(settings)
        return found.dataset.digest if found else ""

    def model_digest(self, settings: ModelSettings) -> str:
        if self.study.script is not None:
            return ""
        path = model_path(settings.name, Path()) or weights_path(settings, Path())
        if path is None:
            return ""
        if path not in self._digests:
            self._digests[path] = model_digest(path)
        return self._digests[path]

    def script_digest(self) -> str:
        return script_digest(Path(self.study.script.path)) if self.study.script else ""

    def file(self, point: Point) -> Path | None:
        """The user's model file or script; None for a model of the catalog."""
        return Path(point.script.path) if point.script else model_path(point.model.name, Path())

    def num_train(self, settings: DataSettings) -> int | None:
        """Number of training samples; None for a script, or if unknown.

        DataError if the data set has fewer.
        """
        dataset = self.dataset(settings)
        return len(store.split(dataset, settings).train) if dataset else None


def decoding_settings(settings: DataSettings) -> DataSettings:
    """The settings of `[data]` that affect decoding, with the others at their defaults."""
    usual = DataSettings()
    taken = ("train_samples", "test_samples", "validation", "read")
    return replace(settings, **{key: getattr(usual, key) for key in taken})


def other_data(study: Study) -> Iterator[DataSettings]:
    """The settings of each further data set that a study varies."""
    seen = {decoding_settings(study.data)}
    for variant in variants(study):
        if decoding_settings(variant.data) not in seen:
            seen.add(decoding_settings(variant.data))
            yield variant.data


def cached_contents(study: Study, cache: Path | None) -> Contents:
    """The cached contents: nothing is downloaded or decoded, and the user's files are not read."""
    if study.script is not None:
        return Contents(study=study)
    wanted = (study.data, *other_data(study))
    return Contents(study=study, data={decoding_settings(settings): _cached(settings, cache) for settings in wanted})


def fetched_contents(study: Study, first: Prepared, *, fetch: Callable[[DataSettings], Prepared]) -> Contents:
    """The contents with every further data set downloaded; DataError if one is too small."""
    data: dict[DataSettings, Prepared | None] = {decoding_settings(study.data): first}
    for settings in other_data(study):
        data[decoding_settings(settings)] = fetch(settings)
    contents = Contents(study=study, data=data)
    for settings in dict.fromkeys(variant.data for variant in variants(study)):
        contents.num_train(settings)
    return contents


def _cached(settings: DataSettings, cache: Path | None) -> Prepared | None:
    if catalog.dataset(settings.dataset).made or not catalog.known("dataset", settings.dataset):
        return None
    try:
        return store.cached(settings, base=Path(), cache=cache)
    except DataError:
        return None
