"""Forward passes: calls of the models that the script's optimizers train, without the modules inside them.

A global hook of torch would run at every call of every module, and hooks are traced into compiled graphs. Instead the
instance attribute `_compiled_call_impl` is set, which `nn.Module.__call__` reads first. A call of the model runs
`_Call`, calls of inner modules cost nothing, and a compiler, which calls `forward` directly, does not see it.

    optimizer created                    watch the outermost modules that own its parameters (found on the heap)
    DDP(model), torch.compile(model)     watch the new module instead of the old one
    a step without any forward pass      watch the children instead of their parent, which is never called itself
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.compiler import is_compiling
from torch.nn.modules.loss import _Loss

from paceline.probe.hooks.observer import Observer
from paceline.probe.hooks.patches import Patches
from paceline.probe.hooks.step_hooks import Steps, first_tensor

_SLOT = "_compiled_call_impl"
_DEEPEST = 4
_NAMES = {
    "DistributedDataParallel": "DDP",
    "FSDPModule": "FSDP2",
    "FullyShardedDataParallel": "FSDP",
    "OptimizedModule": "torch.compile",
    "LightningModule": "Lightning",
}
# Modules that contain others and are never called, or not always.
_CONTAINERS = ("ModuleList", "ModuleDict", "LightningModule")


class Models:
    """The watched models of a script."""

    def __init__(self, observer: Observer, steps: Steps) -> None:
        self._observer = observer
        self._steps = steps
        self._watched: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._owned: set[int] = set()
        self._depth = 0
        self.seen = False
        """Whether there was any forward pass, in training or not."""
        self.device = "cpu"

    def attach(self, patches: Patches) -> None:
        """Install hooks on everything that wraps models."""
        patches.replace(nn.parallel.DistributedDataParallel, "__init__", self._wrapping)
        patches.replace(torch, "compile", self._compiling)
        patches.replace(nn.Module, "compile", self._compiling_in_place)
        patches.replace(nn.Module, "_replicate_for_data_parallel", _without_call)

    def detach(self) -> None:
        """Restore all models."""
        for module in list(self._watched):
            self._unwatch(module)

    def trained_by(self, optimizer: Any) -> None:
        """Watch the models that own the parameters of an optimizer; does nothing for a known optimizer."""
        if optimizer in self._optimizers or getattr(optimizer, "param_groups", None) is None:
            return
        self._optimizers.add(optimizer)
        trained = {id(p): p for group in optimizer.param_groups for p in group["params"]}
        if any(p.is_cuda for p in trained.values()):
            self.device = "cuda"
        if trained.keys() <= self._owned:
            return
        modules = _modules()
        for module in _roots(modules, trained.keys()):
            self._owned.update(map(id, module.parameters()))
            self._watch_all(_called(module))
        self._watch_all(each for each in modules if isinstance(each, _Loss))

    def look_deeper(self) -> None:
        """After a step without a forward pass: watch the children, because the called modules are further inside."""
        # A module that is part of a compiled graph must not be changed.
        if self.seen or self._depth >= _DEEPEST or _compiled_anything():
            return
        self._depth += 1
        for module in list(self._watched):
            if not isinstance(module, _Loss):
                self._unwatch(module)
                self._watch_all(each for child in module.children() for each in _called(child))

    def call(self, module: nn.Module, inner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a model, with a span if it is the outermost one."""
        observer = self._observer
        tensor = first_tensor((args, kwargs)) if observer.sees("forward") else None
        if tensor is None or tensor.is_meta:
            return inner(*args, **kwargs)
        training = module.training and torch.is_grad_enabled()
        if not isinstance(module, _Loss):
            self.seen = True
            if training:
                self._steps.passes(id(module), args, kwargs)
        with observer.span("forward" if training else "evaluate"):
            return inner(*args, **kwargs)

    def watch(self, module: nn.Module) -> None:
        """Observe every call of a module."""
        for cls in type(module).__mro__:
            if cls.__name__ in _NAMES:
                self._observer.recognise(_NAMES[cls.__name__])
        own = vars(module).get(_SLOT)
        if not isinstance(own, _Call) and not isinstance(module, torch.jit.ScriptModule):
            vars(module)[_SLOT] = _Call(self, module, own)
            self._watched.add(module)

    def _watch_all(self, modules: Iterable[nn.Module]) -> None:
        for module in modules:
            self.watch(module)

    def _unwatch(self, module: nn.Module) -> None:
        self._watched.discard(module)
        own = vars(module).get(_SLOT)
        if isinstance(own, _Call):
            del vars(module)[_SLOT]
            if own.compiled is not None:
                vars(module)[_SLOT] = own.compiled

    def _watch_outer(self, outer: nn.Module) -> None:
        """Watch a module instead of those that it wraps."""
        for module in outer.modules():
            if module is not outer and module in self._watched:
                self._unwatch(module)
        self.watch(outer)

    def _wrapping(self, original: Any) -> Any:
        @functools.wraps(original)
        def __init__(module: nn.Module, /, *args: Any, **kwargs: Any) -> None:
            original(module, *args, **kwargs)
            if not self._observer.silent:
                self._watch_outer(module)

        return __init__

    def _compiling(self, original: Any) -> Any:
        @functools.wraps(original)
        def compile(model: Any = None, **options: Any) -> Any:
            result = original(model, **options)
            if not self._observer.silent:
                self._observer.recognise("torch.compile")
                if isinstance(result, nn.Module) and result is not model:
                    self._watch_outer(result)
            return result

        return compile

    def _compiling_in_place(self, original: Any) -> Any:
        @functools.wraps(original)
        def compile(module: nn.Module, /, *args: Any, **options: Any) -> None:
            was_watched = module in self._watched
            self._unwatch(module)
            original(module, *args, **options)
            if was_watched:
                self._watch_outer(module)

        return compile


