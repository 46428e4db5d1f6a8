"""What a study would run, for `--dry-run`: nothing is fetched or written, and no rank is started.

What it would take is estimated from runs that are finished in the folder; before the first one, where
the data set is in the cache, from a few steps of the model in the process that checks it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline import catalog
from paceline.data import store
from paceline.data.cache import Dataset
from paceline.errors import DataError
from paceline.launch.base import Launcher
from paceline.records.folder import StudyFolder
from paceline.records.run import RunResult
from paceline.records.study import DataSettings, Point, Study, factor_value, point_label
from paceline.studies import bookkeeping
from paceline.studies.compose import new_manifest
from paceline.studies.estimates import S_PER_H, Estimates
from paceline.studies.expand import expand, schedule, variants
from paceline.studies.files import model_digest, model_path, weights_path, with_absolute_paths
from paceline.studies.job import make_launcher, representatives
from paceline.studies.load import LoadedStudy
from paceline.studies.preflight import check_model
from paceline.studies.scripts import script_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedPoint:
    """One point of a study that may not have been run."""

    label: str
    """Its ranks, and the factors that the study varies."""
    ranks: int
    hosts: int
    threads: int
    strategy: str
    launcher: str
    device: str
    options: dict[str, int]
    """What its strategy alone takes."""
    factors: dict[str, str | int | float | bool | None]
    """What the study varies: path of a setting -> its value here, None where the strategy does not take it."""
    batch_global: int | None
    """None for a script, whose batch is its own."""
    batch_per_rank: float | None
    """A fraction where the global batch does not divide: some ranks then have one sample more."""
    steps_per_epoch: int | None
    """None before the data set is in the cache, where the study does not say how many samples to take."""
    placement: str
    oversubscribed: bool
    finished: int | None
    """Runs that are finished in the folder; None where the data set, and so the point, is not known yet."""
    rank_h: float | None
    """Estimated rank-hours of the runs that are left; None where nothing is known yet."""
    script: str | None
    """The job script of its first run, where the launcher hands one to a scheduler."""
    chosen: tuple[str, ...] = ()
    """What its recipe chose and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A study before it is run."""

    study: Study
    points: tuple[PreviewedPoint, ...]
    runs: int
    finished: int | None
    dataset: Dataset | None
    """As the cache has it; None where it would have to be fetched or decoded first."""
    rank_h: float | None
    """Estimated rank-hours of everything that is left; None where nothing is known yet."""
    basis: str
    """What the estimate rests on and leaves out, in words."""


def preview(
    loaded: LoadedStudy,
    folder: Path | None = None,
    *,
    launcher: Launcher | None = None,
    preflight: bool = True,
    cache: Path | None = None,
) -> Preview:
    """What would be run, and how much of it is finished in `folder`; RequestError where it could not be."""
    study = with_absolute_paths(loaded.study, loaded.base)
    data = None if study.script else _cached_data(study.data, cache)
    others = _at_other_sizes(study, cache) if data else {}
    known = (data is not None and None not in others.values()) or study.script is not None
    file = None if study.script else model_path(study.model.name, loaded.base)
    points = expand(
        study,
        data_digest=data.dataset.digest if data else "",
        model_digest="" if study.script else model_digest(file or weights_path(study.model, loaded.base)),
        script_digest=script_digest(Path(study.script.path)) if study.script else "",
        other_sizes={size: other.dataset.digest if other else "" for size, other in others.items()},
    )
    launchers = {name: launcher or make_launcher(name, study) for name in {point.launcher for point in points}}
    finished = [_finished(point, study.run.repeats, folder) if known else None for point in points]
    unfinished = [
        point for point, done in zip(points, finished, strict=True) if done is None or len(done) < study.run.repeats
    ]
    for point in unfinished:
        launchers[point.launcher].check(point)
    sample_s = None
    if preflight and data and known and unfinished and not any(finished):
        sample_s = _sample_s(study, unfinished, launchers, {study.data.image_size: data, **others}, file)
    num_train = functools.partial(_num_train, dataset=data.dataset if data else None)
    estimates = Estimates(num_train, sample_s)
    for point, done in zip(points, finished, strict=True):
        for result in done or ():
            estimates.add(point, result)
    previewed = tuple(
        _previewed(study, point, launchers[point.launcher], estimates, num_train(point.data), done, folder)
        for point, done in zip(points, finished, strict=True)
    )
    return Preview(
        study=study,
        points=previewed,
        runs=len(points) * study.run.repeats,
        finished=sum(len(done or ()) for done in finished) if known else None,
        dataset=data.dataset if data else None,
        rank_h=_sum([point.rank_h for point in previewed]),
        basis=_basis(estimates.measured, sample_s),
    )


def _sample_s(
    study: Study,
    points: Sequence[Point],
    launchers: dict[str, Launcher],
    data: Mapping[int | None, _Cached | None],
    model_file: Path | None,
) -> float | None:
    """Seconds of one rank for one sample; ModelError where the model does not fit, as when the study is run."""
    manifests = [
        new_manifest(
            run,
            study=study,
            data_folder=found.folder if (found := data[run.point.data.image_size]) else None,
            model_file=model_file,
            placement=launchers[run.point.launcher].placement(run.point),
            attempt=1,
        )
        for run in representatives(schedule(points, 1))
    ]
    return check_model(manifests, timed=True)


def _previewed(
    study: Study,
    point: Point,
    launcher: Launcher,
    estimates: Estimates,
    num_train: int | None,
    done: Sequence[RunResult] | None,
    folder: Path | None,
) -> PreviewedPoint:
    placement, rank_s = launcher.placement(point), estimates.rank_s(point)
    batch = None if point.script else point.batch_global
    left = study.run.repeats - len(done or ())
    return PreviewedPoint(
        label=point_label(point, study.vary),
        ranks=point.ranks,
        hosts=point.hosts,
        threads=point.threads,
        strategy=point.strategy,
        launcher=point.launcher,
        device=point.device,
        options=point.options,
        factors={path: factor_value(point, path) for path in study.vary},
        batch_global=batch,
        batch_per_rank=batch and batch / point.ranks,
        steps_per_epoch=None if num_train is None or batch is None else math.ceil(num_train / batch),
        placement=placement.text,
        oversubscribed=placement.oversubscribed,
        finished=None if done is None else len(done),
        rank_h=None if rank_s is None else left * rank_s / S_PER_H,
        script=_script(launcher, point, folder),
        chosen=point.chosen,
    )


def _script(launcher: Launcher, point: Point, folder: Path | None) -> str | None:
    script = getattr(launcher, "script", None)  # of those alone that hand a job to a scheduler
    if script is None or folder is None:
        return None
    return script(point, StudyFolder(folder.absolute()).run(point.point_id, 1))


def _basis(measured: bool, sample_s: float | None) -> str:
    if measured:
        return "from the runs that are finished; time in a queue is not in it"
    if sample_s is not None:
        return "from a few steps of one rank; starting the ranks, what they exchange and evaluation are not in it"
    return "not known before the first run"


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


@dataclass(frozen=True, slots=True)
class _Cached:
    dataset: Dataset
    folder: Path


def _cached_data(settings: DataSettings, cache: Path | None) -> _Cached | None:
    """A data set of the catalog where it is in the cache; the user's own files are not read for a preview."""
    if settings.dataset == "synthetic" or settings.dataset not in catalog.names("dataset"):
        return None
    try:
        found = store.cached(settings, base=Path(), cache=cache)
    except DataError:
        return None
    return _Cached(found.dataset, found.folder) if found else None


def _at_other_sizes(study: Study, cache: Path | None) -> dict[int | None, _Cached | None]:
    """The data at each further image size that the study varies; None where that is not in the cache."""
    found: dict[int | None, _Cached | None] = {}
    for variant in variants(study):
        if variant.data.image_size != study.data.image_size and variant.data.image_size not in found:
            found[variant.data.image_size] = _cached_data(variant.data, cache)
    return found


def _num_train(settings: DataSettings, *, dataset: Dataset | None) -> int | None:
    if dataset is None:
        return settings.train_samples
    try:
        return len(store.split(dataset, settings).train)
    except DataError:
        return None


def _finished(point: Point, repeats: int, folder: Path | None) -> list[RunResult]:
    """The results of a point that are in the folder."""
    if folder is None:
        return []
    runs = ((StudyFolder(folder).run(point.point_id, run.number), run) for run in schedule([point], repeats))
    done = (bookkeeping.finished_or_none(place, run) for place, run in runs)
    return [found.result for found in done if found is not None]
