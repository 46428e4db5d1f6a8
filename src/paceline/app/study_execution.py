"""`paceline.study`: run a scaling study, or continue one.

LoadedStudy ─ execute ─▶ folder ─ open_results ─▶ Results
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.app.results_view import Results, open_results
from paceline.app.study_loading import load_either, study_folder
from paceline.errors import RunError

if TYPE_CHECKING:
    from paceline.studies.execute.events import Event
    from paceline.studies.load.load import LoadedStudy


def ignore_event(event: Event) -> None:
    """The default listener, which ignores all events."""


def study(
    source: str | Path | None = None,
    *,
    script: str | Path | None = None,
    arguments: Sequence[str] = (),
    out: str | Path | None = None,
    ranks: int | Sequence[int] | None = None,
    hosts: int | Sequence[int] | None = None,
    strategy: str | Sequence[str] | None = None,
    launcher: str | Sequence[str] | None = None,
    site: str | None = None,
    repeats: int | None = None,
    set: Mapping[str, Any] | Sequence[str] | None = None,
    size: str | None = None,
    budget: float | None = None,
    force: bool = False,
    fresh: bool = False,
    events: Callable[[Event], None] | None = None,
) -> Results:
    """Run a study, or continue one, and return its results; finished runs are not repeated.

    `source` is the name of a shipped study or a TOML file, `set` overrides its values ({"train.lr": 0.01}), `out` is
    the folder (runs/NAME if None). Instead of `source`, `script` is your own PyTorch script, with its `arguments`.
    Several values make a factor: strategy=["ddp", "flat"]. `size` is small or full, for a study that has both; small
    if None. `budget` stops the study before it uses more rank-hours. `force` runs even if the allocation makes the
    figures meaningless. `events` is called with every event of the execution. Failed runs are in `failures` of the
    results; RunError is raised if no run was finished.
    """
    loaded = load_either(
        source,
        script,
        arguments,
        ranks=ranks,
        hosts=hosts,
        strategy=strategy,
        launcher=launcher,
        site=site,
        repeats=repeats,
        set=set,
        size=size,
    )
    results = execute_study(loaded, study_folder(loaded, out), fresh=fresh, budget=budget, force=force, events=events)
    if not any(point.runs for point in results.points):
        why = [*dict.fromkeys(results.failures.values()), *([results.stopped] if results.stopped else [])]
        raise RunError(
            f"No run of the study {loaded.study.name!r} was finished.",
            right="\n".join(why),
            next=f"The logs of the ranks are in {results.folder}.",
        )
    return results


def execute_study(
    loaded: LoadedStudy,
    folder: Path,
    *,
    fresh: bool = False,
    budget: float | None = None,
    force: bool = False,
    events: Callable[[Event], None] | None = None,
) -> Results:
    """Execute the missing runs of the folder, then rebuild its results."""
    from paceline.studies.execute.events import StudyLoaded
    from paceline.studies.execute.execute import execute

    listener = events or ignore_event
    listener(StudyLoaded(study=loaded.study, folder=folder))
    done = execute(loaded, folder, fresh=fresh, events=listener, budget_h=budget, force=force)
    return replace(open_results(folder), stopped=done.stopped)
