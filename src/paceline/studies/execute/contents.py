"""What the points of a study read: data sets and model files, each once, however many points there are.

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
    """The files behind a study whose paths are absolute."""

    study: Study
    data: dict[DataSettings, Prepared | None] = field(default_factory=dict)
    """By what decides how a data set is decoded; None if it is not in the cache. Empty for a script."""
    _digests: dict[Path, str] = field(default_factory=dict, repr=False)
    """Of model files: weights may be large, and points many."""

    @property
    def known(self) -> bool:
        """Whether every data set is there, and so the name of every point known."""
        return None not in self.data.values()

    @property
    def first(self) -> Prepared | None:
        """The data set of the first point; None for a script, and if it is not in the cache."""
        return self.prepared(self.study.data)

    def prepared(self, settings: DataSettings) -> Prepared | None:
        """The data set of a point."""
        return self.data.get(as_decoded(settings))

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
        """Samples that are trained on; None if that is a script's own business, or not known yet.

        DataError if there are not so many.
        """
        dataset = self.dataset(settings)
        return len(store.split(dataset, settings).train) if dataset else None


def as_decoded(settings: DataSettings) -> DataSettings:
    """What of `[data]` decides which bytes are decoded: the same for points that differ in what they take of them."""
    usual = DataSettings()
    taken = ("train_samples", "test_samples", "validation", "read")
    return replace(settings, **{key: getattr(usual, key) for key in taken})


def other_data(study: Study) -> Iterator[DataSettings]:
    """The settings of each further data set that a study varies."""
    seen = {as_decoded(study.data)}
    for variant in variants(study):
        if as_decoded(variant.data) not in seen:
            seen.add(as_decoded(variant.data))
            yield variant.data


def cached_contents(study: Study, cache: Path | None) -> Contents:
    """The contents as the cache has them: nothing is fetched or decoded, and the user's own files are not read."""
    if study.script is not None:
        return Contents(study=study)
    wanted = (study.data, *other_data(study))
    return Contents(study=study, data={as_decoded(settings): _cached(settings, cache) for settings in wanted})


def fetched_contents(study: Study, first: Prepared, *, fetch: Callable[[DataSettings], Prepared]) -> Contents:
    """The contents with every further data set fetched; refuses what one of them is too small for."""
    data: dict[DataSettings, Prepared | None] = {as_decoded(study.data): first}
    for settings in other_data(study):
        data[as_decoded(settings)] = fetch(settings)
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
