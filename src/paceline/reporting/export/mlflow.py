"""Runs as MLflow runs in a local store of files: one experiment for a study, one run for each of its runs.

    experiment  the study            run    `2 ranks, flat, run 3`, with the times at which it was really run
    params      its settings         metrics   its scalars over steps
    tags        paceline.study, .point, .run, .seed, .launched_at, .commit, .emulated
    artifacts   manifest.json, machine.json, result.json, curves.csv

MLflow keeps files in maintenance mode and asks to be told that they are wanted; its database needs packages that its
small distribution does not bring. It reports its use to its makers unless told not to. Both are said to it here, for
as long as it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import StorageError
from paceline.identity import temporary_variables
from paceline.reporting.export.tensorboard import missing
from paceline.reporting.export.tracked import TrackedRun
from paceline.reporting.wording.characters import printable

if TYPE_CHECKING:
    from mlflow import MlflowClient

_TOLD = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "MLFLOW_ALLOW_FILE_STORE": "true"}
_LONGEST = 6000
"""Characters of a parameter's value that MLflow takes."""
_AT_ONCE = 100
"""Metrics or parameters that it takes together."""


@contextmanager
def store(folder: Path) -> Iterator[MlflowClient]:
    """A client of the store in a folder, which is made where it is not there."""
    with temporary_variables(_TOLD):
        try:
            from mlflow import MlflowClient
            from mlflow.exceptions import MlflowException
        except ImportError:
            raise missing("mlflow-skinny") from None
        try:
            yield MlflowClient(tracking_uri=folder.absolute().as_uri())
        except MlflowException as error:
            raise StorageError(
                f"MLflow cannot write into {folder}: {printable(str(error).partition(chr(10))[0])}",
                next="Choose another folder with --out DIR.",
            ) from error


def earlier_runs(client: MlflowClient, runs: Sequence[TrackedRun]) -> list[str]:
    """The runs of the store that an earlier export made of these, by MLflow's numbers."""
    found = client.get_experiment_by_name(runs[0].study) if runs else None
    if found is None:
        return []
    wanted = {_identity(run.tags) for run in runs}
    stored = client.search_runs([found.experiment_id], max_results=50_000)
    return [run.info.run_id for run in stored if _identity(run.data.tags) in wanted]


def remove_runs(client: MlflowClient, run_ids: Sequence[str]) -> None:
    """Delete runs as MLflow does: they are no longer shown, and can be restored until its garbage is collected."""
    for run_id in run_ids:
        client.delete_run(run_id)


def log_run(client: MlflowClient, run: TrackedRun, artifacts: Sequence[Path]) -> str:
    """Store one run; comes back with MLflow's number for it."""
    from mlflow.entities import Metric, Param

    found = client.get_experiment_by_name(run.study)
    experiment = found.experiment_id if found else client.create_experiment(run.study)
    stored = client.create_run(experiment, start_time=_ms(run.started_at_s), tags=run.tags, run_name=run.name)
    run_id = stored.info.run_id
    metrics = [Metric(scalar.name, scalar.value, _ms(scalar.at_s), scalar.step) for scalar in run.scalars]
    settings = {_key(name): str(value)[:_LONGEST] for name, value in run.settings.items()}
    params = [Param(name, value) for name, value in settings.items()]
    for start in range(0, len(metrics), _AT_ONCE):
        client.log_batch(run_id, metrics=metrics[start : start + _AT_ONCE])
    for start in range(0, len(params), _AT_ONCE):
        client.log_batch(run_id, params=params[start : start + _AT_ONCE])
    for path in artifacts:
        if path.is_file():
            client.log_artifact(run_id, str(path))
    client.set_terminated(run_id, end_time=_ms(run.ended_at_s))
    return run_id


def _identity(tags: dict[str, str]) -> tuple[str | None, ...]:
    return tuple(tags.get(f"paceline.{name}") for name in ("study", "point", "run"))


def _ms(at_s: float) -> int:
    return round(at_s * 1000)


def _key(name: str) -> str:
    """A name as MLflow takes it: letters, digits and a few marks."""
    return re.sub(r"[^\w./ :-]", "_", name)[:250] or "_"
