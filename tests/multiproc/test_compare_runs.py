"""`paceline compare` on real ranks: a forward pass that sleeps longer is found, as what it is."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from paceline.cli.app import main
from paceline.studies.execute.execute import execute
from paceline.studies.load.load import load_study

MODEL = """
import time
from torch import nn

class Sleepy(nn.Module):
    def __init__(self, shape, classes, sleep_s):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], classes))
        self.sleep_s = sleep_s

    def forward(self, images):
        time.sleep(self.sleep_s)
        return self.layers(images)

def build(shape, classes, *, sleep_s):
    return Sleepy(shape, classes, sleep_s)
"""
STUDY = """
[study]
name = "sleepy"
[data]
dataset = "digits"
[model]
name = "sleepy.py:build"
sleep_s = 0.005
[train]
batch_global = 64
steps = 160
[run]
ranks = [2]
repeats = 1
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One run of two ranks each: a forward pass of 5 ms, and one of 35 ms."""
    place = tmp_path_factory.mktemp("sleepy")
    (place / "sleepy.py").write_text(MODEL)
    (place / "sleepy.toml").write_text(STUDY)
    for attempt in range(4):
        folders = (place / f"short-{attempt}", place / f"long-{attempt}")
        for folder, sleep_s in zip(folders, (0.005, 0.035), strict=True):
            loaded = load_study(place / "sleepy.toml", [f"model.sleep_s={sleep_s}"])
            done = execute(loaded, folder, preflight=False, cache=place / "cache", force=True)
            assert not done.failures, done.failures
        if _can_be_told(folders):
            break
    return folders


def _can_be_told(folders: tuple[Path, Path]) -> bool:
    """Whether steps of both runs are independent enough for a test: another program beside them may see to it that
    they are not, which is then said, and not what is tested here."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        main(["compare", *map(str, folders), "--json"])
    (change,) = json.loads(said.getvalue())["changes"]
    return change["time_s"]["p_least"] < 0.05


def test_a_longer_forward_pass_is_found_as_that(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *map(str, runs), "--fail-if-slower", "20", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (change,) = found["changes"]
    assert change["time_s"]["real"] and change["time_s"]["change"]["median"] > 1.2
    parts = {part["kind"]: part for part in change["parts"]}
    shares = {kind: part["share"] for kind, part in parts.items()}
    assert sum(shares.values()) == pytest.approx(change["time_s"]["change"]["median"] - 1)
    assert max(shares, key=shares.__getitem__) == "forward"
    # A sleep is never shorter than asked for; on a busy machine it is a few milliseconds longer, in both runs.
    assert parts["forward"]["change_s"]["median"] == pytest.approx(0.030, abs=0.010)
    assert ("model.sleep_s", "0.005", "0.035") in [
        (each["name"], each["a"], each["b"]) for each in found["differences"]
    ]
    assert any("single run" in note for note in found["notes"])
    assert change["messages"][0]["operation"] == "allreduce_"
    assert (change["messages"][0]["a_per_step"], change["messages"][0]["b_per_step"]) == pytest.approx((1, 1), abs=0.1)


def test_backwards_it_is_faster_and_against_itself_the_same(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    short, long = map(str, runs)
    assert main(["compare", long, short, "--fail-if-slower", "0"]) == 0
    assert "faster per step with 2 ranks: −" in capsys.readouterr().out
    assert main(["compare", long, long, "--fail-if-slower", "0"]) == 0
    assert "cannot be told apart" in capsys.readouterr().out
