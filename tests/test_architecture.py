"""The import directions of the architecture, held by walking every import in the package.

errors units identity layout catalog guard host  ◀─ records
records ◀─ data probe launch analyze report ◀─ published train studies ◀─ api cli
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "paceline"
ROOTS = {"errors", "units", "identity", "layout", "catalog", "guard", "host"}
MAY_IMPORT = {
    "records": set(),
    "data": {"records"},
    "probe": {"records"},
    "launch": {"records"},
    "analyze": {"records"},
    "report": {"records"},
    "train": {"data", "probe", "records"},
    "published": {"analyze", "report", "records"},
    "studies": {"data", "launch", "published", "records"},
    "rebuild": {"analyze", "published", "report", "studies", "records"},
    "api": {"rebuild", "data", "launch", "analyze", "report", "studies", "records"},
    "cli": {"api", "data", "launch", "analyze", "report", "studies", "train", "records"},
}
MAY_IMPORT_TORCH = {"train", "probe"}
# Inside train/, what has to run before torch is loaded.
TORCH_FREE = {
    "train/worker.py",
    "guard.py",
    *(f"probe/{name}.py" for name in ("recorder", "process", "energy", "counters")),
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def package_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports(path: Path, *, at_top: bool = False) -> set[str]:
    """Dotted names of all that a module imports; `at_top` leaves out what functions import."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if at_top else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(path: Path) -> set[str]:
    """Packages of Paceline that a module imports."""
    names = {name.split(".")[1] for name in imports(path) if name.startswith("paceline.")}
    return names - {"__version__"}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_import_directions(path: Path) -> None:
    package = package_of(path)
    if package in {"__init__", "__main__"}:
        return
    allowed = ROOTS | {package} | MAY_IMPORT.get(package, set())
    assert ours(path) <= allowed, f"{package} may not import {sorted(ours(path) - allowed)}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_torch_is_imported_in_train_and_probe_alone(path: Path) -> None:
    torch = {name for name in imports(path) if name.split(".")[0] == "torch"}
    relative = str(path.relative_to(SOURCE))
    if package_of(path) not in MAY_IMPORT_TORCH or relative in TORCH_FREE:
        assert not torch


def test_every_package_has_its_rule() -> None:
    packages = {package_of(path) for path in modules()} - ROOTS - {"__init__", "__main__"}
    assert packages == set(MAY_IMPORT)


def test_one_launcher_never_imports_another() -> None:
    from paceline import catalog

    launchers = {entry[0].split(":")[0] for entry in catalog.ENTRIES["launcher"].values()}
    for name in launchers:
        path = SOURCE.parent / (name.replace(".", "/") + ".py")
        others = launchers - {name}
        assert not {i for i in imports(path) if any(i.startswith(other) for other in others)}


def test_analysis_reads_no_file_and_the_report_draws_no_conclusion_from_numpy() -> None:
    for path in (SOURCE / "analyze").rglob("*.py"):
        assert not imports(path) & {"pathlib.Path", "os", "pyarrow", "io"}, path
    for path in (SOURCE / "report").rglob("*.py"):
        assert not {name for name in imports(path) if name.split(".")[0] == "numpy"}, path


def test_every_catalog_entry_can_be_loaded_and_is_listed_once() -> None:
    code = (
        "from paceline import catalog\n"
        "for kind, entries in catalog.ENTRIES.items():\n"
        "    for name in entries: catalog.load(kind, name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
