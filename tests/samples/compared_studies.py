"""Studies and runs whose times are given: folders to compare, made in milliseconds by a launcher that starts nothing.

A step is forward, backward, then an all-reduce in `communicate`: 8 of them an epoch, two epochs, the first is warm-up.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path

from paceline.launch.launcher import Outcome
from paceline.records.rank_trace import SPAN_KINDS
from paceline.records.run import Manifest
from paceline.storage.folder import RunFolder
from paceline.storage.span_stream import SpanRow, SpanWriter
from paceline.studies.execute.execute import execute
from paceline.studies.load.load import load_study
from samples.finished_study import STUDY, InstantLauncher, epoch, report, write_curves

US = 1000
STEPS = 16
KINDS = ("forward", "backward", "communicate")


@dataclass
class TimedLauncher(InstantLauncher):
    """Its ranks say that every step took so many microseconds of each kind, give or take some per mille of a run."""

    forward_us: float = 400
    backward_us: float = 500
    communicate_us: float = 100
    scatter: float = 0.01
    """Of a run, and a tenth of it of a step."""
    accuracy: float = 0.9
    seed: int = 0
    steps: int = STEPS
    fails_at: int | None = None
    settings: object = None
    noise: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.noise = random.Random(self.seed)

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress=lambda progress: None):
        ranks, begin = manifest.point.ranks, manifest.launched_at_ns + 1000 * US
        slowness = 1 + self.noise.gauss(0, self.scatter)
        times = [self._step_ns(slowness) for _ in range(self.steps)]
        for rank in range(ranks):
            _write(folder.rank_spans(rank), _rows(begin, times, ranks))
        ends = [begin + sum(map(sum, times[:number])) for number in range(self.steps + 1)]
        half = self.steps // 2
        epochs = [
            replace(epoch(1, (ends[half] - begin) / 1e9), step=half),
            replace(epoch(2, (ends[-1] - ends[half]) / 1e9), step=self.steps),
        ]
        said = [report(rank, ranks, manifest) for rank in range(ranks)]
        accuracies = [
            self.accuracy + self.noise.gauss(0, 0.001) if not rank else self.accuracy for rank in range(ranks)
        ]
        reports = tuple(
            replace(one, steps=self.steps, training=replace(one.training, epochs=tuple(epochs), test_accuracy=accuracy))
            for one, accuracy in zip(said, accuracies, strict=True)
        )
        write_curves(folder, reports[0].training.epochs)
        return Outcome(started_at_ns=manifest.launched_at_ns, ended_at_ns=ends[-1] + 1000 * US, reports=reports)

    def _step_ns(self, slowness: float) -> tuple[int, ...]:
        slowness *= 1 + self.noise.gauss(0, self.scatter / 10)
        return tuple(round(us * US * slowness) for us in (self.forward_us, self.backward_us, self.communicate_us))


def timed_study(folder: Path, cache: Path, *overrides: str, **times: object) -> Path:
    """A study of 1 and 2 ranks whose steps take the given times, executed into `folder`."""
    file = folder.parent / f"{folder.name}.toml"
    file.write_text(STUDY)
    launcher = TimedLauncher(**times)  # pyright: ignore[reportArgumentType]
    done = execute(load_study(file, overrides), folder, launcher=launcher, preflight=False, cache=cache)
    assert not done.failures, done.failures
    return folder


def attached_run(folder: Path, *, ranks: int = 2, steps: int = 60, **times: object) -> Path:
    """A folder with spans alone, as of ranks that another program started."""
    launcher = TimedLauncher(**times)  # pyright: ignore[reportArgumentType]
    steps_ns = [launcher._step_ns(1.0) for _ in range(steps)]
    for rank in range(ranks):
        _write(RunFolder(folder).rank_spans(rank), _rows(1000 * US, steps_ns, ranks))
    return folder


def _rows(begin: int, times: list[tuple[int, ...]], ranks: int) -> list[SpanRow]:
    kinds = {name: SPAN_KINDS.index(name) for name in (*KINDS, "step", "collective", "group")}
    rows: list[SpanRow] = [
        (kinds["group"], begin, begin, -1, " ".join(map(str, range(ranks))), -1, -1, "0", -1, -1, None)
    ]
    at = begin
    for number, parts in enumerate(times):
        rows.append((kinds["step"], at, at + sum(parts), number, None, -1, -1, None, -1, -1, None))
        for name, length in zip(KINDS, parts, strict=True):
            if name == "communicate" and ranks > 1:
                message = ("allreduce_", 4000, number, "0", -1, -1, "float32")
                rows.append((kinds["collective"], at, at + length, number, *message))
            rows.append((kinds[name], at, at + length, number, None, -1, -1, None, -1, -1, None))
            at += length
    return rows


def _write(path: Path, rows: list[SpanRow]) -> None:
    writer = SpanWriter(path)
    writer.write(rows)
    writer.close()
