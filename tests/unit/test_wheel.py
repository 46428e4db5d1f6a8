"""What is installed from a wheel: everything that the package has, and no pointer to what only a checkout has."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import paceline

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "paceline"
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
ONLY_IN_A_CHECKOUT = re.compile(r"\b(docs|tests|bench)/|\b(README|CONTRIBUTING|CHANGELOG|Makefile|constraints\.txt)\b")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built of a copy, so that nothing is left in the checkout; without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(SOURCE, folder / "src" / "paceline", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run([sys.executable, "-c", BUILD, "dist"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = (folder / "dist").glob("*.whl")
    return built


def test_every_file_of_the_package_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path for path in SOURCE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert held == {path.relative_to(SOURCE.parent).as_posix() for path in files}


def test_the_version_of_the_wheel_is_the_package_s(wheel: Path) -> None:
    assert wheel.name.startswith(f"paceline-{paceline.__version__}-")


def _texts(path: Path) -> Iterator[str]:
    """String literals of a module; docstrings only in cli, where they are the help of verbs."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        shown = "cli" in path.parts or id(node) not in docstrings
        if shown and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_nothing_that_is_printed_points_to_a_file_of_a_checkout() -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {text}"
        for path in SOURCE.rglob("*.py")
        for text in _texts(path)
        if ONLY_IN_A_CHECKOUT.search(text)
    }
    assert not found
