"""A study folder with finished runs, made in milliseconds: its launcher starts no process and is always done."""

import csv
import math
import time
from dataclasses import asdict, fields, replace
from pathlib import Path

from paceline.errors import RankError, RequestError
from paceline.launch.launcher import Outcome, Placement, Progress
from paceline.records.rank_trace import SPAN_KINDS
from paceline.records.run import Epoch, Manifest, RankReport, TrainingReport
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.storage.folder import RunFolder
from paceline.storage.span_stream import SpanWriter
from paceline.studies.execute.execute import execute
from paceline.studies.load.load import load_study

STUDY = """
[study]
name = "instant"
title = "Instant scaling"
question = "Is it there yet?"
[data]
dataset = "synthetic"
shape = [4, 4, 1]
samples = 60
[model]
name = "mlp"
[train]
batch_global = 8
epochs = 2
[run]
ranks = [1, 2]
repeats = 3
"""


class InstantLauncher:
    """Says at once what ranks would say: twice as fast on two of them."""

    name = "instant"

    def __init__(self, *, fails_at: int | None = None, settings: LaunchSettings | None = None) -> None:
        self.fails_at = fails_at
        """Ranks of the point that fails."""

    def placement(self, point: Point) -> Placement:
        return Placement(cores=None, text=f"{point.ranks} nowhere", oversubscribed=False)

    def check(self, point: Point) -> None:
        """Any point can be run."""

    def pending(self, folder: RunFolder) -> None:
        """No rank outlives this launcher."""

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress=lambda progress: None):
        ranks = manifest.point.ranks
        if ranks == self.fails_at:
            raise RankError(f"Rank 0 of {ranks} died.", next="Look at its log.")
        progress(Progress(step=1, total_steps=16, phase="compute"))
        for rank in range(ranks):
            write_spans(folder, rank, manifest.launched_at_ns)
        ended_at_ns = time.monotonic_ns()
        reports = tuple(report(rank, ranks, manifest) for rank in range(ranks))
        write_curves(folder, reports[0].training.epochs)
        return Outcome(started_at_ns=manifest.launched_at_ns, ended_at_ns=ended_at_ns, reports=reports)


class FailingLauncher(InstantLauncher):
    """The point with two ranks fails."""

    def __init__(self, settings: LaunchSettings | None = None) -> None:
        super().__init__(fails_at=2)


class SlowLauncher(InstantLauncher):
    """Every run takes an hour, as far as its result says."""

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress=lambda progress: None):
        outcome = super().run(folder, manifest, heartbeat_s=heartbeat_s, progress=progress)
        return replace(outcome, ended_at_ns=outcome.started_at_ns + 3600 * 10**9)


class SmallLauncher(InstantLauncher):
    """Has no room for two ranks."""

    def check(self, point: Point) -> None:
        if point.ranks > 1:
            raise RequestError(f"There is no room for {point.ranks} ranks.", right="1 fits.", next="Ask for fewer.")


class ResumedLauncher(InstantLauncher):
    """Every rank goes on from a checkpoint that another machine wrote; the loss is lost on the way."""

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress=lambda progress: None):
        outcome = super().run(folder, manifest, heartbeat_s=heartbeat_s, progress=progress)
        told = {"resumed_from_step": 1200, "resume_note": "host there → here", "test_loss": math.nan}
        return replace(
            outcome,
            reports=tuple(replace(report, training=replace(report.training, **told)) for report in outcome.reports),
        )


class InterruptedLauncher(InstantLauncher):
    """Somebody presses Ctrl-C in the second run."""

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress=lambda progress: None):
        if manifest.point.ranks == 2:
            raise KeyboardInterrupt
        return super().run(folder, manifest, heartbeat_s=heartbeat_s, progress=progress)


def finished_study(folder: Path, cache: Path, *, fails_at: int | None = None, overrides: tuple[str, ...] = ()) -> Path:
    """The study above, executed into `folder`; comes back with the path of its file."""
    file = folder.parent / "instant.toml"
    file.write_text(STUDY)
    launcher = InstantLauncher(fails_at=fails_at)
    execute(load_study(file, overrides), folder, launcher=launcher, preflight=False, cache=cache)
    return file


def write_spans(folder: RunFolder, rank: int, launched_at_ns: int) -> None:
    writer = SpanWriter(folder.rank_spans(rank))
    kinds = [SPAN_KINDS.index(kind) for kind in ("startup", "forward", "backward")]
    starts = [launched_at_ns + 1000 * index for index in range(3)]
    nothing = (None, -1, -1, None, -1, -1, None)
    writer.write([(kind, at, at + 1000, 0, *nothing) for kind, at in zip(kinds, starts, strict=True)])
    writer.close()


def write_curves(folder: RunFolder, epochs: tuple[Epoch, ...]) -> None:
    with folder.curves.open("w", newline="") as file:
        lines = csv.DictWriter(file, [field.name for field in fields(Epoch)])
        lines.writeheader()
        lines.writerows(asdict(epoch) for epoch in epochs)


def report(rank: int, ranks: int, manifest: Manifest) -> RankReport:
    return RankReport(
        rank=rank,
        status="done",
        host="here",
        pid=1,
        device="cpu",
        backend="gloo",
        threads=1,
        affinity=(rank,),
        versions={"torch": "0"},
        steps=16,
        ended_at_ns=0,
        parameters=170,
        training=TrainingReport(
            epochs=tuple(epoch(number, 1.0 / ranks) for number in (1, 2)),
            test_loss=0.5,
            test_accuracy=0.9,
            load_s=0.1,
            weights_sha256=f"{manifest.seed:064x}",
        ),
    )


def epoch(number: int, epoch_s: float) -> Epoch:
    return Epoch(
        epoch=number,
        step=8 * number,
        samples=60,
        train_loss=1.0 / number,
        train_accuracy=0.5,
        validation_loss=None,
        validation_accuracy=None,
        epoch_s=epoch_s,
        evaluate_s=0.1,
        whole=True,
    )
