"""A study ready to run: its data, its points, their launchers, and the checks before the first launch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from paceline import catalog
from paceline.data import store
from paceline.data.store import Prepared
from paceline.errors import RequestError
from paceline.launch.launcher import Launcher, Placement
from paceline.records.results import NotRun
from paceline.records.run import Manifest
from paceline.records.settings import DataSettings, LaunchSettings
from paceline.records.study import Point, Run, Study
from paceline.storage.codec import optional_record
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.studies.execute.compose import new_manifest
from paceline.studies.execute.contents import Contents, decoding_settings, fetched_contents
from paceline.studies.execute.events import DataReady, Event, Note
from paceline.studies.execute.fits import fitting_points
from paceline.studies.execute.preflight import Built, check_model
from paceline.studies.expand.expand import expand, launch_of, schedule, variants
from paceline.studies.load.files import with_absolute_paths
from paceline.studies.load.load import LoadedStudy


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A study with all inputs of its runs."""

    study: Study
    folder: StudyFolder
    points: tuple[Point, ...]
    runs: tuple[Run, ...]
    contents: Contents
    """The data sets and files of its points."""
    launchers: Launchers
    events: Callable[[Event], None]
    not_run: tuple[NotRun, ...] = ()
    """Points that are not run, and why."""
    force: bool = False
    """Whether to run although the preflight check calls the measurement meaningless."""

    @property
    def prepared(self) -> Prepared | None:
        """The data set of the first point; None for a script."""
        return self.contents.first

    def launcher(self, point: Point) -> Launcher:
        return self.launchers.of(point)

    def classes(self, point: Point) -> int | None:
        """Classes of a point's data set; None for a script."""
        dataset = self.contents.dataset(point.data)
        return dataset.classes if dataset else None

    def manifest(self, run: Run, placement: Placement, attempt: int) -> Manifest:
        data = self.contents.prepared(run.point.data)
        return new_manifest(
            run,
            study=replace(self.study, launch=launch_of(self.study, run.point)),
            data_folder=data.folder if data else None,
            model_file=self.contents.file(run.point),
            placement=placement,
            attempt=attempt,
            force=self.force,
        )

    def run_folder(self, run: Run) -> RunFolder:
        return self.folder.run(run.point.point_id, run.number)

    def num_train(self, data: DataSettings) -> int | None:
        """Number of training samples; None for a script."""
        return self.contents.num_train(data)


def make_job(
    loaded: LoadedStudy,
    folder: Path,
    *,
    events: Callable[[Event], None],
    launcher: Launcher | None = None,
    cache: Path | None = None,
    force: bool = False,
) -> Job:
    """The study with its data and points; `launcher` replaces all launchers of the study.

    RequestError if no point fits on this machine.
    """
    study = with_absolute_paths(loaded.study, loaded.base)
    contents = Contents(study=study)
    if study.script is None:
        contents = _with_data(study, loaded.base, events, cache)
        study = contents.study
    points = all_points(contents)
    launchers = Launchers(study, launcher)
    points, not_run = fitting_points(study, points, launchers.of)
    if not points:
        raise RequestError(
            f"No point of the study {study.name!r} can be run here: {not_run[0].reason}",
            right='With study.fits = "machine" what this machine cannot hold is left out; --dry-run lists it.',
            next="Give fewer ranks, hosts or threads: --ranks 1,2 --hosts 1 --set run.threads=1",
        )
    return Job(
        study=study,
        folder=StudyFolder(folder),
        points=points,
        runs=schedule(points, study.run.repeats),
        contents=contents,
        launchers=launchers,
        events=events,
        not_run=not_run,
        force=force,
    )


def all_points(contents: Contents) -> tuple[Point, ...]:
    """Every point of a study with its contents known."""
    return expand(
        contents.study,
        data_digest=contents.data_digest,
        model_digest=contents.model_digest,
        script_digest=contents.script_digest(),
    )


class Launchers:
    """The launchers of a study, one for each combination of launcher and `[launch]`."""

    def __init__(self, study: Study, standing_in: Launcher | None = None) -> None:
        self._study = study
        self._standing_in = standing_in
        self._made: dict[tuple[str, LaunchSettings], Launcher] = {}

    def of(self, point: Point) -> Launcher:
        """The launcher of a point."""
        if self._standing_in is not None:
            return self._standing_in
        settings = launch_of(self._study, point)
        key = (point.launcher, settings)
        if key not in self._made:
            self._made[key] = catalog.load("launcher", point.launcher)(settings=settings)
        return self._made[key]


def end_jobs(folder: StudyFolder) -> None:
    """Cancel every job of this study that a scheduler still runs or queues."""
    for path in sorted(folder.path.glob("points/*/runs/*/job.json")):
        run = RunFolder(path.parent)
        manifest = optional_record(run.manifest, Manifest)
        if manifest is not None:
            launcher: Launcher = catalog.load("launcher", manifest.point.launcher)(settings=manifest.launch)
            launcher.cancel(run)


def check_job(job: Job, runs: Sequence[Run], *, preflight: bool, timed: bool = False) -> dict[str, Built]:
    """Facts of each model by its `model_key`; RequestError or ModelError if a run would fail."""
    if not runs:
        return {}
    for run in {run.point.point_id: run for run in runs}.values():
        job.launcher(run.point).check(run.point)
    if not preflight or job.study.script is not None:
        return {}
    asked = representatives(runs)
    manifests = [job.manifest(run, job.launcher(run.point).placement(run.point), attempt=1) for run in asked]
    facts = check_model(manifests, timed=timed)
    return {model_key(run.point): built for run, built in zip(asked, facts, strict=True)}


def representatives(runs: Iterable[Run]) -> tuple[Run, ...]:
    """For each kind of model, the run with the most ranks."""
    widest: dict[tuple[object, ...], Run] = {}
    for run in runs:
        point = run.point
        kind = (point.strategy, point.device, point.data.read, model_key(point))
        if kind not in widest or point.ranks > widest[kind].point.ranks:
            widest[kind] = run
    return tuple(widest.values())


def model_key(point: Point) -> str:
    """A key that is equal for points with identical models: same options, images and classes."""
    return json.dumps([asdict(decoding_settings(point.data)), asdict(point.model)], sort_keys=True, default=str)


def _with_data(study: Study, base: Path, events: Callable[[Event], None], cache: Path | None) -> Contents:
    """The data sets of a study; DataError if one is too small."""

    def say(text: str) -> None:
        events(Note(text=text))

    def fetched(settings: DataSettings) -> Prepared:
        found = store.prepare(settings, base=base, cache=cache, say=say)
        events(DataReady(prepared=found))
        return found

    if "data.dataset" in study.vary:
        return fetched_contents(study, fetched(study.data), fetch=fetched)
    prepared = store.prepare(study.data, base=base, cache=cache, say=say)
    for settings in dict.fromkeys(variant.data for variant in variants(study)):
        if decoding_settings(settings) == decoding_settings(study.data):
            store.split(prepared.dataset, settings)  # before further data sets are downloaded, which may take long
    events(DataReady(prepared=prepared))
    return fetched_contents(study, prepared, fetch=fetched)
