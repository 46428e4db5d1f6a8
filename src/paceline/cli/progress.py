"""The progress of a study: one line per finished run, and the remaining time.

    [ OK ] (3/10) 2 ranks, run 2: epoch 4.21 s, 2,850 samples/s, test accuracy 97.1 %
    [WARN] (4/10) 4 ranks, run 2: the training loss is nan in epoch 1: it diverged

A terminal shows a progress bar below these lines. Otherwise a plain line is printed every 15 s.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from paceline.cli.console import Console
from paceline.cli.curve_watch import CurveWatch
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
from paceline.units import bytes_text, count_text, counted, duration_text, number_text, percent_text

if TYPE_CHECKING:
    from paceline.records.run import RunResult
    from paceline.records.study import Run, Study

PLAIN_EVERY_S = 15.0


class StudyProgress:
    """Prints the events of a study; leaving the context removes the progress bar."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._printed_at = clock()
        self._bar: Any = None
        self._vary: Collection[str] = ()
        self._classes: int | None = None
        self.folder: StudyFolder | None = None
        """The study folder; None until the study is loaded."""
        self._watch: CurveWatch | None = None
        self.finished = 0
        """Number of finished runs."""
        self.total = 0
        """Number of runs of the study; 0 until it is known."""

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
                self._printed_at = self._clock()
                self._draw(event, 0.0, None)
                self._watch_curves(event)
            case RunProgress():
                self._move(event)
                self._warn(event, self._watch.look() if self._watch else [])
            case RunFinished():
                self.finished += 1
                self._warn(event, self._watch.faults(event.result.epochs) if self._watch else [])
                self._print(event, "OK", result_text(event.result))
            case RunSkipped():
                if event.result is None:
                    self._print(event, "SKIP", "not run, because its point has failed")
            case RunFailed():
                self._print(event, "FAIL", event.message)
            case StudyStopped():
                self._print(event, "STOP", event.reason)

    def interrupted(self, verb: str) -> int:
        """Print which runs are finished and the command that continues; returns the exit code."""
        if self.total and self.folder is not None and self.folder.study.is_file():
            again = shlex.join(["paceline", verb, str(self.folder.study), "--out", str(self.folder.path)])
            self._console.say(f"Interrupted: {self.finished} of {self.total} runs are finished. Continue with: {again}")
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
        for index, skipped in enumerate(event.not_run):
            self._console.fact("" if index else "Not run", f"{skipped.label}: {skipped.reason}")
        if event.finished:
            self._console.fact("Resumed", f"{event.finished} of {event.total} runs are finished already")

    def _watch_curves(self, event: RunStarted) -> None:
        """Watch the curves of this run."""
        if self.folder is not None:
            curves = self.folder.run(event.run.point.point_id, event.run.number).curves
            self._watch = CurveWatch(curves, event.classes or self._classes)

    def _warn(self, event: RunProgress | RunFinished, faults: list[str]) -> None:
        for fault in faults:
            self._print(event, "WARN", fault)

    def _move(self, event: RunProgress) -> None:
        if self._bar is not None:
            self._draw(event, event.fraction, event.left_s)
        elif self._clock() - self._printed_at >= PLAIN_EVERY_S:
            self._printed_at = self._clock()
            left = left_text(event.left_s)
            self._print(event, "....", f"{where_text(event)}{', ' if left else ''}{left}")

    def _print(
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


def print_opening(study: Study, folder: Path, console: Console) -> None:
    """Print version, machine, study and folder."""
    from paceline import __version__
    from paceline.launch.machine import this_machine
    from paceline.records.study_size import size_text

    here = this_machine()
    gpus = f", {', '.join(here.gpus)}" if here.gpus else ""
    console.say(f"Paceline {__version__}")
    cores = counted(here.cores, "core")
    console.fact("Machine", f"{here.host}: {cores}, {bytes_text(here.memory_bytes)}, {here.cpu}{gpus}")
    console.fact("Study", f"{study.title or study.name}{f': {study.question}' if study.question else ''}")
    if sized := size_text(study):
        console.fact("Size", sized[0].upper() + sized[1:] + ".")
    console.fact("Folder", str(folder))


def run_text(run: Run, vary: Collection[str]) -> str:
    """The point by the factors of the study, and the number of the run: `2 ranks, flat, run 3`."""
    return f"{point_label(run.point, vary)}, run {run.number}"


def where_text(event: RunProgress) -> str:
    """`step 40 of 188`, or the phase before the first step; the number of steps of a script is not known."""
    if not event.total_steps:
        return f"step {count_text(event.step)}" if event.step else event.phase
    return f"step {count_text(event.step)} of {count_text(event.total_steps)}"


def left_text(left_s: float | None) -> str:
    """The estimated remaining time in whole seconds, `40 s left`; empty without an estimate."""
    if left_s is None:
        return ""
    return f"{duration_text(left_s) if left_s >= 60 else f'{max(1, round(left_s))} s'} left"


def result_text(result: RunResult) -> str:
    """The figures of one run: epoch time, throughput, test accuracy; for a script, steps and duration."""
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
