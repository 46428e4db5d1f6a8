"""Forward passes: the calls of the models that the script's optimizers train, and of no module inside them.

Torch's own hooks would do, but a global one is asked at every call of every module, and any is traced into a compiled
graph. Instead the instance attribute `_compiled_call_impl` is set, which `nn.Module.__call__` looks at before anything
else: a call of the model goes through `_Call`, a call of what is inside costs nothing, and a compiler, which goes
straight to `forward`, never meets it.

    optimizer made                       the modules that own its parameters and are in no other (a look at the heap)
    DDP(model), torch.compile(model)     the new one instead of the old
    a step without any forward pass      the children instead of their parent, which is never called itself
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
from paceline.probe.hooks.steps import Steps, first_tensor

_SLOT = "_compiled_call_impl"
_DEEPEST = 4
_NAMES = {
    "DistributedDataParallel": "DDP",
    "FSDPModule": "FSDP2",
    "FullyShardedDataParallel": "FSDP",
    "OptimizedModule": "torch.compile",
    "LightningModule": "Lightning",
}
# Modules that hold others and are not called themselves, or not always.
_HOLDERS = ("ModuleList", "ModuleDict", "LightningModule")


class Models:
    """The models of a script that are watched."""

    def __init__(self, observer: Observer, steps: Steps) -> None:
        self._observer = observer
        self._steps = steps
        self._watched: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._asked: weakref.WeakSet[Any] = weakref.WeakSet()
        self._owned: set[int] = set()
        self._depth = 0
        self.seen = False
        """Whether any forward pass was, in training or not."""
        self.device = "cpu"

    def attach(self, patches: Patches) -> None:
        """Follow models into what wraps them."""
        patches.replace(nn.parallel.DistributedDataParallel, "__init__", self._wrapping)
        patches.replace(torch, "compile", self._compiling)
        patches.replace(nn.Module, "compile", self._compiling_in_place)
        patches.replace(nn.Module, "_replicate_for_data_parallel", _without_call)

    def detach(self) -> None:
        """Leave all models as they were."""
        for module in list(self._watched):
            self._leave(module)

    def trained_by(self, optimizer: Any) -> None:
        """Watch the models that own what an optimizer trains, the first time that it is seen."""
        if optimizer in self._asked or getattr(optimizer, "param_groups", None) is None:
            return
        self._asked.add(optimizer)
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
        """A step has gone by without a forward pass: what is called must be further inside."""
        # A module that is part of a compiled graph must be left as it was when it was compiled.
        if self.seen or self._depth >= _DEEPEST or _compiled_anything():
            return
        self._depth += 1
        for module in list(self._watched):
            if not isinstance(module, _Loss):
                self._leave(module)
                self._watch_all(each for child in module.children() for each in _called(child))

    def call(self, module: nn.Module, inner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a model, in a span of its own where it is the outermost."""
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
        """See every call of a module."""
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

    def _leave(self, module: nn.Module) -> None:
        self._watched.discard(module)
        own = vars(module).get(_SLOT)
        if isinstance(own, _Call):
            del vars(module)[_SLOT]
            if own.compiled is not None:
                vars(module)[_SLOT] = own.compiled

    def _moved(self, outer: nn.Module) -> None:
        """A module now wraps others: it is called instead of them."""
        for module in outer.modules():
            if module is not outer and module in self._watched:
                self._leave(module)
        self.watch(outer)

    def _wrapping(self, original: Any) -> Any:
        @functools.wraps(original)
        def __init__(module: nn.Module, /, *args: Any, **kwargs: Any) -> None:
            original(module, *args, **kwargs)
            if not self._observer.silent:
                self._moved(module)

        return __init__

    def _compiling(self, original: Any) -> Any:
        @functools.wraps(original)
        def compile(model: Any = None, **options: Any) -> Any:
            result = original(model, **options)
            if not self._observer.silent:
                self._observer.recognise("torch.compile")
                if isinstance(result, nn.Module) and result is not model:
                    self._moved(result)
            return result

        return compile

    def _compiling_in_place(self, original: Any) -> Any:
        @functools.wraps(original)
        def compile(module: nn.Module, /, *args: Any, **options: Any) -> None:
            was_watched = module in self._watched
            self._leave(module)
            original(module, *args, **options)
            if was_watched:
                self._moved(module)

        return compile


class _Call:
    """What a watched module is called through. Copies and pickles as nothing: a copy of the module is another one."""

    __slots__ = ("_models", "_module", "compiled")

    def __init__(self, models: Models, module: nn.Module, compiled: Any) -> None:
        self._models = models
        self._module = weakref.ref(module)  # a strong one would keep the model from being freed when it is dropped
        self.compiled = compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module = self._module()
        assert module is not None, "whoever calls a module holds it"
        inner = self.compiled or module._call_impl
        if is_compiling():
            return inner(*args, **kwargs)
        return self._models.call(module, inner, args, kwargs)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(None), ()


def _modules() -> list[nn.Module]:
    """Every module in memory; 0.16 s for 290,000 objects."""
    # By type, not isinstance: proxies among the objects would be asked what they pretend to be.
    return [each for each in gc.get_objects() if issubclass(type(each), nn.Module) and "_modules" in vars(each)]


def _roots(modules: list[nn.Module], trained: Iterable[int]) -> list[nn.Module]:
    """Those that own parameters with these numbers and are in no other module."""
    trained = set(trained)
    inside = {id(child) for module in modules for child in module._modules.values()}
    return [each for each in modules if id(each) not in inside and any(id(p) in trained for p in each.parameters())]


def _called(module: nn.Module) -> Iterator[nn.Module]:
    """What is called when a script uses a module: itself, or what it holds."""
    names = {cls.__name__ for cls in type(module).__mro__}
    if not names & {"ModuleList", "ModuleDict"}:
        yield module
    if names & set(_HOLDERS):
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
    """Whether a graph was compiled in this process; asks nothing where the compiler was never loaded."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["frames"])
