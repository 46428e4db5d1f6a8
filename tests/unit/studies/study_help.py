"""A launcher without processes, and studies and points to give it."""

import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.errors import RankError, RequestError
from paceline.launch.launcher import Outcome, Placement, Progress
from paceline.records.run import Epoch, Manifest, RankReport, RunResult, TrainingReport
from paceline.records.study import Point, Run
from paceline.storage.codec import names
from paceline.storage.folder import RunFolder
from paceline.studies.load.load import LoadedStudy, load_study

STUDY = """
[study]
name = "tiny"
[data]
dataset = "synthetic"
shape = [4, 4, 1]
samples = 60
[model]
name = "mlp"
[train]
batch_global = 8
epochs = 2
seed = 10
[run]
ranks = [1, 2]
repeats = 2
"""


def loaded(folder: Path, *overrides: str) -> LoadedStudy:
    """The study above, as a file in `folder`."""
    path = folder / "tiny.toml"
    path.write_text(STUDY)
    return load_study(path, overrides)


class FakeLauncher:
    """Says what real ranks would say, at once; `before` may raise or do harm, `change` may alter reports.

    More ranks than `most` are refused.
    """

    name = "fake"

    def __init__(
        self,
        before: Callable[[Manifest], None] = lambda manifest: None,
        change: Callable[[list[RankReport]], list[RankReport]] = lambda reports: reports,
        most: int = 99,
    ) -> None:
        self.before = before
        self.change = change
        self.most = most
        self.manifests: list[Manifest] = []

    @property
    def order(self) -> list[tuple[int, int]]:
        """(ranks, run) of everything that was run."""
        return [(manifest.point.ranks, manifest.run) for manifest in self.manifests]

    def placement(self, point: Point) -> Placement:
        return Placement(cores=None, text=f"{point.ranks} nowhere", oversubscribed=point.ranks > 2)

    def check(self, point: Point) -> None:
        if point.ranks > self.most:
            raise RequestError(f"There is no room for {point.ranks} ranks.")

    def pending(self, folder: RunFolder) -> None:
        """No rank outlives this launcher."""

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress=lambda progress: None):
        self.manifests.append(manifest)
        assert folder.manifest.exists() and not folder.result.exists()
        self.before(manifest)
        progress(Progress(step=1, total_steps=2, phase="compute"))
        reports = self.change([report(rank, seed=manifest.seed) for rank in range(manifest.point.ranks)])
        return Outcome(started_at_ns=manifest.launched_at_ns, ended_at_ns=time.monotonic_ns(), reports=tuple(reports))


def report(rank: int, *, seed: int = 0) -> RankReport:
    """A rank's last words: the higher its number, the slower it was."""
    return RankReport(
        rank=rank,
        status="done",
        host=socket.gethostname(),
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
            epochs=tuple(epoch(number, rank) for number in (1, 2)),
            test_loss=0.5,
            test_accuracy=0.9,
            load_s=0.1 * (rank + 1),
            weights_sha256=f"{seed:064x}",
        ),
    )


def changed(report: RankReport, **changes: Any) -> RankReport:
    """The report with other values, in whichever of its parts they are."""
    own = {key: changes.pop(key) for key in names(TrainingReport) if key in changes}
    return replace(report, training=replace(report.training, **own), **changes)


def epoch(number: int, rank: int) -> Epoch:
    return Epoch(
        epoch=number,
        step=8 * number,
        samples=60,
        train_loss=1.0 / number + rank,
        train_accuracy=0.5,
        validation_loss=None,
        validation_accuracy=None,
        epoch_s=1.0 + rank,
        evaluate_s=0.1 * (rank + 1),
        whole=True,
    )


def result(run: Run, *, wall_s: float, trained_s: float = 0.0) -> RunResult:
    """What a run came to, of which only the times matter."""
    return RunResult(
        point_id=run.point.point_id,
        run=run.number,
        seed=run.seed,
        ranks=run.point.ranks,
        attempt=1,
        launched_at="",
        launched_at_ns=0,
        total_s=wall_s,
        wall_s=wall_s,
        epochs=(replace(epoch(1, 0), epoch_s=trained_s, evaluate_s=0.0),),
        test_loss=0.5,
        test_accuracy=0.9,
        parameters=170,
        load_s=0.1,
        steps=8,
        weights_sha256="",
        oversubscribed=False,
    )


def failing_at(*runs: tuple[int, int]) -> Callable[[Manifest], None]:
    """A rank dies in these runs, given as (ranks, run)."""

    def before(manifest: Manifest) -> None:
        if (manifest.point.ranks, manifest.run) in runs:
            raise RankError("Rank 0 of 1 died.", right="Ranks live.", next="Look at its log.")

    return before


def results(folder: Path) -> dict[str, bytes]:
    """Every result of a study folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("points/*/runs/*/result.json"))
    }
