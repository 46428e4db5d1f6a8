"""Watcher: installs all hooks of the probe in a process that runs a script, and removes them at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch.distributed as dist

from paceline.probe.collectives import PendingMessages, watch_collectives
from paceline.probe.hooks.calls import Calls
from paceline.probe.hooks.keras_hooks import attach_keras
from paceline.probe.hooks.model_hooks import Models
from paceline.probe.hooks.observer import Observer
from paceline.probe.hooks.patches import Patches
from paceline.probe.hooks.step_hooks import Steps
from paceline.probe.recorder import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Steps, samples and features of a script, after its end."""

    steps: int
    samples: int | None
    timed_samples: int | None
    timed_from_ns: int | None
    timed_to_ns: int | None
    device: str
    found: tuple[str, ...]
    notes: tuple[str, ...]


class Watcher:
    """Watches a script in this process."""

    def __init__(self, recorder: Recorder, joined: Callable[[], None] | None = None) -> None:
        """`joined` is called when the script has joined its process group."""
        self._observer = Observer(recorder)
        self._steps = Steps(self._observer, recorder.clock_ns())
        self._models = Models(self._observer, self._steps)
        pending = PendingMessages(recorder)
        self._calls = Calls(self._observer, self._steps, self._models, self._on_join, pending.waited)
        self._joined = joined
        self._patches = Patches()
        self._models.attach(self._patches)
        self._calls.attach(self._patches)
        attach_keras(self._patches, self._observer, self._models, self._calls)
        self._collectives = watch_collectives(recorder, pending) if dist.is_available() else None
        self.rank: int | None = None
        self.size: int | None = None
        self.backend = "none"

    @property
    def silent(self) -> bool:
        """Whether nothing is recorded: in a child that the script forked, and after the end."""
        return self._observer.silent

    def end(self) -> Observation:
        """Remove all hooks and return the observation."""
        self._steps.close()
        self._calls.notes()
        self._note_what_is_missing()
        self._observer.silence()
        self._calls.detach()
        self._models.detach()
        self._patches.undo()
        if self._collectives is not None:
            self._collectives._destroy()
        steps = self._steps
        return Observation(
            steps=steps.taken,
            samples=steps.samples,
            timed_samples=steps.timed_samples,
            timed_from_ns=steps.timed[0],
            timed_to_ns=steps.timed[1],
            device=self._models.device,
            found=tuple(self._observer.found),
            notes=tuple(self._observer.notes),
        )

    def _on_join(self) -> None:
        if self.rank is not None:
            return  # a second process group of the script: the rank of the first one is used
        self.rank, self.size, self.backend = dist.get_rank(), dist.get_world_size(), dist.get_backend()
        if self._joined is not None:
            self._joined()

    def _note_what_is_missing(self) -> None:
        steps, note = self._steps, self._observer.note
        if not steps.taken:
            note(
                "No steps were found: no optimizer of torch.optim, or of Keras, took a step in this process. "
                "Time that is not in a span of the trace counts as `other`."
            )
            return
        if not self._models.seen:
            note(
                "No forward pass was found: no module with parameters of the optimizers was called from outside a "
                "compiled function. Forward passes count as `other`, and the number of samples is unknown."
            )
        elif steps.samples is None and steps.timed_samples is None:
            note(
                "The number of samples per step is unknown: a model was called without a tensor, or repeatedly "
                "within one step of its optimizer."
            )
        if self._models.device == "cuda":
            note("The kinds of time within a step are not measured on a GPU: they are the times of queueing work.")
