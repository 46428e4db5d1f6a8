"""Lists in `[model]`: several values to vary, or one value that is a list."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline import catalog
from paceline.errors import StudyFileError
from paceline.studies.load.load import load_study
from paceline.studies.load.model_factors import ONE, SEVERAL, UNCLEAR, meaning
from paceline.studies.load.toml_text import study_toml

BASE = '[study]\nname = "s"\n[train]\nbatch_global = 8\nepochs = 1\n[model]\n'
OWN = """
def build(shape, classes, first=3, *, width=64, sizes=(64, 32), rates=[0.1], depth: int, layers: list[int],
          hidden: "Sequence[int] | None" = None, off=None, sign=-1, odd: dict = None, unsaid):
    return None

def anything(**options):
    return None

made = build
"""


@pytest.fixture
def load(tmp_path: Path):
    def load(lines: str, *overrides: str):
        path = tmp_path / "s.toml"
        path.write_text(BASE + lines)
        (tmp_path / "net.py").write_text(OWN)
        return load_study(path, overrides).study

    return load


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("first", SEVERAL),
        ("width", SEVERAL),
        ("sign", SEVERAL),
        ("depth", SEVERAL),
        ("sizes", ONE),
        ("rates", ONE),
        ("layers", ONE),
        ("hidden", ONE),
        ("off", UNCLEAR),
        ("odd", UNCLEAR),
        ("unsaid", UNCLEAR),
        ("unknown", ONE),  # refused when the model is built, as ever
    ],
)
def test_a_function_of_ones_own_says_what_a_list_is(tmp_path: Path, key: str, expected: str) -> None:
    (tmp_path / "net.py").write_text(OWN)
    assert meaning(key, ["net.py:build"], tmp_path) == expected


def test_of_the_catalog_a_list_is_one_value_where_the_default_is(load) -> None:
    study = load("name = 'mlp'\nneurons = [32, 128]\nlayers = 2\n")
    assert study.vary == {"model.neurons": (32, 128)} and study.model.options == {"neurons": 32, "layers": 2}
    head = load("name = 'resnet50'\nhead = [20]\nimage_size = [64, 128]\n")
    assert head.vary == {"model.image_size": (64, 128)} and head.model.options == {"head": [20], "image_size": 64}


def test_the_options_of_the_catalog_are_those_of_its_functions() -> None:
    """What is known without importing torch has to be what the functions take."""
    import inspect

    for name in catalog.names("model"):
        parameters = inspect.signature(catalog.load("model", name)).parameters.values()
        own = {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
        known = catalog.model(name).options
        assert known is not None and {k: list(v) if isinstance(v, tuple) else v for k, v in own.items()} == known


def test_lists_of_ones_own_model_are_divided_and_what_is_unclear_is_refused(load) -> None:
    study = load("name = 'net.py:build'\nwidth = [8, 16]\nsizes = [4, 2]\n")
    assert study.vary == {"model.width": (8, 16)} and study.model.options == {"width": 8, "sizes": [4, 2]}
    with pytest.raises(StudyFileError) as caught:
        load("name = 'net.py:anything'\nwidth = [8, 16]\n")
    assert (
        'model.width = [8, 16]: is it one value, or 2 to vary? "net.py:anything" does not say: give its parameter a '
        "default, width=(1, 2) for a list, width=1 to have it varied." in str(caught.value)
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("name = 'mlp'\nneurons = []\n", "model.neurons = []: must name at least one value."),
        ("name = 'mlp'\nneurons = [32, 32]\n", "model.neurons = [32, 32]: each value may stand there once."),
        ("name = 'mlp'\nneurons = [[1], [2]]\n", "model.neurons = [[1], [2]]: each must be a number, text, true"),
        ("name = ['mlp', 'cnn-small']\nwidth = 3\n", "model.width = 3: none of mlp, cnn-small takes it."),
        ("name = ['mlp', 'mpl']\n", 'model.name = "mpl": there is no such model. Did you mean "mlp"?'),
        ("name = []\n", "model.name = []: must name at least one value."),
    ],
)
def test_one_mistake_gets_one_sentence(load, lines: str, said: str) -> None:
    with pytest.raises(StudyFileError) as caught:
        load(lines)
    assert "has 1 mistake:" in str(caught.value) and said in str(caught.value)


def test_models_and_data_sets_may_be_varied_and_found_again(load, tmp_path: Path) -> None:
    study = load("name = ['mlp', 'cnn-small']\n[data]\ndataset = ['digits', 'mnist']\n")
    assert study.vary == {"model.name": ("mlp", "cnn-small"), "data.dataset": ("digits", "mnist")}
    (tmp_path / "again.toml").write_text(study_toml(study))
    assert load_study(tmp_path / "again.toml").study == study


@pytest.mark.parametrize(
    ("override", "path", "values"),
    [
        ("model.neurons=32,128", "model.neurons", (32, 128)),
        ("model.neurons=[32, 128]", "model.neurons", (32, 128)),
        ("model.dropout=0.1,0.5", "model.dropout", (0.1, 0.5)),
        ("model.name=mlp,cnn-small", "model.name", ("mlp", "cnn-small")),
        ("data.dataset=digits,mnist", "data.dataset", ("digits", "mnist")),
    ],
)
def test_they_may_be_given_on_the_command_line(load, override: str, path: str, values: tuple) -> None:
    assert load("name = 'mlp'\n", override).vary == {path: values}


def test_a_file_with_a_comma_in_its_name_is_one_file(load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a,b.npz").touch()
    monkeypatch.chdir(tmp_path)
    assert load("name = 'mlp'\n", "data.dataset=a,b.npz").data.dataset == str(tmp_path / "a,b.npz")
