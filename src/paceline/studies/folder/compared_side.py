"""One side of a comparison: a study folder or a run folder -> its runs, without their spans."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paceline.errors import FolderError
from paceline.records.run import Machine, Manifest, RunResult
from paceline.records.script_outcome import ScriptOutcome
from paceline.records.study import Point
from paceline.storage.codec import optional_record
from paceline.storage.folder import RunFolder
from paceline.studies.folder.bookkeeping import is_study
from paceline.studies.folder.collect import collect

STUDY, RUN = "study", "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRun:
    """A run that can be compared."""

    folder: RunFolder
    result: RunResult | None
    """None if another program started the ranks, or if they have not ended."""
    manifest: Manifest | None
    machine: Machine | None
    scripts: tuple[ScriptOutcome, ...] = ()
    """Outcomes of a script that another program started."""

    @property
    def ranks(self) -> int:
        """Number of ranks, from the manifest or from the files of spans."""
        if self.manifest is not None:
            return self.manifest.point.ranks
        return max(1, len(list(self.folder.spans.glob("rank-*.arrows"))))

    @property
    def samples_per_step(self) -> float | None:
        """Over all ranks, in the timed steps of a script; None if unknown for one of its ranks."""
        known = [script.timed_samples for script in self.scripts if script.timed_samples is not None]
        steps = min((script.timed_steps for script in self.scripts), default=0)
        return sum(known) / steps if steps and len(known) == self.ranks else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The contents of one folder of a comparison."""

    folder: Path
    what: str
    """study or run."""
    points: tuple[Point, ...]
    """Of a study; of a run, its point if known."""
    runs: tuple[SideRun, ...]
    machine: Machine | None
    commit: str | None
    vary: tuple[str, ...] = ()
    """Factors of the study in addition to the ranks."""

    @property
    def single(self) -> SideRun | None:
        """The only run; None if there are several."""
        return self.runs[0] if len(self.runs) == 1 else None

    def runs_of(self, point: Point) -> tuple[SideRun, ...]:
        """The finished runs of a point of the study."""
        return tuple(run for run in self.runs if run.result is not None and run.result.point_id == point.point_id)


def read_side(folder: Path) -> Side:
    """The study or run in a folder; FolderError if there is neither."""
    if not folder.is_dir():
        raise FolderError(f"There is no folder {folder}.", right=_RIGHT, next=_NEXT)
    if is_study(folder):
        return _study(folder)
    place = RunFolder(folder)
    if not place.spans.is_dir():
        raise FolderError(
            f"{folder} is neither a study nor a run: it has no study.toml and no spans.", right=_RIGHT, next=_NEXT
        )
    run = SideRun(
        folder=place,
        result=optional_record(place.result, RunResult),
        manifest=optional_record(place.manifest, Manifest),
        machine=optional_record(place.machine, Machine),
        scripts=_scripts(place),
    )
    return Side(
        folder=folder,
        what=RUN,
        points=(run.manifest.point,) if run.manifest else (),
        runs=(run,),
        machine=run.machine,
        commit=run.manifest.commit if run.manifest else None,
    )


_RIGHT = "Two study folders are compared, or two folders of runs, such as runs/digits/points/2-ranks-.../runs/1."
_NEXT = "paceline study and paceline train make such folders."


def _study(folder: Path) -> Side:
    found = collect(folder)
    runs = tuple(
        SideRun(folder=run.folder, result=run.result, manifest=run.manifest, machine=run.machine) for run in found.runs
    )
    if not runs:
        raise FolderError(
            f"No run of the study in {folder} is finished.",
            right="There is nothing to compare yet.",
            next=f"Continue it: paceline study {folder / 'study.toml'} --out {folder}",
        )
    return Side(
        folder=folder,
        what=STUDY,
        points=found.points,
        runs=runs,
        machine=found.machine,
        commit=found.commit,
        vary=tuple(found.study.vary),
    )


def _scripts(folder: RunFolder) -> tuple[ScriptOutcome, ...]:
    found = (optional_record(path, ScriptOutcome) for path in sorted(folder.ranks.glob("rank-*.script.json")))
    return tuple(script for script in found if script is not None)