class _Call:
    """The call of a watched module. It copies and pickles as None: a copy of the module is not watched."""

    __slots__ = ("_models", "_module", "compiled")

    def __init__(self, models: Models, module: nn.Module, compiled: Any) -> None:
        self._models = models
        self._module = weakref.ref(module)  # a strong reference would keep the model alive
        self.compiled = compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module = self._module()
        assert module is not None, "the caller of a module holds a reference"
        inner = self.compiled or module._call_impl
        if is_compiling():
            return inner(*args, **kwargs)
        return self._models.call(module, inner, args, kwargs)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(None), ()


def _modules() -> list[nn.Module]:
    """Every module in memory; 0.16 s for 290,000 objects."""
    # By type, not isinstance, which would run code of proxy objects.
    return [each for each in gc.get_objects() if issubclass(type(each), nn.Module) and "_modules" in vars(each)]


def _roots(modules: list[nn.Module], trained: Iterable[int]) -> list[nn.Module]:
    """The outermost modules that own parameters with these ids."""
    trained = set(trained)
    inside = {id(child) for module in modules for child in module._modules.values()}
    return [each for each in modules if id(each) not in inside and any(id(p) in trained for p in each.parameters())]


def _called(module: nn.Module) -> Iterator[nn.Module]:
    """The modules that a script calls when it uses a module: itself, or its children."""
    names = {cls.__name__ for cls in type(module).__mro__}
    if not names & {"ModuleList", "ModuleDict"}:
        yield module
    if names & set(_CONTAINERS):
        for child in module.children():
            yield from _called(child)


def _without_call(original: Any) -> Any:
    @functools.wraps(original)
    def replicate(module: nn.Module) -> nn.Module:
        replica = original(module)
        if isinstance(vars(replica).get(_SLOT), _Call):
            del vars(replica)[_SLOT]
        return replica

    return replicate


def _compiled_anything() -> bool:
    """Whether a graph was compiled in this process; does not import the compiler."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["frames"])
