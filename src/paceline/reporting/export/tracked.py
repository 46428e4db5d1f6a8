"""A finished run as experiment trackers see one: a name, settings, tags, and scalars over steps.

    loss/train  loss/validation  accuracy/train  accuracy/validation     per epoch
    throughput/samples_per_s  time/epoch_s  time/evaluate_s              per epoch
    gradient_noise/scale                                                 per epoch in which it was measured
    test/loss  test/accuracy  time/total_s                               once, at the last step

An epoch's end is put at the launch plus all that came before: the run folder has no clock reading for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from paceline.errors import StorageError
from paceline.records.run import RunResult
from paceline.records.study import Point
from paceline.reporting.wording.characters import printable
from paceline.reporting.wording.settings_list import point_settings

HEADLINE = ("test/accuracy", "test/loss", "throughput/samples_per_s", "time/epoch_s")
"""Scalars that runs are compared by."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value of one curve."""

    name: str
    step: int
    """Optimizer steps taken."""
    at_s: float
    """Seconds since 1970."""
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRun:
    """One run of a point."""

    study: str
    point_id: str
    label: str
    number: int
    started_at_s: float
    ended_at_s: float
    settings: dict[str, str | int | float | bool]
    """By the names that `--set` knows; what was left open is not among them."""
    tags: dict[str, str]
    scalars: tuple[Scalar, ...]

    @property
    def name(self) -> str:
        """`2 ranks, flat, run 3`."""
        return f"{self.label}, run {self.number}"


def tracked_run(study: str, label: str, point: Point, result: RunResult, commit: str | None) -> TrackedRun:
    """A finished run with all that a tracker can show of it."""
    started_at_s = _instant_s(result)
    tags = {
        "paceline.study": study,
        "paceline.point": result.point_id,
        "paceline.run": str(result.run),
        "paceline.seed": str(result.seed),
        "paceline.launched_at": result.launched_at,
        "paceline.emulated": str(result.oversubscribed or result.emulated).lower(),
        **({"paceline.commit": commit} if commit else {}),
    }
    return TrackedRun(
        study=printable(study),
        point_id=result.point_id,
        label=printable(label),
        number=result.run,
        started_at_s=started_at_s,
        ended_at_s=started_at_s + result.wall_s,
        settings=_settings(point, result),
        tags={name: printable(value) for name, value in tags.items()},
        scalars=tuple(_scalars(result, started_at_s)),
    )


def _instant_s(result: RunResult) -> float:
    try:
        return datetime.fromisoformat(result.launched_at).timestamp()
    except (ValueError, OverflowError):
        raise StorageError(
            f"Run {result.run} of {result.point_id} says that it was launched at {printable(result.launched_at)!r}.",
            right="That is no time: its result.json was changed.",
            next="Leave it out with --point and --run, or run it again.",
        ) from None


def _settings(point: Point, result: RunResult) -> dict[str, str | int | float | bool]:
    known = {name: value for name, value in point_settings(point).items() if value is not None}
    known |= {"seed": result.seed, **({"parameters": result.parameters} if result.parameters else {})}
    return {
        printable(name): value if isinstance(value, bool | int | float) else printable(str(value))
        for name, value in known.items()
    }


def _scalars(result: RunResult, started_at_s: float) -> Iterator[Scalar]:
    at_s = started_at_s + (result.load_s or 0.0)
    ends_at_s: dict[int, float] = {}
    for epoch in result.epochs:
        at_s += epoch.epoch_s + epoch.evaluate_s
        ends_at_s[epoch.epoch] = at_s
        scalars = {
            "loss/train": epoch.train_loss,
            "loss/validation": epoch.validation_loss,
            "accuracy/train": epoch.train_accuracy,
            "accuracy/validation": epoch.validation_accuracy,
            "throughput/samples_per_s": epoch.samples / epoch.epoch_s if epoch.epoch_s > 0 else None,
            "time/epoch_s": epoch.epoch_s,
            "time/evaluate_s": epoch.evaluate_s,
        }
        yield from (Scalar(name, epoch.step, at_s, value) for name, value in scalars.items() if value is not None)
    for noise in result.noise:
        if noise.noise_scale is not None:
            yield Scalar("gradient_noise/scale", noise.step, ends_at_s.get(noise.epoch, at_s), noise.noise_scale)
    script = result.script
    scripted = script.samples / script.timed_s if script.samples and script.timed_s else None
    last = {
        "test/loss": result.test_loss,
        "test/accuracy": result.test_accuracy,
        "time/total_s": result.total_s,
        "throughput/samples_per_s": scripted,
    }
    ended_at_s = max(at_s, started_at_s + result.wall_s)
    yield from (Scalar(name, result.steps, ended_at_s, value) for name, value in last.items() if value is not None)
