"""Checks in a subprocess, before any rank starts, that the model can be built and fits the data.

A model may run the user's code, and needs torch: the process of the study imports neither.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline import catalog
from paceline.errors import ModelError
from paceline.identity import PARENT_PID, inherited_environment
from paceline.launch.child import python, thread_environment
from paceline.records.run import Manifest
from paceline.storage.codec import write_record

COMMAND = python("-m", "paceline.training.model_check")
TIMEOUT_S = 120.0
MORE_MODELS_S = 20.0
"""For each further model of a study that varies it."""
FETCHING_TIMEOUT_S = 1800.0
"""Of a pretrained network, whose weights may have to be downloaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Facts of a model that was built for the check."""

    parameters: int | None = None
    sample_s: float | None = None
    """Seconds per sample on one rank; None if not timed."""


def check_model(
    manifests: Sequence[Manifest],
    *,
    timed: bool = False,
    command: tuple[str, ...] = COMMAND,
    timeout_s: float | None = None,
) -> tuple[Built, ...]:
    """Facts of the model of each manifest; ModelError if one cannot be used. Takes an import of torch.

    Comes back with what each of the models is, where the process says so.
    """
    with tempfile.TemporaryDirectory(prefix="paceline-preflight-") as folder:
        paths = [Path(folder) / f"{number}.json" for number in range(len(manifests))]
        for path, manifest in zip(paths, manifests, strict=True):
            write_record(path, manifest)
        arguments = [*(["--timed"] if timed else []), *map(str, paths)]
        fetching = any(catalog.model(m.point.model.name).pretrained for m in manifests)
        patience_s = FETCHING_TIMEOUT_S if fetching else TIMEOUT_S
        patience_s += MORE_MODELS_S * (len(manifests) - 1)
        answer = _answer((*command, *arguments), manifests[-1], patience_s if timeout_s is None else timeout_s)
    if answer.get("ok") is not True:
        raise ModelError(
            str(answer.get("error") or "The model was refused without a reason."),
            right=str(answer.get("right") or ""),
            next=str(answer.get("next") or ""),
        )
    facts = answer.get("models")
    return tuple(Built(**each) for each in facts) if isinstance(facts, list) else (Built(),) * len(manifests)


def _answer(command: tuple[str, ...], manifest: Manifest, timeout_s: float) -> dict[str, object]:
    threads = thread_environment(manifest.point.threads)
    environment = inherited_environment() | threads | {PARENT_PID: str(os.getpid())}
    name = manifest.point.model.name
    alone = f"Try it alone: python {manifest.model_file}" if manifest.model_file else "paceline doctor"
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(
            f"The model {name!r} was not built within {timeout_s:.0f} s.",
            right="Building it and one pass over two samples should take seconds.",
            next=alone,
        ) from error
    try:
        answer = json.loads(done.stdout.decode(errors="replace").strip().splitlines()[-1])
        if isinstance(answer, dict):
            return answer
    except (ValueError, IndexError):
        pass  # no answer: the end of its standard error is shown
    words = done.stderr.decode(errors="replace").strip().splitlines()[-12:]
    ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    raise ModelError(
        "\n".join([f"Checking the model {name!r} ended with {ended}.", *(f"  {line}" for line in words)]),
        right="It is built and given two samples before any rank starts.",
        next=alone,
    )
