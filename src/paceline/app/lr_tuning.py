"""`paceline.tune`: a learning rate for a study, from learning-rate range tests."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.app.shown import NOTEBOOK_WIDTH, ShownText
from paceline.app.study_execution import ignore_event
from paceline.app.study_loading import DEFAULT_STUDY, Values, load, study_folder
from paceline.errors import FolderError, RunError

if TYPE_CHECKING:
    from paceline.records.lr_range import LrAdvice
    from paceline.studies.execute.events import Event
    from paceline.studies.execute.lr_range_study import RangeTest

_SHOWN_CURVES = 3
_MARGIN_CHARACTERS = 30
"""Characters of a line that the bars of a curve do not use."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TunedRate(ShownText):
    """The result of range tests of a study's learning rate."""

    advice: LrAdvice
    """The curves of the tests, and the rate with its interval."""
    changes: tuple[str, ...]
    """Overrides that set the rate in the study, such as train.lr=0.01; empty if no rate can be recommended."""
    command: str
    """The command that runs the study with this rate; empty if no rate can be recommended."""
    page: Path | None
    """The page with the curves; None if it could not be written."""
    failures: tuple[str, ...] = ()
    """Reasons of failed tests, as sentences."""

    @property
    def lr(self) -> float | None:
        """The recommended rate; None if there is none."""
        return self.advice.lr

    @property
    def headline(self) -> str:
        from paceline.reporting.html.lr_range_page import sentence

        return sentence(self.advice)

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """Curves, a row for each test, and the recommended rate as text."""
        from paceline.reporting.html import lr_range_page
        from paceline.reporting.text.report_text import table_text

        shown = self.advice.curves[:_SHOWN_CURVES]
        curves = "".join(lr_range_page.curve_text(curve, width - _MARGIN_CHARACTERS) + "\n\n" for curve in shown)
        answer = f"{lr_range_page.sentence(self.advice)}\n{lr_range_page.RULE}"
        return f"{curves}{table_text(lr_range_page.table(self.advice)).rstrip()}\n\n{answer}"

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`."""
        from paceline.reporting.html.lr_range_page import RULE
        from paceline.storage.codec import plain

        page = None if self.page is None else str(self.page)
        return {**plain(self.advice), "rule": RULE, "page": page, "next": self.command or None}


def tune(
    source: str | Path = DEFAULT_STUDY,
    *,
    ranks: int | None = None,
    first: float = 1e-5,
    last: float = 1.0,
    steps: int = 100,
    repeats: int = 1,
    strategy: str | None = None,
    launcher: str | None = None,
    site: str | None = None,
    set: Mapping[str, Any] | Sequence[str] | None = None,
    out: str | Path | None = None,
    force: bool = False,
    fresh: bool = False,
    events: Callable[[Event], None] | None = None,
) -> TunedRate:
    """Find a learning rate with range tests: short trainings in which the rate rises from `first` to `last`.

    One test of `steps` optimizer steps per repeat, each with its own seed; finished tests are not repeated. If `ranks`
    is None, it is the largest number of the study that this machine has cores for. If `out` is None, the folder is
    runs/tune-NAME. RunError is raised if no test was finished.
    """
    from paceline.launch.machine import this_machine
    from paceline.studies.execute.events import StudyLoaded
    from paceline.studies.execute.execute import execute
    from paceline.studies.execute.lr_range_study import changes_to, range_study, range_tests

    loaded = load(source, ranks=ranks, strategy=strategy, launcher=launcher, site=site, set=set)
    folder = study_folder(loaded, out, prefix="tune-")
    listener = events or ignore_event
    listener(StudyLoaded(study=loaded.study, folder=folder))
    cores = this_machine().logical_cores
    ranged = range_study(loaded, cores=cores, first=first, last=last, steps=steps, repeats=repeats)
    done = execute(ranged, folder, fresh=fresh, events=listener, force=force)
    failures, tests = tuple(dict.fromkeys(done.failures.values())), range_tests(folder)
    if not tests:
        raise RunError(
            f"No range test of the study {loaded.study.name!r} was finished.",
            right="\n".join(failures),
            next=f"The logs of the ranks are in {folder}.",
        )
    advice = _advice(tests, steps)
    changes = tuple(changes_to(loaded.study, advice))
    options = {"--ranks": ranks, "--strategy": strategy, "--launcher": launcher, "--site": site}
    command = _study_command(source, options, set, changes) if changes else ""
    page = _written_page(folder, advice, loaded.study.name, command)
    return TunedRate(advice=advice, changes=changes, command=command, page=page, failures=failures)


def _advice(tests: Sequence[RangeTest], planned_steps: int) -> LrAdvice:
    from paceline.analyze.learning.lr_advice import RangeTest, lr_advice

    measured = [
        RangeTest(seed=test.seed, rates=test.rates, losses=test.losses, planned=planned_steps) for test in tests
    ]
    point = tests[0].point
    return lr_advice(measured, batch_global=point.batch_global, ranks=point.data_size)


def _study_command(source: str | Path, options: Mapping[str, object], values: Values, changes: Sequence[str]) -> str:
    """The command that runs the study with the same options and the new rate; the last --set of a key is used."""
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    own = [f"{path}={json.dumps(value)}" for path, value in values.items()] if isinstance(values, Mapping) else values
    words += [word for change in (*(own or ()), *changes) for word in ("--set", change)]
    return shlex.join(["paceline", "study", str(source), *words])


def _written_page(folder: Path, advice: LrAdvice, name: str, command: str) -> Path | None:
    from paceline.reporting.html import lr_range_page
    from paceline.storage.codec import write_atomically
    from paceline.storage.folder import StudyFolder

    page = StudyFolder(folder).lr_range
    try:
        write_atomically(page, lr_range_page.page(advice, name, command).encode())
    except FolderError:
        return None
    return page
