"""Hooks on calls of torch, each recorded as a span.

DataLoader: the next batch                   input-wait
Tensor.backward, torch.autograd.backward     backward
Optimizer.step                               optimizer, and steps
Work.wait, blocking collectives              communicate
torch.save, distributed checkpoint           checkpoint
init_process_group                           startup, rendezvous
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch.compiler import is_compiling
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from paceline.probe.hooks.model_hooks import Models
from paceline.probe.hooks.observer import ObservedSpan, Observer, with_span
from paceline.probe.hooks.patches import Patches
from paceline.probe.hooks.step_hooks import Steps
from paceline.units import counted


class Calls:
    """Hooks on torch in one rank."""

    def __init__(
        self,
        observer: Observer,
        steps: Steps,
        models: Models,
        joined: Callable[[], None],
        waited: Callable[[Any], None],
    ) -> None:
        """`joined` is called when the script has a process group, `waited` after it has waited for a message."""
        self._observer = observer
        self._steps = steps
        self._models = models
        self._joined = joined
        self._waited = waited
        self._hooks: list[Any] = []
        self._updating: list[tuple[Any, ObservedSpan]] = []
        self._skipped = 0
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._num_optimizers = 0

    def attach(self, patches: Patches) -> None:
        """Install the hooks."""
        patches.replace(_BaseDataLoaderIter, "__next__", self._fetching)
        patches.replace(DataLoader, "__iter__", self._fetching)
        patches.replace(torch.autograd, "backward", self._backward)
        patches.replace(Optimizer, "__init__", self._making)
        patches.replace(torch.amp.GradScaler, "step", self._scaling)
        patches.replace(torch, "save", self._around("checkpoint"))
        self._hooks = [
            register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: self.about_to_update(optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, args, kwargs: self.updated(optimizer)),
        ]
        patches.when_imported("torch.distributed.checkpoint.state_dict_saver", self._around_saving(patches))
        if dist.is_available():
            self._attach_distributed(patches)

    def detach(self) -> None:
        """Remove the hooks of optimizers; the patches undo the rest."""
        for hook in self._hooks:
            hook.remove()

    def notes(self) -> None:
        """Note skipped updates and the number of optimizers that have stepped."""
        if self._num_optimizers:
            self._observer.recognise(counted(self._num_optimizers, "optimizer"))
        if self._skipped:
            skipped = counted(self._skipped, "update")
            self._observer.note(f"GradScaler skipped {skipped}: the time before it is part of the next step.")

    def about_to_update(self, optimizer: Any) -> None:
        """An optimizer's step begins; a step of another optimizer inside it is part of it."""
        if is_compiling():
            return
        if self._updating and self._updating[-1][0] is optimizer:  # its last step raised
            self._updating.pop()[1].__exit__()
        if not self._observer.sees("optimizer"):
            return
        self._models.trained_by(optimizer)
        self._steps.about_to_update(optimizer)
        span = self._observer.span("optimizer")
        span.__enter__()
        self._updating.append((optimizer, span))

    def updated(self, optimizer: Any) -> None:
        """An optimizer's step has ended."""
        if is_compiling() or not self._updating or self._updating[-1][0] is not optimizer:
            return
        _, span = self._updating.pop()
        span.__exit__()
        if optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
            self._num_optimizers += 1
        if not self._steps.passed_a_model:
            self._models.look_deeper()
        self._steps.updated(optimizer)

    def _making(self, original: Any) -> Any:
        @functools.wraps(original)
        def __init__(optimizer: Any, /, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            if self._observer.sees("optimizer"):
                self._steps.made(optimizer)
                self._models.trained_by(optimizer)

        return __init__

    def _scaling(self, original: Any) -> Any:
        @functools.wraps(original)
        def step(scaler: Any, /, *args: Any, **kwargs: Any) -> Any:
            updates = self._steps.updates
            result = original(scaler, *args, **kwargs)
            if not self._observer.silent:
                self._observer.recognise("GradScaler")
                self._skipped += updates == self._steps.updates
            return result

        return step

    def _fetching(self, original: Any) -> Any:
        @functools.wraps(original)
        def fetch(source: Any, /) -> Any:
            if not self._observer.sees("input-wait"):
                return original(source)
            self._observer.recognise("DataLoader")
            self._steps.asked_for_a_batch()
            with self._observer.span("input-wait"):
                return original(source)

        return fetch

    def _backward(self, original: Any) -> Any:
        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> None:
            if is_compiling() or not self._observer.sees("backward"):
                return original(*args, **kwargs)
            self._steps.begin()
            with self._observer.span("backward"):
                return original(*args, **kwargs)

        return backward

    def _around(self, kind: str) -> Callable[[Any], Any]:
        return lambda original: with_span(self._observer, kind, original)

    def _around_saving(self, patches: Patches) -> Callable[[ModuleType], None]:
        def attach(module: ModuleType) -> None:
            for name in ("save", "async_save"):
                patches.replace(module, name, self._around("checkpoint"))

        return attach

    def _attach_distributed(self, patches: Patches) -> None:
        from torch._C._distributed_c10d import Work
        from torch.distributed import _functional_collectives, device_mesh, distributed_c10d

        patches.replace(Work, "wait", self._waiting)
        patches.replace(_functional_collectives.AsyncCollectiveTensor, "trigger_wait", self._around("communicate"))
        joining = self._joining(distributed_c10d.init_process_group)
        for module in (distributed_c10d, dist, device_mesh):
            patches.replace(module, "init_process_group", lambda original: joining)

    def _waiting(self, original: Any) -> Any:
        waiting = with_span(self._observer, "communicate", original)

        @functools.wraps(original)
        def wait(work: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = waiting(work, *args, **kwargs)
            self._waited(work)
            return result

        return wait

    def _joining(self, original: Any) -> Any:
        @functools.wraps(original)
        def init_process_group(*args: Any, **kwargs: Any) -> None:
            if not self._observer.sees("startup"):
                return original(*args, **kwargs)
            with self._observer.span("startup", "rendezvous"):
                original(*args, **kwargs)
            self._joined()

        return init_process_group
