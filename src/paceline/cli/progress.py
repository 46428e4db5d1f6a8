"""What a study says while it runs: a line per run as it ends, and how long the rest will take.

    [ OK ] (3/10) 2 ranks, run 2: epoch 4.21 s, 2,850 samples/s, test accuracy 97.1 %
    [WARN] (4/10) 4 ranks, run 2: the training loss is nan in epoch 1: it diverged

On a terminal a bar below these lines shows the run that is on; elsewhere a plain line comes now
and then, so that a log shows that it moves and does not fill up.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Self

from paceline.cli.console import Console
from paceline.cli.curve_watch import CurveWatch
from paceline.cli.opening import print_opening
from paceline.records.study import point_label
from paceline.storage.folder import StudyFolder
from paceline.studies.execute.events import (
    DataReady,
    Event,
    Note,
    RunFailed,
    RunFinished,
    RunProgress,
    RunSkipped,
    RunStarted,
    StudyLoaded,
    StudyStarted,
    StudyStopped,
)
from paceline.studies.execute.time_left import QUEUED
from paceline.units import count_text, counted, duration_text, number_text, percent_text

if TYPE_CHECKING:
    from paceline.records.run import RunResult
    from paceline.records.study import Run

PLAIN_EVERY_S = 15.0


class StudyProgress:
    """Listens to the events of a study and prints them; a context manager, because a bar must be taken down."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._said_at = clock()
        self._bar: Any = None
        self._vary: Collection[str] = ()
        self._classes: int | None = None
        self.folder: StudyFolder | None = None
        """Of the study; None until it is loaded."""
        self._watch: CurveWatch | None = None
        self.finished = 0
        """Runs that are on the disk by now."""
        self.total = 0
        """Runs that the study asks for; 0 until it is known."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        match event:
            case Note():
                self._console.say(event.text)
            case StudyLoaded():
                self.folder = StudyFolder(event.folder)
                print_opening(event.study, event.folder, self._console)
                self._start_bar()
            case DataReady():
                self._classes = event.prepared.dataset.classes
                if event.prepared.note:
                    self._console.status("WARN", event.prepared.note)
            case StudyStarted():
                self._begin(event)
            case RunStarted():
                self._said_at = self._clock()
                self._draw(event, 0.0, None)
                self._follow(event)
            case RunProgress():
                self._move(event)
                self._warn(event, self._watch.look() if self._watch else [])
            case RunFinished():
                self.finished += 1
                self._warn(event, self._watch.faults(event.result.epochs) if self._watch else [])
                self._end(event, "OK", result_text(event.result))
            case RunSkipped():
                if event.result is None:
                    self._end(event, "SKIP", "not run, because its point has failed")
            case RunFailed():
                self._end(event, "FAIL", event.message)
            case StudyStopped():
                self._end(event, "STOP", event.reason)

    def interrupted(self, verb: str) -> int:
        """Print which runs are finished and the command that continues; returns the exit code."""
        if self.total and self.folder is not None and self.folder.study.is_file():
            again = shlex.join(["paceline", verb, str(self.folder.study), "--out", str(self.folder.path)])
            self._console.say(f"Interrupted: {self.finished} of {self.total} runs are kept. Go on with: {again}")
        else:
            self._console.say("Interrupted before the first run: nothing was changed.")
        return 130

    def _start_bar(self) -> None:
        if self._console.interactive:
            self._bar = _bar(self._console)
            self._bar.start()

    def _begin(self, event: StudyStarted) -> None:
        from paceline.reporting.wording.choice_words import choice_lines

        self.total, self.finished, self._vary = event.total, event.finished, event.study.vary
        self.folder = StudyFolder(event.folder)
        for line in choice_lines((point_label(point, self._vary), point.chosen) for point in event.points):
            self._console.fact("Chosen", line)
        for index, text in enumerate(dict.fromkeys(event.placements)):
            self._console.fact("" if index else "Placement", text)
        for index, left_out in enumerate(event.not_run):
            self._console.fact("" if index else "Not run", f"{left_out.label}: {left_out.reason}")
        if event.finished:
            self._console.fact("Kept", f"{event.finished} of {event.total} runs are finished from before")

    def _follow(self, event: RunStarted) -> None:
        """Look at the curves of this run from now on."""
        if self.folder is not None:
            curves = self.folder.run(event.run.point.point_id, event.run.number).curves
            self._watch = CurveWatch(curves, event.classes or self._classes)

    def _warn(self, event: RunProgress | RunFinished, faults: list[str]) -> None:
        for fault in faults:
            self._end(event, "WARN", fault)

    def _move(self, event: RunProgress) -> None:
        if self._bar is not None:
            self._draw(event, event.fraction, event.left_s)
        elif self._clock() - self._said_at >= PLAIN_EVERY_S:
            self._said_at = self._clock()
            left = left_text(event.left_s)
            self._end(event, "....", f"{where_text(event)}{', ' if left else ''}{left}")

    def _end(
        self, event: RunProgress | RunFinished | RunSkipped | RunFailed | StudyStopped, mark: str, text: str
    ) -> None:
        self._console.status(mark, f"({event.index}/{event.total}) {run_text(event.run, self._vary)}: {text}")

    def _draw(self, event: RunStarted | RunProgress, fraction: float, left_s: float | None) -> None:
        if self._bar is None:
            return
        text = f"({event.index}/{event.total}) {run_text(event.run, self._vary)}"
        if isinstance(event, RunProgress) and event.phase.startswith(QUEUED):
            text = f"{text}, {event.phase}"
        done = event.index - 1 + fraction
        self._bar.update(
            self._bar.task_ids[0], description=text, completed=done, total=event.total, left=left_text(left_s)
        )


def run_text(run: Run, vary: Collection[str]) -> str:
    """`2 ranks, flat, run 3`: the point by what the study varies, and the number of the run."""
    return f"{point_label(run.point, vary)}, run {run.number}"


def where_text(event: RunProgress) -> str:
    """`step 40 of 188`, or what the ranks do before the first step; how many a script will take is not known."""
    if not event.total_steps:
        return f"step {count_text(event.step)}" if event.step else event.phase
    return f"step {count_text(event.step)} of {count_text(event.total_steps)}"


def left_text(left_s: float | None) -> str:
    """`40 s left`, in whole seconds, since it is a guess; empty where there is none yet."""
    if left_s is None:
        return ""
    return f"{duration_text(left_s) if left_s >= 60 else f'{max(1, round(left_s))} s'} left"


def result_text(result: RunResult) -> str:
    """The figures of one run: epoch time, throughput, test accuracy; of a script its steps and how long it took."""
    from paceline.analyze.points.timing import epoch_s, samples_per_s

    epoch, throughput = epoch_s(result), samples_per_s(result)
    parts = [f"epoch {duration_text(epoch)}"] if epoch is not None else []
    if result.test_accuracy is None:
        parts.append(counted(result.steps, "step"))
    if throughput is not None:
        parts.append(f"{count_text(round(throughput))} samples/s")
    elif result.script.timed_s:
        parts.append(f"{number_text((result.steps - 1) / result.script.timed_s)} steps/s")
    last = duration_text(result.wall_s)
    if result.test_accuracy is not None:
        last = f"test accuracy {percent_text(result.test_accuracy)}"
    return ", ".join([*parts, last])


def _bar(console: Console) -> Any:
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[left]}"),
        console=console.terminal,
        transient=True,
        refresh_per_second=4,
    )
    bar.add_task("preparing", total=None, left="")
    return bar
