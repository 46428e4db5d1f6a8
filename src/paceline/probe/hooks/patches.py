"""Replaces attributes of other packages and restores them; waits for packages that are imported later.

patches.replace(torch, "save", make)                       make(original) -> the replacement
patches.when_imported("keras.src.models.model", attach)    attach(module), now or right after its import
patches.undo()
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

_MISSING = object()


class Patches:
    """The replaced attributes, in order."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []
        self._finder = _Finder()

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace an attribute by `make(original)`; inherited attributes are overridden, not changed."""
        own = vars(owner).get(name, _MISSING)
        self._replaced.append((owner, name, own))
        setattr(owner, name, make(getattr(owner, name)))

    def when_imported(self, name: str, attach: Callable[[ModuleType], None]) -> None:
        """Call `attach` with a module as soon as it is imported, before its importers use it."""
        if name in sys.modules:
            attach(sys.modules[name])
            return
        self._finder.awaited[name] = attach
        if self._finder not in sys.meta_path:
            sys.meta_path.insert(0, self._finder)

    def undo(self) -> None:
        """Restore all attributes, the last first."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        for owner, name, own in reversed(self._replaced):
            if own is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
        self._replaced.clear()


class _Finder(importlib.abc.MetaPathFinder):
    """Finds awaited modules as other finders would, and wraps their loader."""

    def __init__(self) -> None:
        self.awaited: dict[str, Callable[[ModuleType], None]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        attach = self.awaited.pop(fullname, None)
        if attach is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, attach)
        return spec


class _Loader(importlib.abc.Loader):
    """The loader of a module; calls `attach` after the import."""

    def __init__(self, loader: Any, attach: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._attach = attach

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        # Code that uses the loader of a module (for resources, or its source) gets the original one.
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._attach(module)
