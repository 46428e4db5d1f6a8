"""The import directions of the architecture, held by walking every import in the package.

errors units identity layout catalog metrics guard host  ◀─ records
records ◀─ storage analyze reporting ◀─ data preflight ◀─ probe launch published ◀─ training studies ◀─ app ◀─ cli
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "paceline"
ROOTS = {"errors", "units", "identity", "layout", "catalog", "metrics", "guard", "host"}
MAY_IMPORT = {
    "records": set(),
    "storage": {"records"},
    "data": {"records", "storage"},
    "preflight": {"records", "storage"},
    "probe": {"preflight", "records", "storage"},
    "launch": {"preflight", "records", "storage"},
    "analyze": {"records"},
    "reporting": {"records"},
    "training": {"data", "preflight", "probe", "records", "storage"},
    "published": {"analyze", "records", "reporting", "storage"},
    "studies": {"data", "launch", "published", "records", "storage"},
    "rebuild": {"analyze", "published", "records", "reporting", "storage", "studies"},
    "app": {
        "analyze",
        "data",
        "launch",
        "published",
        "rebuild",
        "records",
        "reporting",
        "storage",
        "studies",
        "training",
    },
    "cli": {"analyze", "app", "data", "launch", "records", "reporting", "storage", "studies", "training"},
}
MAY_IMPORT_TORCH = {"training", "probe"}
# What has to run before torch is loaded.
TORCH_FREE = {
    "training/worker.py",
    "guard.py",
    *(f"probe/{name}.py" for name in ("recorder", "process_counters", "energy", "counter_sampler")),
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
def test_torch_is_imported_where_ranks_run_alone(path: Path) -> None:
    torch = {name for name in imports(path) if name.split(".")[0] == "torch"}
    relative = str(path.relative_to(SOURCE))
    if package_of(path) not in MAY_IMPORT_TORCH or relative in TORCH_FREE:
        assert not torch


def room_of(dotted: str) -> str:
    """The package of a module below `paceline`, with its sub-package where it has one."""
    parts = dotted.split(".")
    is_module = SOURCE.joinpath(*parts).with_suffix(".py").exists()
    return ".".join(parts[:2] if not is_module or len(parts) > 2 else parts[:1])


def test_no_two_packages_import_each_other() -> None:
    """Sub-packages included; a package and its own sub-packages are one room."""
    edges: set[tuple[str, str]] = set()
    for path in modules():
        own = path.relative_to(SOURCE).with_suffix("").parts
        here = ".".join(own[:2]) if len(own) > 2 else own[0]
        for name in imports(path):
            if name.startswith("paceline.") and (there := room_of(".".join(name.split(".")[1:-1]))):
                edges.add((here, there))
    both = {pair for pair in edges if pair[::-1] in edges and pair[0] < pair[1]}
    assert {(a, b) for a, b in both if not b.startswith(f"{a}.")} == set()


def test_every_package_has_its_rule() -> None:
    packages = {package_of(path) for path in modules()} - ROOTS - {"__init__", "__main__"}
    assert packages == set(MAY_IMPORT)


def test_only_the_command_line_and_the_public_names_import_app() -> None:
    importers = {package_of(path) for path in modules() if "app" in ours(path)}
    assert importers == {"__init__", "app", "cli"}


def test_one_launcher_never_imports_another() -> None:
    from paceline import catalog

    launchers = {entry.at.split(":")[0] for entry in catalog.ENTRIES["launcher"].values()}
    for name in launchers:
        path = SOURCE.parent / (name.replace(".", "/") + ".py")
        others = launchers - {name}
        assert not {i for i in imports(path) if any(i.startswith(other) for other in others)}


def test_analysis_reads_no_file_and_the_report_draws_no_conclusion_from_numpy() -> None:
    for path in (SOURCE / "analyze").rglob("*.py"):
        assert not imports(path) & {"pathlib.Path", "os", "pyarrow", "io"}, path
    for path in (SOURCE / "reporting").rglob("*.py"):
        assert not {name for name in imports(path) if name.split(".")[0] == "numpy"}, path


def test_every_catalog_entry_can_be_loaded_and_is_listed_once() -> None:
    code = (
        "from paceline import catalog\n"
        "for kind, entries in catalog.ENTRIES.items():\n"
        "    for name in entries: catalog.load(kind, name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def catalog_names() -> set[str]:
    from paceline import catalog

    return {name for entries in catalog.ENTRIES.values() for name in entries}


def constants(node: ast.expr) -> set[str]:
    """The strings of a constant, or of a literal collection of constants; of a dict, its keys."""
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else set()
    if isinstance(node, ast.Dict):
        return {text for key in node.keys if key is not None for text in constants(key)}
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return {text for element in node.elts for text in constants(element)}
    return set()


def called(node: ast.AST) -> str:
    """The name of what a node calls; empty for another node."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def name_breaches(tree: ast.AST, names: set[str]) -> list[int]:
    """Lines that ask for a name of the catalog where they should ask what its entry can do.

    A comparison with a name, with a collection that has one in it, or with the beginning or the end of one; and every
    literal collection of two names or more.
    """
    lines = []
    for node in ast.walk(tree):
        breach = False
        if isinstance(node, ast.Compare):
            breach = any(constants(side) & names for side in (node.left, *node.comparators))
        elif isinstance(node, ast.MatchValue):
            breach = bool(constants(node.value) & names)
        elif called(node) in ("startswith", "removeprefix"):
            parts = {text for argument in node.args for text in constants(argument) if len(text) > 2}
            breach = any(name.startswith(part) for name in names for part in parts)
        elif called(node) in ("endswith", "removesuffix"):
            parts = {text for argument in node.args for text in constants(argument) if len(text) > 2}
            breach = any(name.endswith(part) for name in names for part in parts)
        elif isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            breach = len(constants(node) & names) > 1
        if breach:
            lines.append(node.lineno)
    return lines


NOT_THE_CATALOG = {
    # Variables of the environment, by the program that sets them.
    "identity.py": {"local", "torchrun", "slurm"},
}
"""Strings that are not names of catalog entries in these modules, though they are spelled alike."""


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_entries_of_the_catalog_are_asked_what_they_can_do_and_not_for_their_names(path: Path) -> None:
    if package_of(path) == "catalog":
        return
    names = catalog_names() - NOT_THE_CATALOG.get(str(path.relative_to(SOURCE)), set())
    tree = ast.parse(path.read_text())
    assert name_breaches(tree, names) == []
    assert [node.lineno for node in ast.walk(tree) if called(node) == "hasattr"] == []


@pytest.mark.parametrize(
    ("code", "breaches"),
    [
        ('launcher != "local"', 1),
        ('strategy in ("ddp", "other")', 1),
        ('"mpi" == launcher', 1),
        ('strategy.startswith("mpi-")', 1),
        ('name.endswith(("-async", ".npz"))', 1),
        ('HERE = ("local", "mpi")', 1),
        ('KEYS = {"mpi": 1, "slurm": 2}', 1),
        ('match launcher:\n    case "ray": pass', 1),
        ('strategy = "ddp"', 0),
        ('read == "mpi-io"', 0),
        ('command = ["torchrun", "--standalone"]', 0),
        ("catalog.launcher(name).several_hosts", 0),
    ],
)
def test_names_that_are_asked_for_are_found(code: str, breaches: int) -> None:
    assert len(name_breaches(ast.parse(code), catalog_names())) == breaches
