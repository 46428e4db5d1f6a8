"""The worked examples of the documentation work: they are taken out of its pages and run."""

from __future__ import annotations

import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from doc_pages import Block, blocks, parsed, shell_lines

from image_files import write_folder
from light_launch import HOST, launch, light, manifest, point
from paceline import catalog
from paceline.app import study_loading
from paceline.cli.options import divided, whole_numbers
from paceline.data.store import prepare
from paceline.errors import RankError
from paceline.launch.local import LocalLauncher
from paceline.rebuild import rebuild
from paceline.records.settings import DataSettings
from paceline.studies.collect import collect
from paceline.studies.execute import execute
from paceline.studies.load import load_study
from paceline.studies.toml_text import toml_value

TOML = blocks("toml")
OWN_MODELS = [
    model
    for block in TOML
    if (model := tomllib.loads(block.text).get("model", {})).get("name", "").endswith(".py:build")
]
# The strategy is in the catalog of this process and of each rank's, as its line in catalog.py would have it.
RANK = """
import sys
from paceline import catalog
catalog.ENTRIES["strategy"]["each"] = ("each:Each", "")
from paceline.train.worker import main
sys.exit(main())
"""
STUDY = """
[study]
name = "gate"
[data]
dataset = "digits"
train_samples = 601
[model]
name = "cnn-small"
dropout = 0.0
dense_dropout = 0.0
[train]
lr = 0.002
batch_global = 40
epochs = 4
precision = "float64"
[run]
ranks = [1, 2]
repeats = 1
strategy = "each"
"""


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

    from paceline.train.models.build import build_model

    name, options = model["name"], {key: value for key, value in model.items() if key != "name"}
    built = build_model(name, options, shape=(16, 16, 1), classes=4, model_file=workspace / name.removesuffix(":build"))
    assert built(torch.zeros(2, 1, 16, 16)).shape == (2, 4)


def test_the_arrays_of_the_quickstart_are_a_data_set(workspace: Path) -> None:
    found = prepare(DataSettings(dataset="stripes.npz"), base=workspace, cache=workspace / "cache").dataset
    assert (found.train, found.test, found.shape, found.classes, found.dtype) == (2500, 500, (16, 16, 1), 4, "float32")


def test_the_example_strategy_trains_like_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two real ranks, uneven shares, a last step with a single sample: the losses of one, and equal bits."""
    (tmp_path / "each.py").write_text(example("src/paceline/train/parallel/each.py"))
    (tmp_path / "rank.py").write_text(RANK)
    (tmp_path / "gate.toml").write_text(STUDY)
    monkeypatch.setitem(catalog.ENTRIES["strategy"], "each", ("each:Each", ""))
    launcher = LocalLauncher((sys.executable, str(tmp_path / "rank.py")))
    out = tmp_path / "out"
    done = execute(
        load_study(tmp_path / "gate.toml"), out, launcher=launcher, preflight=False, cache=tmp_path / "cache"
    )
    assert (done.ran, done.failures) == (2, {})  # ranks that end with different weights are a failure
    one, two = (run.result for run in collect(out).runs)
    assert (one.ranks, two.ranks, two.steps) == (1, 2, 64)
    for alone, shared in zip(one.epochs, two.epochs, strict=True):
        assert shared.train_loss == pytest.approx(alone.train_loss, rel=1e-9)
    assert two.test_loss == pytest.approx(one.test_loss, rel=1e-9)
    assert one.epochs[-1].train_loss < one.epochs[0].train_loss / 2, "nothing was learned, so nothing was compared"
    ledger_s = rebuild(out)[0].points[1].ledger_s or {}
    assert (ledger_s["comm-transfer"] or 0) > 0, "its messages are not in the ledger"


@pytest.fixture
def nice(tmp_path: Path):
    """The launcher of the page, imported from it."""
    path = tmp_path / "nice_launcher.py"
    path.write_text(example("src/paceline/launch/nice.py"))
    return runpy.run_path(str(path))["NiceLauncher"]


def test_the_example_launcher_brings_the_reports_of_its_ranks(nice, tmp_path: Path) -> None:
    where = point(2)
    launcher = nice(light("--steps", 20))
    assert launcher.placement(where).cores is None
    outcome = launch(tmp_path / "run", manifest(where), launcher)
    assert [(report.rank, report.status, report.steps) for report in outcome.reports] == [
        (0, "done", 20),
        (1, "done", 20),
    ]


def test_the_example_launcher_names_a_rank_that_fails(nice, tmp_path: Path) -> None:
    with pytest.raises(RankError, match=f"^Rank 1 of 3 on {HOST} failed after step 5 of 20 .*ValueError: told to fail"):
        launch(tmp_path / "run", manifest(point(3)), nice(light("--who", 1, "--what", "raise")))
