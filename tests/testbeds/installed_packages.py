"""Packages beside Paceline that register entries of the catalog, without an installer."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from paceline.catalog import outside


def write_package(folder: Path, module: str, code: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    """A package as an installer leaves it: one module, and metadata with its entry points by group."""
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{module}.py").write_text(code)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines: list[str] = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{name} = {at}" for name, at in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Let this process find the packages of a folder, and forget them afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    _forget()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
        _forget()


def _forget() -> None:
    importlib.invalidate_caches()
    outside.registered.cache_clear()
    outside.imported.cache_clear()
