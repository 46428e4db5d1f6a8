"""`paceline tune lr`, through real ranks."""

from __future__ import annotations

import itertools
import json
import math
import shlex
from pathlib import Path

import pytest

from paceline.cli.app import main
from paceline.studies.load.load import load_study

STUDY = """
[study]
name = "small"
[data]
dataset = "digits"
[model]
name = "mlp"
[train]
optimizer = "sgd"
lr_rule = "sqrt"
batch_global = 32
epochs = 1
[run]
ranks = [1]
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(STUDY)
    return tmp_path


def test_a_range_test_ends_in_a_rate_a_page_and_a_command(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["tune", "lr", "small.toml", "--ranks", "2", "--steps", "60", "--to", "10", "--set", "model.neurons=64"]
    assert main(given) == 0
    out, err = capsys.readouterr()
    assert "[ OK ] (1/1) 2 ranks, run 1: " in err and "chance" not in err
    assert "Learning rate " in out and "at a global batch of 32 on 2 ranks." in out
    assert "Curves  runs/tune-small/lr-range.html" in out
    assert (place / "runs/tune-small/lr-range.html").is_file()
    # The same again is read off the folder: no rank is started, and the answer is the same.
    assert main([*given, "--json"]) == 0
    again, err = capsys.readouterr()
    found = json.loads(again)
    assert "1 of 1 runs are finished" in err
    assert {"lr", "low", "high", "curves", "batch_global", "ranks", "notes", "rule", "page", "next"} == set(found)
    assert f"Learning rate {found['lr']:g} " in out
    assert 0.01 < found["lr"] < 3, "a perceptron on digits learns with SGD between these"
    (curve,) = found["curves"]
    assert len(curve["rates"]) == len(curve["losses"]) == len(curve["smoothed"]) <= 60
    assert curve["rates"][0] == pytest.approx(1e-5)
    assert curve["losses"][0] == pytest.approx(math.log(10), rel=0.2), "chance, over the shares of both ranks"
    command = shlex.split(found["next"])
    overrides = [word for before, word in itertools.pairwise(command) if before == "--set"]
    assert overrides == ["model.neurons=64", f"train.lr={found['lr']:g}", "train.lr_batch=32"]
    assert command[:5] == ["paceline", "study", "small.toml", "--ranks", "2"]
    assert load_study(Path("small.toml"), overrides).study.train.lr == found["lr"]
    (written,) = place.glob("runs/tune-small/points/*/runs/1/lr-range.csv")
    written.write_text("step,lr,loss\n1,0.1\n")
    assert main(given) == 2
    assert "lr-range.csv is missing or damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "1", "--to", "0.1"], "--from 1 and --to 0.1"),
        (["--steps", "3"], "--steps 3 is too few"),
        (["--steps", "1.5"], "--steps 1.5 is not a whole number"),
        (["--set", "train.schedule=range"], 'train.schedule = "range": must be'),
    ],
)
def test_a_request_that_is_wrong_starts_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["tune", "lr", "small.toml", *words]) == 2
    assert said in capsys.readouterr().err
    assert not (place / "runs").exists()
