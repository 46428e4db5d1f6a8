"""`paceline train`: one run of one point of a study."""

from __future__ import annotations

import csv
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.options import Count, Force, Fresh, Json, Launcher, Out, Overrides, Site, Source, Strategy
from paceline.cli.progress import StudyProgress
from paceline.errors import RequestError, RunError
from paceline.studies.events import Event, RunFinished, RunProgress, RunSkipped, RunStarted
from paceline.units import count_text, counted, duration_text, number_text, percent_text

if TYPE_CHECKING:
    from paceline.api import Results
    from paceline.records.run import RunResult


def train(
    study: Source = "mnist-scaling",
    /,
    *,
    ranks: Annotated[Count | None, Parameter(help="Number of ranks; the first of the study's where not given.")] = None,
    strategy: Strategy = None,
    launcher: Launcher = None,
    site: Site = None,
    overrides: Overrides = None,
    out: Out = None,
    force: Force = False,
    fresh: Fresh = False,
    as_json: Json = False,
) -> int:
    """Train once: one run of one point of a study, with a line for every epoch.

    A run that was stopped goes on from its last checkpoint (train.checkpoint_every says how often one
    is written), and one that is finished is only shown. Of a study that varies more than the ranks, the
    first value of each factor is taken.

    For example:

        paceline train digits
        paceline train my-study.toml --ranks 2 --set train.epochs=10 --set train.checkpoint_every=100
    """
    from paceline import api
    from paceline.cli.study import interrupted, open_study

    console = Console.standard()
    whole = api.load(study, ranks=ranks, strategy=strategy, launcher=launcher, site=site, repeats=1, set=overrides)
    if whole.study.script is not None:
        script = whole.study.script
        raise RequestError(
            f"{study} is a study of a script, {script.path}: Paceline does not train there.",
            right="A script is run once by `paceline run`, and on several numbers of ranks by `paceline study`.",
            next=shlex.join(["paceline", "run", "--", script.path, *script.arguments]),
        )
    run = replace(whole.study.run, ranks=whole.study.run.ranks[:1])  # none where hosts and ranks per host say it
    loaded = replace(whole, study=replace(whole.study, run=run, vary={}))
    folder = api.study_folder(loaded, out, prefix="train-")
    open_study(loaded, folder, console)
    with EpochProgress(console, folder) as progress:
        try:
            results = api.run(loaded, folder, fresh=fresh, force=force, events=progress)
        except KeyboardInterrupt:
            return interrupted("train", folder, progress, console)
    if progress.result is None:
        raise RunError(
            "\n".join(results.failures.values()) or "The run was not finished.",
            next=f"The logs of the ranks are in {folder}; the same command starts it again.",
        )
    _show(results, progress.result, study, console, as_json=as_json)
    return 0


class EpochProgress(StudyProgress):
    """Shows, besides what a study shows, every epoch as it ends."""

    def __init__(self, console: Console, folder: Path) -> None:
        super().__init__(console)
        self._folder = folder
        self._shown = 0
        self._stale: int | None = None
        self.result: RunResult | None = None
        """What the run came to; None until it is finished."""

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                # Lines that an earlier attempt left: they count when this one writes them again.
                self._stale = _written_at_ns(self._curves(event))
            case RunProgress():
                curves = self._curves(event)
                if _written_at_ns(curves) != self._stale:
                    self._show_epochs(curves)
            case RunFinished():
                self._show_epochs(self._curves(event))
                self.result = event.result
            case RunSkipped():
                self.result = event.result
                self._console.say("This run is finished already: --fresh trains again.")
        super().__call__(event)

    def _curves(self, event: RunStarted | RunProgress | RunFinished) -> Path:
        from paceline.records.folder import StudyFolder

        return StudyFolder(self._folder).run(event.run.point.point_id, event.run.number).curves

    def _show_epochs(self, curves: Path) -> None:
        lines = _lines(curves)
        for line in lines[self._shown :]:
            self._console.say(f"  {_epoch_text(line)}")
        self._shown = max(self._shown, len(lines))


def _written_at_ns(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _lines(curves: Path) -> list[dict[str, str]]:
    try:
        with curves.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        return []


def _epoch_text(line: dict[str, str]) -> str:
    """`epoch 2: loss 0.129, accuracy 96.1 %, 4.21 s, 2,850 samples/s`."""
    epoch_s = float(line["epoch_s"])
    parts = [
        f"loss {number_text(float(line['train_loss']))}",
        f"accuracy {percent_text(float(line['train_accuracy']))}",
    ]
    if line["validation_accuracy"]:
        parts.append(f"validation accuracy {percent_text(float(line['validation_accuracy']))}")
    parts.append(duration_text(epoch_s))
    if epoch_s > 0:
        parts.append(f"{count_text(round(int(line['samples']) / epoch_s))} samples/s")
    phase = ", fine-tuning" if line.get("phase") == "finetune" else ""
    return f"epoch {line['epoch']}{phase}: {', '.join(parts)}"


def _show(results: Results, result: RunResult, source: str, console: Console, *, as_json: bool) -> None:
    from paceline.records.codec import plain
    from paceline.report.text import findings_text

    for note in results.notes:
        console.status("WARN", note)
    if as_json:
        console.json({**results.to_dict(), "run": plain(result)})
        return
    assert result.test_accuracy is not None
    accuracy, loss = percent_text(result.test_accuracy), number_text(result.test_loss)
    ranks = counted(result.ranks, "rank")
    steps = f"{counted(len(result.epochs), 'epoch')} ({counted(result.steps, 'step')})"
    console.result(f"Test accuracy {accuracy}, test loss {loss}: {steps}, {ranks}, {duration_text(result.wall_s)}.")
    for phase in result.phases[:-1]:
        before, loss = percent_text(phase.test_accuracy), number_text(phase.test_loss)
        console.result(f"Before it was fine-tuned: test accuracy {before}, test loss {loss}.")
    if result.resumed_from_step is not None:
        changed = result.resume_note
        written = f", written on another host or with other versions: {changed}" if changed else ""
        console.result(f"It went on from the checkpoint of step {count_text(result.resumed_from_step)}{written}.")
    # That one run has no interval is what training once means.
    told = [finding for finding in results.model.findings if finding.name != "few-repeats"]
    if told:
        console.result("\n" + findings_text(told, width=console.width, color=console.color))
    console.result(f"\nReport  {results.report or 'not written'}")
    console.result(f"Next    See how it scales: {shlex.join(['paceline', 'study', source])}")
