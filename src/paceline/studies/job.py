"""A study made ready to run: its data, its points, a launcher for each, and the checks before the first rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from paceline import catalog
from paceline.data import store
from paceline.data.store import Prepared
from paceline.launch.base import Launcher, Placement
from paceline.records.folder import RunFolder, StudyFolder
from paceline.records.run import Manifest
from paceline.records.study import DataSettings, Point, Run, Study
from paceline.studies.compose import new_manifest
from paceline.studies.events import DataReady, Event, Note
from paceline.studies.expand import expand, schedule, variants
from paceline.studies.files import model_digest, model_path, weights_path, with_absolute_paths
from paceline.studies.load import LoadedStudy
from paceline.studies.preflight import check_model
from paceline.studies.scripts import script_digest

# What the digits, which stand in where MNIST cannot be had, are too small for, and what fits them.
_SMALLER_MODELS = {"cnn-690k": "cnn-small"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A study with everything that its runs need."""

    study: Study
    folder: StudyFolder
    points: tuple[Point, ...]
    runs: tuple[Run, ...]
    prepared: Prepared | None
    """None for a script, which has data of its own."""
    file: Path | None
    """The user's model file or script."""
    launchers: dict[str, Launcher]
    """By name: a study may vary them."""
    events: Callable[[Event], None]
    force: bool = False
    """Whether runs go on where what they were given makes the measurement meaningless."""
    other_sizes: dict[int | None, Prepared] = field(default_factory=dict)
    """The data at further image sizes, where the study varies that."""

    def data(self, settings: DataSettings) -> Prepared | None:
        """The data set of a point; None for a script."""
        return self.other_sizes.get(settings.image_size, self.prepared)

    def launcher(self, point: Point) -> Launcher:
        return self.launchers[point.launcher]

    def manifest(self, run: Run, placement: Placement, attempt: int) -> Manifest:
        data = self.data(run.point.data)
        return new_manifest(
            run,
            study=self.study,
            data_folder=data.folder if data else None,
            model_file=self.file,
            placement=placement,
            attempt=attempt,
            force=self.force,
        )

    def run_folder(self, run: Run) -> RunFolder:
        return self.folder.run(run.point.point_id, run.number)

    def num_train(self, data: DataSettings) -> int | None:
        """Samples that are trained on; None where that is a script's own business."""
        prepared = self.data(data)
        return len(store.split(prepared.dataset, data).train) if prepared else None


def make_job(
    loaded: LoadedStudy,
    folder: Path,
    *,
    events: Callable[[Event], None],
    launcher: Launcher | None = None,
    cache: Path | None = None,
    force: bool = False,
) -> Job:
    """The study with its data fetched and its points known; `launcher` stands in for all that the study names."""
    study, prepared = with_absolute_paths(loaded.study, loaded.base), None
    other_sizes: dict[int | None, Prepared] = {}
    if study.script is not None:
        file = Path(study.script.path)
        points = expand(study, data_digest="", model_digest="", script_digest=script_digest(file))
    else:
        study, prepared = _with_data(study, loaded.base, events, cache)
        events(DataReady(prepared=prepared))
        file = model_path(study.model.name, loaded.base)
        digest = model_digest(file or weights_path(study.model, loaded.base))
        other_sizes = _at_other_sizes(study, loaded.base, events, cache)
        points = expand(
            study,
            data_digest=prepared.dataset.digest,
            model_digest=digest,
            other_sizes={size: other.dataset.digest for size, other in other_sizes.items()},
        )
    return Job(
        study=study,
        folder=StudyFolder(folder),
        points=points,
        runs=schedule(points, study.run.repeats),
        prepared=prepared,
        file=file,
        launchers={name: launcher or make_launcher(name, study) for name in {point.launcher for point in points}},
        events=events,
        force=force,
        other_sizes=other_sizes,
    )


def make_launcher(name: str, study: Study) -> Launcher:
    """The launcher of that name, as the study asks for it."""
    return catalog.load("launcher", name)(settings=study.launch)


def check_job(job: Job, runs: Sequence[Run], *, preflight: bool, timed: bool = False) -> float | None:
    """Refuse what would fail in any of the runs to come; comes back with seconds per sample where `timed`."""
    if not runs:
        return None
    for run in {run.point.point_id: run for run in runs}.values():
        job.launcher(run.point).check(run.point)
    if not preflight or job.study.script is not None:
        return None
    manifests = [
        job.manifest(run, job.launcher(run.point).placement(run.point), attempt=1) for run in representatives(runs)
    ]
    return check_model(manifests, timed=timed)


def representatives(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Of all runs that ask the same of a model, the one with the most ranks: it asks for the most."""
    widest: dict[tuple[object, ...], Run] = {}
    for run in runs:
        kind = (run.point.strategy, run.point.device, run.point.data.read, run.point.data.image_size)
        if kind not in widest or run.point.ranks > widest[kind].point.ranks:
            widest[kind] = run
    return tuple(widest.values())


def _with_data(study: Study, base: Path, events: Callable[[Event], None], cache: Path | None) -> tuple[Study, Prepared]:
    """The data set, and the study as it then applies."""
    prepared, data = store.prepare_or_digits(
        study.data, base=base, cache=cache, say=lambda text: events(Note(text=text))
    )
    if data.dataset != study.data.dataset:
        study, prepared = _with_digits(study, prepared)
    study = replace(study, data=data)
    # Refuses what the data set is too small for, before anything is started.
    for settings in {variant.data.train_samples: variant.data for variant in variants(study)}.values():
        store.split(prepared.dataset, settings)
    return study, prepared


def _at_other_sizes(
    study: Study, base: Path, events: Callable[[Event], None], cache: Path | None
) -> dict[int | None, Prepared]:
    """The data at each image size that the study varies, but for the first."""
    sizes = [size for size in study.vary.get("data.image_size", ()) if size != study.data.image_size]
    found: dict[int | None, Prepared] = {}
    for size in sizes:
        assert isinstance(size, int)
        settings = replace(study.data, image_size=size)
        found[size] = store.prepare(settings, base=base, cache=cache, say=lambda text: events(Note(text=text)))
        events(DataReady(prepared=found[size]))
    return found


def _with_digits(study: Study, prepared: Prepared) -> tuple[Study, Prepared]:
    """The study as it can be run on the digits that stand in for MNIST, and a note that says so."""
    note, smaller = prepared.note, _SMALLER_MODELS.get(study.model.name)
    if smaller is not None:
        note = f"{note}, and the model {smaller} in place of {study.model.name}, which needs larger images"
        study = replace(study, model=replace(study.model, name=smaller))
    if "data.train_samples" in study.vary:
        note = f"{note}, and the same samples for every point"
        study = replace(study, vary={path: study.vary[path] for path in study.vary if path != "data.train_samples"})
    return study, replace(prepared, note=note)
