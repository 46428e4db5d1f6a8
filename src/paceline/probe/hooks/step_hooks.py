"""Steps of a script, derived from the steps of its optimizers.

    │◀────────────────── step ──────────────────▶│◀──────── step ────────▶│
    input-wait  forward  backward  (again)  optimizer   ...      optimizer
    └ the first step begins here                └ every other one at the end of the previous step

Several optimizers that alternate (generator and discriminator) make one step together. It ends when all optimizers of
the previous step have stepped, at the latest when one of them is about to step a second time. An update that is
skipped, by GradScaler for instance, ends no step: its time and samples belong to the next.

Samples of a step: the first dimension of the first tensor argument of a model in training, summed over the calls of the
model; with several models in a step, the smallest of their sums.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from paceline.probe.hooks.observer import Observer


class Steps:
    """Counts the steps of one rank and their samples."""

    def __init__(self, observer: Observer, began_at_ns: int) -> None:
        self._observer = observer
        self._imported_at_ns = began_at_ns
        self._asked_at_ns: int | None = None
        self._began_at_ns: int | None = None
        self._updated_at_ns = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._in_step: weakref.WeakSet[Any] = weakref.WeakSet()
        self._usual: weakref.WeakSet[Any] | None = None
        self._passed: dict[int, int | None] = {}
        self._passed_in_update: set[int] = set()
        self._samples: list[int | None] = []
        self._ended_at_ns: list[int] = []
        self.updates = 0
        """Steps of optimizers that were not skipped."""

    @property
    def taken(self) -> int:
        return len(self._samples)

    @property
    def samples(self) -> int | None:
        """Samples of all steps; None if those of one step are unknown."""
        return _sum(self._samples)

    @property
    def timed_samples(self) -> int | None:
        """Samples of all steps but the first."""
        return _sum(self._samples[1:])

    @property
    def timed(self) -> tuple[int | None, int | None]:
        """From the end of the first step to the end of the last."""
        return (self._ended_at_ns[0], self._ended_at_ns[-1]) if self.taken > 1 else (None, None)

    @property
    def passed_a_model(self) -> bool:
        """Whether there was a forward pass since the last step ended."""
        return bool(self._passed)

    def made(self, optimizer: Any) -> None:
        """An optimizer was created."""
        self._known.add(optimizer)

    def asked_for_a_batch(self) -> None:
        """The script requests its next batch; the last request before the first training pass begins the first step."""
        if self._began_at_ns is None:
            self._asked_at_ns = self._observer.recorder.clock_ns()

    def begin(self) -> None:
        """Begin the first step, if it has not begun: the time before was startup."""
        if self._began_at_ns is not None:
            return
        recorder = self._observer.recorder
        self._began_at_ns = self._asked_at_ns or recorder.clock_ns()
        recorder.add("startup", self._imported_at_ns, self._began_at_ns, "model", step=-1)
        recorder.begin_steps(0, 0)

    def passes(self, model: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """A model, identified by its id, is called in training."""
        self.begin()
        tensor = first_tensor((arguments, named))
        size = tensor.shape[0] if tensor is not None and tensor.dim() else None
        before = self._passed.get(model, 0)
        # An optimizer that calls the model repeatedly, LBFGS for instance, uses the same samples again.
        repeated = self._observer.within("optimizer") and model in self._passed_in_update
        self._passed[model] = None if size is None or before is None or repeated else before + size
        if self._observer.within("optimizer"):
            self._passed_in_update.add(model)

    def about_to_update(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        self.begin()
        if optimizer in self._in_step:
            self._usual = weakref.WeakSet(self._in_step)
            self._end(self._updated_at_ns)
        self._passed_in_update.clear()

    def updated(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        self.updates += 1
        self._known.add(optimizer)
        self._in_step.add(optimizer)
        self._updated_at_ns = self._observer.recorder.clock_ns()
        usual = self._usual if self._usual is not None else self._known
        if all(each in self._in_step for each in usual):
            self._usual = weakref.WeakSet(self._in_step) if self._usual is None else self._usual
            self._end(self._updated_at_ns)

    def close(self) -> None:
        """The script has ended: optimizers that stepped only once made one step."""
        if self._in_step and not self.taken:
            self._end(self._updated_at_ns)

    def _end(self, at_ns: int) -> None:
        assert self._began_at_ns is not None, "a step ends after it began"
        recorder = self._observer.recorder
        recorder.add("step", self._began_at_ns, at_ns, step=self.taken)
        counts = list(self._passed.values())
        known = [count for count in counts if count is not None]
        self._samples.append(min(known) if known and len(known) == len(counts) else None)
        self._ended_at_ns.append(at_ns)
        self._began_at_ns = at_ns
        self._in_step.clear()
        self._passed.clear()
        self._observer.end_step(self.taken)


def first_tensor(value: Any) -> torch.Tensor | None:
    """The first tensor in nested arguments."""
    return next(_tensors(value), None)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
