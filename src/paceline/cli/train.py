"""`paceline train`: one run of one point of a study."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.curve_watch import written_at_ns
from paceline.cli.options import DEFAULT_OPTIONS, Count, Json, RunOptions, Source
from paceline.cli.progress import StudyProgress
from paceline.records.run import Epoch
from paceline.storage.curve_file import read_epochs
from paceline.studies.execute.events import Event, RunFinished, RunProgress, RunSkipped, RunStarted
from paceline.units import count_text, duration_text, number_text, percent_text


def train(
    study: Source = "mnist-scaling",
    /,
    *,
    ranks: Annotated[Count | None, Parameter(help="Number of ranks; default: the first of the study.")] = None,
    options: RunOptions = DEFAULT_OPTIONS,
    as_json: Json = False,
) -> int:
    """Train once: one run of one point of a study, with a line for every epoch.

    A stopped run continues from its last checkpoint; train.checkpoint_every sets how often one is written. A
    finished run is only shown. If the study varies more than the ranks, the first value of each factor is used.

    For example:

        paceline train digits
        paceline train my-study.toml --ranks 2 --set train.epochs=10 --set train.checkpoint_every=100
    """
    from paceline import app

    console = Console.standard()
    with EpochProgress(console) as progress:
        try:
            done = app.train(
                study,
                ranks=ranks,
                **asdict(options),
                events=progress,
            )
        except KeyboardInterrupt:
            return progress.interrupted("train")
    for note in done.results.notes:
        console.status("WARN", note)
    if as_json:
        console.json(done.to_dict())
    else:
        console.result(done.text(width=console.width, color=console.color))
        console.result(f"\nReport  {done.report or 'not written'}")
        console.result(f"Next    See how it scales: {shlex.join(['paceline', 'study', study])}")
    return 0


class EpochProgress(StudyProgress):
    """Prints the events of a study, and a line at the end of every epoch."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._shown = 0
        self._stale_at_ns: int | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                # Lines of an earlier attempt are ignored until this attempt rewrites the file.
                self._stale_at_ns = written_at_ns(self._curves(event))
            case RunProgress():
                curves = self._curves(event)
                if written_at_ns(curves) != self._stale_at_ns:
                    self._show_epochs(curves)
            case RunFinished():
                self._show_epochs(self._curves(event))
            case RunSkipped():
                self._console.say("This run is already finished. Use --fresh to train again.")
        super().__call__(event)

    def _curves(self, event: RunStarted | RunProgress | RunFinished) -> Path:
        assert self.folder is not None
        return self.folder.run(event.run.point.point_id, event.run.number).curves

    def _show_epochs(self, curves: Path) -> None:
        epochs = read_epochs(curves)
        for epoch in epochs[self._shown :]:
            self._console.say(f"  {_epoch_text(epoch)}")
        self._shown = max(self._shown, len(epochs))


def _epoch_text(epoch: Epoch) -> str:
    """The figures of one epoch: `epoch 2: loss 0.129, accuracy 96.1 %, 4.21 s, 2,850 samples/s`."""
    parts = [f"loss {number_text(epoch.train_loss)}", f"accuracy {percent_text(epoch.train_accuracy)}"]
    if epoch.validation_accuracy is not None:
        parts.append(f"validation accuracy {percent_text(epoch.validation_accuracy)}")
    parts.append(duration_text(epoch.epoch_s))
    if epoch.epoch_s > 0:
        parts.append(f"{count_text(round(epoch.samples / epoch.epoch_s))} samples/s")
    phase = ", fine-tuning" if epoch.phase == "finetune" else ""
    return f"epoch {epoch.epoch}{phase}: {', '.join(parts)}"
