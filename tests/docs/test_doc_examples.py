"""The worked examples of the documentation work: they are taken out of its pages and run."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from doc_pages import Block, blocks, parsed, shell_lines

from paceline.app import study_loading
from paceline.cli.options import divided, whole_numbers
from paceline.data.store import prepare
from paceline.records.settings import DataSettings
from paceline.studies.load.load import load_study
from paceline.studies.load.toml_text import toml_value
from samples.image_files import write_folder

TOML = blocks("toml")
OWN_MODELS = [
    model
    for block in TOML
    if (model := tomllib.loads(block.text).get("model", {})).get("name", "").endswith(".py:build")
]


def example(name: str) -> str:
    """The text of the one block that is a file of this name."""
    (found,) = [block for block in blocks("python", "toml") if block.file == name]
    return found.text


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every file that the pages tell their reader to make."""
    for block in blocks("python", "toml"):
        if block.file is not None and not block.file.startswith("src/"):
            (tmp_path / block.file).write_text(block.text)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("make_arrays.py")
    write_folder(tmp_path / "photos", {"daisy": 4, "roses": 4})
    return tmp_path


@pytest.mark.parametrize("block", TOML, ids=str)
def test_every_study_file_loads(workspace: Path, block: Block) -> None:
    """Parts of one take the place of the same sections of the quickstart's study."""
    tables = tomllib.loads(block.text)
    if "study" not in tables:
        tables = tomllib.loads(example("my-study.toml")) | tables
    lines = [
        f"[{name}]\n" + "".join(f"{k} = {toml_value(v)}\n" for k, v in table.items()) for name, table in tables.items()
    ]
    (workspace / "whole.toml").write_text("".join(lines))
    assert load_study("whole.toml").study.name == tables["study"]["name"]


@pytest.mark.parametrize(
    "words",
    [words for _, words in shell_lines() if words[:2] in (["paceline", "study"], ["paceline", "train"])],
    ids=" ".join,
)
def test_every_study_that_a_command_names_loads_with_its_overrides(workspace: Path, words: list[str]) -> None:
    _, given = parsed(words)
    ranks = given.get("ranks")
    options = {
        "ranks": whole_numbers("--ranks", ranks) if isinstance(ranks, str) else ranks,
        "repeats": given.get("repeats"),
        "set": given.get("overrides"),
    }
    if "script" in given:
        own, theirs = divided([given.get("study", "--"), *given.get("arguments", ())])
        assert not own
        assert study_loading.load_script(given["script"], theirs, **options).study.name
        return
    assert study_loading.load(given.get("study", "mnist-scaling"), **options).study.name


@pytest.mark.parametrize("model", OWN_MODELS, ids=lambda model: model["name"])
def test_the_models_of_the_pages_build_and_fit(workspace: Path, model: dict[str, Any]) -> None:
    import torch

    from paceline.training.models.build_model import build_model

    name, options = model["name"], {key: value for key, value in model.items() if key != "name"}
    built = build_model(name, options, shape=(16, 16, 1), classes=4, model_file=workspace / name.removesuffix(":build"))
    assert built(torch.zeros(2, 1, 16, 16)).shape == (2, 4)


def test_the_arrays_of_the_quickstart_are_a_data_set(workspace: Path) -> None:
    found = prepare(DataSettings(dataset="stripes.npz"), base=workspace, cache=workspace / "cache").dataset
    assert (found.train, found.test, found.shape, found.classes, found.dtype) == (2500, 500, (16, 16, 1), 4, "float32")
