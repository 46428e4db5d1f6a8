"""`paceline train`: one run of one point of a study."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.options import Count, Force, Fresh, Json, Launcher, Out, Overrides, Site, Source, Strategy
from paceline.cli.progress import StudyProgress
from paceline.studies.execute.events import Event, RunFinished, RunProgress, RunSkipped, RunStarted
from paceline.units import count_text, duration_text, number_text, percent_text


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
    from paceline import app

    console = Console.standard()
    with EpochProgress(console) as progress:
        try:
            done = app.train(
                study,
                ranks=ranks,
                strategy=strategy,
                launcher=launcher,
                site=site,
                set=overrides,
                out=out,
                fresh=fresh,
                force=force,
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
    """Shows, besides what a study shows, every epoch as it ends."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._shown = 0
        self._stale: int | None = None

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
            case RunSkipped():
                self._console.say("This run is finished already: --fresh trains again.")
        super().__call__(event)

    def _curves(self, event: RunStarted | RunProgress | RunFinished) -> Path:
        assert self.folder is not None
        return self.folder.run(event.run.point.point_id, event.run.number).curves

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
