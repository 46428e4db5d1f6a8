from pathlib import Path

import pytest

from paceline.errors import StudyFileError
from paceline.studies.load.load import load_study

FILE = """
[study]
name = "s"
[train]
batch_global = 8
epochs = 1
"""


@pytest.fixture
def study(tmp_path: Path):
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    return lambda *overrides: load_study(path, overrides).study


def test_values_are_read_as_toml(study) -> None:
    changed = study("train.lr=0.5", "run.ranks=[1, 4]", "run.pin=false", "model.widths=[1, 2]", 'study.title="a = b"')
    assert (changed.train.lr, changed.run.ranks, changed.run.pin) == (0.5, (1, 4), False)
    assert changed.model.options == {"widths": [1, 2]} and changed.title == "a = b"


def test_text_needs_no_quotes(study) -> None:
    changed = study("run.strategy=flat", "study.name=2024", "study.question=is 1 = 1?", "model.kind=wide")
    assert (changed.run.strategy, changed.name, changed.question) == ("flat", "2024", "is 1 = 1?")
    assert changed.model.options == {"kind": "wide"}


def test_lists_need_no_brackets(study) -> None:
    assert study("run.ranks=1,2,4").run.ranks == (1, 2, 4)
    assert study("run.ranks=4").run.ranks == (4,)


def test_values_of_python_are_taken_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    assert load_study(path, values={"train.lr": 0.5}).study.train.lr == 0.5


def test_the_last_of_two_overrides_holds(study) -> None:
    assert study("train.lr=0.5", "train.lr=0.25").train.lr == 0.25


def test_an_override_takes_the_place_of_its_rival(study) -> None:
    changed = study("train.steps=7", "train.batch_per_rank=4")
    assert (changed.train.epochs, changed.train.steps) == (None, 7)
    assert (changed.train.batch_global, changed.train.batch_per_rank, changed.run.scaling) == (None, 4, "weak")
    with pytest.raises(StudyFileError, match="both given"):
        study("train.steps=7", "train.epochs=2")


def test_a_value_cannot_smuggle_in_another_key(study) -> None:
    assert study("study.title=1\nquestion = 'x'").question == ""
    with pytest.raises(StudyFileError, match=r"train.lr = \"1\\nseed = 3\": must be a number"):
        study("train.lr=1\nseed = 3")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("train.lrr=1", "train.lrr: there is no such key. Did you mean train.lr?"),
        ("trian.lr=1", "[trian]: there is no such section. Did you mean [train]?"),
        ("lr=1", "--set lr=1: no section is named. Did you mean train.lr=1?"),
        ("zzz=1", "--set zzz=1: no section is named. It has to begin with a section"),
        ("train.lr", "--set train.lr: must be section.key=value"),
        ("=1", "--set =1: must be section.key=value"),
        ("train.lr=", 'train.lr = "": must be a number.'),
        ("train.lr=fast", 'train.lr = "fast": must be a number.'),
        ("train.lr=nan", "train.lr = nan: must be a finite number above 0."),
        ("run.ranks=1,x", 'run.ranks = "[1,x]": must be a list of whole numbers.'),
        ("train.seed.x=1", "train.seed.x: there is no such key."),
    ],
)
def test_wrong_overrides_get_a_sentence(study, override: str, said: str) -> None:
    with pytest.raises(StudyFileError) as caught:
        study(override)
    assert said in caught.value.what and "has 1 mistake:" in caught.value.what


def test_a_misspelt_name_hides_no_other_mistake(study) -> None:
    with pytest.raises(StudyFileError) as caught:
        study("train.lr=nan", "tran.x=1", "tran.y=2", "run.repeat=3", "run.repeats=0")
    assert caught.value.what.splitlines()[1:] == [
        "  [tran]: there is no such section. Did you mean [train]?",
        "  run.repeat: there is no such key. Did you mean run.repeats?",
        "  train.lr = nan: must be a finite number above 0.",
        "  run.repeats = 0: must be from 1 to 10000.",
    ]
    assert "has 4 mistakes:" in caught.value.what


def test_a_file_named_on_the_command_line_lies_where_the_command_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").touch()
    (tmp_path / "x.npz").touch()
    changed = load_study("digits", ["model.name=net.py:build", "data.dataset=x.npz"]).study
    assert changed.model.name == f"{tmp_path}/net.py:build"
    assert changed.data.dataset == f"{tmp_path}/x.npz"
    assert load_study("digits", ["data.dataset=npz:x.npz"]).study.data.dataset == f"npz:{tmp_path}/x.npz"
