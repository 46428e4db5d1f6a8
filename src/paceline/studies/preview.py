"""What a study would run, for `--dry-run`: nothing is fetched, started or written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from paceline import catalog
from paceline.data import store
from paceline.data.cache import Dataset, open_dataset
from paceline.errors import DataError
from paceline.launch.base import Launcher
from paceline.records.folder import StudyFolder
from paceline.records.study import DataSettings, Point, Study
from paceline.studies import bookkeeping
from paceline.studies.expand import expand, schedule
from paceline.studies.files import model_digest, model_path, with_absolute_paths
from paceline.studies.load import LoadedStudy


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedPoint:
    """One point of a study that may not have been run."""

    ranks: int
    threads: int
    strategy: str
    launcher: str
    device: str
    batch_global: int
    batch_per_rank: float
    """A fraction where the global batch does not divide: some ranks then have one sample more."""
    steps_per_epoch: int | None
    """None before the data set is in the cache, where the study does not say how many samples to take."""
    placement: str
    oversubscribed: bool
    finished: int | None
    """Runs that are finished in the folder; None where the data set, and so the point, is not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A study before it is run."""

    study: Study
    points: tuple[PreviewedPoint, ...]
    runs: int
    finished: int | None
    dataset: Dataset | None
    """As the cache has it; None where it would have to be fetched or decoded first."""


def preview(
    loaded: LoadedStudy, folder: Path | None = None, *, launcher: Launcher | None = None, cache: Path | None = None
) -> Preview:
    """What would be run, and how much of it is finished in `folder`; RequestError where it could not be."""
    study = with_absolute_paths(loaded.study, loaded.base)
    dataset = _cached_dataset(study.data, cache)
    digest = model_digest(model_path(study.model.name, loaded.base))
    points = expand(study, data_digest=dataset.digest if dataset else "", model_digest=digest)
    starter: Launcher = launcher or catalog.load("launcher", study.run.launcher)()
    counts = [_num_finished(point, study.run.repeats, folder) if dataset else None for point in points]
    num_train = _num_train(study.data, dataset)
    for point, count in zip(points, counts, strict=True):
        if count != study.run.repeats:
            starter.check(point)
    previewed = tuple(_previewed(point, starter, num_train, count) for point, count in zip(points, counts, strict=True))
    return Preview(
        study=study,
        points=previewed,
        runs=len(points) * study.run.repeats,
        finished=sum(count or 0 for count in counts) if dataset else None,
        dataset=dataset,
    )


def _previewed(point: Point, launcher: Launcher, num_train: int | None, num_finished: int | None) -> PreviewedPoint:
    placement = launcher.placement(point)
    return PreviewedPoint(
        ranks=point.ranks,
        threads=point.threads,
        strategy=point.strategy,
        launcher=point.launcher,
        device=point.device,
        batch_global=point.batch_global,
        batch_per_rank=point.batch_global / point.ranks,
        steps_per_epoch=None if num_train is None else math.ceil(num_train / point.batch_global),
        placement=placement.text,
        oversubscribed=placement.oversubscribed,
        finished=num_finished,
    )


def _cached_dataset(settings: DataSettings, cache: Path | None) -> Dataset | None:
    """A data set of the catalog where it is in the cache; the user's own files are not read for a preview."""
    if settings.dataset == "synthetic":
        return None
    state = next((state for state in store.catalog_state(cache) if state.name == settings.dataset), None)
    if state is None or state.folder is None:
        return None
    return open_dataset(state.folder).dataset


def _num_train(settings: DataSettings, dataset: Dataset | None) -> int | None:
    if dataset is None:
        return settings.train_samples
    try:
        return len(store.split(dataset, settings).train)
    except DataError:
        return None


def _num_finished(point: Point, repeats: int, folder: Path | None) -> int:
    if folder is None:
        return 0
    return repeats - len(bookkeeping.unfinished(StudyFolder(folder), schedule([point], repeats)))
