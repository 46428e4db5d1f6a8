"""What a study would run, for `--dry-run`: nothing is downloaded or written, and no rank is started.

Its time is estimated from the finished runs in the folder; before the first one, if
the data set is cached, from a few steps of the model in the preflight process.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paceline.data.cache import Dataset
from paceline.errors import DataError
from paceline.launch.launcher import Launcher
from paceline.records.recipe_choice import Choice
from paceline.records.results import NotRun
from paceline.records.run import RunResult
from paceline.records.settings import DataSettings
from paceline.records.study import Point, Study, factor_value, point_label
from paceline.storage.folder import StudyFolder
from paceline.studies.execute.compose import new_manifest
from paceline.studies.execute.contents import Contents, cached_contents
from paceline.studies.execute.fits import fitting_points
from paceline.studies.execute.job import Launchers, all_points, model_key, representatives
from paceline.studies.execute.preflight import Built, check_model
from paceline.studies.expand.expand import schedule
from paceline.studies.folder import bookkeeping
from paceline.studies.folder.estimates import S_PER_H, Estimates
from paceline.studies.load.files import with_absolute_paths
from paceline.studies.load.load import LoadedStudy


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
    """Options of its strategy."""
    factors: dict[str, str | int | float | bool | None]
    """What the study varies: path of a setting -> its value here, None if the strategy does not take it."""
    batch_global: int | None
    """None for a script."""
    batch_per_rank: float | None
    """A fraction if the global batch does not divide evenly: some ranks have one sample more."""
    steps_per_epoch: int | None
    """None if the number of training samples is unknown."""
    placement: str
    oversubscribed: bool
    finished: int | None
    """Runs that are finished in the folder; None if the data set, and so the point, is not known yet."""
    rank_h: float | None
    """Estimated rank-hours of the unfinished runs; None if unknown."""
    script: str | None
    """The job script of its first run; None without a scheduler."""
    chosen: tuple[Choice, ...] = ()
    """What its recipe chose and why."""
    parameters: int | None = None
    """Of its model; None if not built: of a script, or before the data set is in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A study before it is run."""

    study: Study
    points: tuple[PreviewedPoint, ...]
    runs: int
    finished: int | None
    dataset: Dataset | None
    """From the cache; None if it has to be downloaded or decoded."""
    rank_h: float | None
    """Estimated rank-hours of all unfinished runs; None if unknown."""
    basis: str
    """Basis of the estimate and what it excludes, in words."""
    not_run: tuple[NotRun, ...] = ()
    """Points that would not be run, and why."""


def preview(
    loaded: LoadedStudy,
    folder: Path | None = None,
    *,
    launcher: Launcher | None = None,
    preflight: bool = True,
    cache: Path | None = None,
) -> Preview:
    """What would be run, and how much of it is finished in `folder`; RequestError if it cannot run."""
    study = with_absolute_paths(loaded.study, loaded.base)
    contents = cached_contents(study, cache)
    data, launchers = contents.first, Launchers(study, launcher)
    points, not_run = fitting_points(study, all_points(contents), launchers.of)
    finished = [_finished(point, study.run.repeats, folder) if contents.known else None for point in points]
    unfinished = [
        point for point, done in zip(points, finished, strict=True) if done is None or len(done) < study.run.repeats
    ]
    for point in unfinished:
        launchers.of(point).check(point)
    built: dict[str, Built] = {}
    if preflight and data and contents.known and unfinished and not any(finished):
        built = _built(study, unfinished, launchers, contents)
    num_train = functools.partial(_num_train, contents)
    estimates = Estimates(num_train, sample_s=lambda point: _of_model(built, point).sample_s)
    for point, done in zip(points, finished, strict=True):
        for result in done or ():
            estimates.add(point, result)
    previewed = tuple(
        _previewed(study, point, launchers.of(point), estimates, num_train(point.data), done, folder)
        for point, done in zip(points, finished, strict=True)
    )
    previewed = tuple(
        replace(shown, parameters=_of_model(built, point).parameters)
        for shown, point in zip(previewed, points, strict=True)
    )
    return Preview(
        study=study,
        points=previewed,
        runs=len(points) * study.run.repeats,
        finished=sum(len(done or ()) for done in finished) if contents.known else None,
        dataset=data.dataset if data else None,
        rank_h=_sum([point.rank_h for point in previewed]),
        basis=_basis(estimates.measured, built),
        not_run=not_run,
    )


def _built(study: Study, points: Sequence[Point], launchers: Launchers, contents: Contents) -> dict[str, Built]:
    """Facts of each model by its `model_key`; ModelError if one does not fit the data."""
    runs = representatives(schedule(points, 1))
    manifests = [
        new_manifest(
            run,
            study=study,
            data_folder=found.folder if (found := contents.prepared(run.point.data)) else None,
            model_file=contents.file(run.point),
            placement=launchers.of(run.point).placement(run.point),
            attempt=1,
        )
        for run in runs
    ]
    facts = check_model(manifests, timed=True)
    return {model_key(run.point): each for run, each in zip(runs, facts, strict=True)}


def _of_model(built: Mapping[str, Built], point: Point) -> Built:
    return built.get(model_key(point), Built())


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
        batch_per_rank=batch and batch / point.data_size,
        steps_per_epoch=None if num_train is None or batch is None else math.ceil(num_train / batch),
        placement=placement.text,
        oversubscribed=placement.oversubscribed,
        finished=None if done is None else len(done),
        rank_h=None if rank_s is None else left * rank_s / S_PER_H,
        script=_script(launcher, point, folder),
        chosen=point.chosen,
    )


def _script(launcher: Launcher, point: Point, folder: Path | None) -> str | None:
    script = getattr(launcher, "script", None)  # only of launchers that submit jobs
    if script is None or folder is None:
        return None
    return script(point, StudyFolder(folder.absolute()).run(point.point_id, 1))


def _basis(measured: bool, built: Mapping[str, Built]) -> str:
    if measured:
        return "from the runs that are finished; time in a queue is not in it"
    if any(each.sample_s is not None for each in built.values()):
        return "from a few steps of one rank; starting the ranks, what they exchange and evaluation are not in it"
    return "not known before the first run"


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _num_train(contents: Contents, settings: DataSettings) -> int | None:
    try:
        known = contents.num_train(settings)
    except DataError:
        return None
    return settings.train_samples if known is None else known


def _finished(point: Point, repeats: int, folder: Path | None) -> list[RunResult]:
    """The results of a point that are in the folder."""
    if folder is None:
        return []
    runs = ((StudyFolder(folder).run(point.point_id, run.number), run) for run in schedule([point], repeats))
    done = (bookkeeping.finished_or_none(place, run) for place, run in runs)
    return [found.result for found in done if found is not None]
