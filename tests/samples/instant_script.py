"""Ranks of a script, made in milliseconds: a launcher that starts no process and says what they would say."""

import time
from pathlib import Path

from paceline.launch.launcher import Outcome, Placement
from paceline.records.rank_trace import SPAN_KINDS
from paceline.records.run import Manifest, RankReport, ScriptFigures
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.storage.folder import RunFolder
from paceline.storage.span_stream import SpanWriter

STEPS = 11
SCRIPT = "import torch\nprint(torch.__version__)\n"


def written(folder: Path, name: str = "train.py", text: str = SCRIPT) -> Path:
    """A script in a folder."""
    path = folder / name
    path.write_text(text)
    return path


class InstantScripts:
    """Every rank takes eleven steps of a millisecond, 100 samples each: twice as many samples a second on two."""

    name = "instant"
    steps: tuple[int, ...] = ()
    """Of each rank, where they differ."""
    samples: int | None = 1000
    """Of the timed steps of a rank."""

    def __init__(self, settings: LaunchSettings | None = None) -> None:
        self.told: list[Manifest] = []

    def placement(self, point: Point) -> Placement:
        return Placement(cores=None, text=f"{point.ranks} nowhere", oversubscribed=False)

    def check(self, point: Point) -> None:
        """Any point can be run."""

    def pending(self, folder: RunFolder) -> None:
        """No rank outlives this launcher."""

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress=lambda progress: None):
        self.told.append(manifest)
        ranks = range(manifest.point.ranks)
        for rank in ranks:
            self.write_spans(folder, rank, manifest.launched_at_ns)
        folder.logs.mkdir(parents=True, exist_ok=True)
        folder.rank_log(0).write_text(
            f"=== rank 0 of {len(ranks)}, run 1, attempt 1, launched now\nhello from rank 0\n"
        )
        reports = tuple(self.report(rank) for rank in ranks)
        ended_at_ns = max(time.monotonic_ns(), manifest.launched_at_ns + 20_000_000)
        return Outcome(started_at_ns=manifest.launched_at_ns, ended_at_ns=ended_at_ns, reports=reports)

    def report(self, rank: int) -> RankReport:
        steps = self.steps[rank] if self.steps else STEPS
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
            steps=steps,
            ended_at_ns=0,
            script=ScriptFigures(
                samples=self.samples if steps > 1 else None,
                timed_s=0.010 + 0.001 * rank if steps > 1 else None,
                found=("DDP", f"{rank + 1} optimizers"),
                notes=() if steps else ("No torch.optim optimizer took a step.",),
            ),
        )

    def write_spans(self, folder: RunFolder, rank: int, launched_at_ns: int) -> None:
        writer = SpanWriter(folder.rank_spans(rank))
        ms, nothing = 1_000_000, (None, -1, -1, None, -1, -1, None)
        rows = [(SPAN_KINDS.index("startup"), launched_at_ns, launched_at_ns + ms, -1, *nothing)]
        for step in range(self.steps[rank] if self.steps else STEPS):
            start = launched_at_ns + (1 + step) * ms
            rows.append((SPAN_KINDS.index("step"), start, start + ms, step, *nothing))
            rows.append((SPAN_KINDS.index("forward"), start, start + ms // 2, step, *nothing))
            message = ("allreduce_", 400, step, "0", -1, -1, "float32")
            rows.append((SPAN_KINDS.index("collective"), start, start + ms // 4, step, *message))
        writer.write(rows)
        writer.close()


class StepLess(InstantScripts):
    """No optimizer of the script ever steps."""

    steps = (0, 0)


class SampleLess(InstantScripts):
    """What goes through the model is not known."""

    samples = None


class Uneven(InstantScripts):
    """Rank 1 takes two steps fewer than rank 0."""

    steps = (11, 9)
