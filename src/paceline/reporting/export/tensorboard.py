"""Runs as TensorBoard event files: one folder and one file for each run, made by tensorboard's own record writer.

    OUT/STUDY/POINT/run-1/events.out.tfevents.1700000000.paceline

Nothing in a file is of the moment it is written: the same run is the same bytes, and takes the place of its earlier
self. Neither torch nor tensorflow is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from paceline.errors import RequestError
from paceline.reporting.export.tracked import HEADLINE, TrackedRun

_VERSION = "brain.Event:2"
"""What every event file begins with."""


def event_file(folder: Path, run: TrackedRun) -> Path:
    """The file of a run below the folder that TensorBoard is given."""
    place = folder / _safe(run.study) / _safe(run.point_id) / f"run-{run.number}"
    return place / f"events.out.tfevents.{int(run.started_at_s)}.paceline"


def write_events(run: TrackedRun, file: BinaryIO) -> None:
    """Write the settings and scalars of a run."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.plugins.hparams import summary_v2 as hparams
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError:
        raise missing("tensorboard") from None
    start_s = run.started_at_s
    metrics = [hparams.Metric(name) for name in HEADLINE]
    config = hparams.hparams_config_pb([hparams.HParam(name) for name in run.settings], metrics, start_s)
    settings_summary = hparams.hparams_pb(
        run.settings, trial_id=f"{run.point_id}, run {run.number}", start_time_secs=start_s
    )
    events: list[Event] = [Event(wall_time=start_s, file_version=_VERSION)]
    events += [Event(wall_time=start_s, step=0, summary=summary) for summary in (config, settings_summary)]
    events += [
        Event(
            wall_time=scalar.at_s,
            step=scalar.step,
            summary=Summary(value=[Summary.Value(tag=scalar.name, simple_value=scalar.value)]),
        )
        for scalar in run.scalars
    ]
    writer = RecordWriter(file)
    for event in events:
        writer.write(event.SerializeToString(deterministic=True))


def earlier_files(folder: Path, runs: Iterable[TrackedRun]) -> list[Path]:
    """Event files that earlier exports of these runs left below the folder, from whatever attempt at them."""
    return sorted(
        path for run in runs for path in event_file(folder, run).parent.glob("events.out.tfevents.*.paceline")
    )


def missing(package: str) -> RequestError:
    """The error if a tracker's package is not installed."""
    return RequestError(
        f"This export needs {package}, which is not installed.",
        right="It comes with the extra `track`.",
        next="Install it: pip install 'paceline[track]'",
    )


def _safe(name: str) -> str:
    """A name that is one folder below another, whatever it was."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "study"
