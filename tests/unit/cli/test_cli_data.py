"""`paceline data`: image folders come with their classes and balance, and with options for how they are decoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paceline.cli.app import main
from samples.image_files import write_folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of photos to work in, and a cache."""
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return write_folder(tmp_path / "photos", {"daisy": 12, "rose": 6, "tulip": 18})


def json_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_classes_and_balance_are_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "show", "photos"]) == 2
    assert "paceline data fetch photos" in capsys.readouterr().err
    assert main(["data", "fetch", "photos"]) == 0
    out, err = capsys.readouterr()
    assert "Ready: photos, 30 to train, 6 to test, 64×64×3, 3 classes" in out
    assert "classes from 5 to train (rose) to 15 (tulip)" in out
    assert "held out as one, by class" in err
    assert main(["data", "show", "photos"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["1", "rose", "5", "16.7", "%", "1"] in rows
    found = json_of(capsys, "data", "show", "photos")
    assert (found["class_names"], found["train_counts"]) == (["daisy", "rose", "tulip"], [10, 5, 15])
    assert json_of(capsys, "data", "check", "photos") == found


def test_options_say_how_images_are_decoded(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "rose" / "broken.jpg").write_bytes(b"")
    assert main(["data", "fetch", "photos"]) == 2
    assert "1 damaged image in 37: rose/broken.jpg is empty" in capsys.readouterr().err
    options = ("--image-size", "16", "--test", "0.5", "--damaged", "skip")
    found = json_of(capsys, "data", "fetch", "photos", *options)
    assert (found["shape"], found["train"] + found["test"]) == ([16, 16, 3], 36)
    assert "1 damaged image left out" in found["note"]
    assert json_of(capsys, "data", "show", "photos", *options) == found


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("photos", "--image-size", "5"), "data.image_size = 5: must be from 8 to 1024."),
        (("photos", "--test", "2"), "data.test = 2.0: must be a fraction from 0 to below 1."),
        (("photos", "--damaged", "ignore"), "refuse"),
        (("mnist", "--image-size", "32"), 'only image folders take it, and "mnist" is none.'),
    ],
)
def test_options_that_cannot_be_are_refused(
    place: Path, words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "fetch", *words]) == 2
    assert says in capsys.readouterr().err


def test_the_list_has_the_balance_for_programs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder(place.parent / "cache" / "sources" / "flowers", {"a": 6, "b": 12})
    json_of(capsys, "data", "fetch", "flowers")
    (found,) = [state for state in json_of(capsys, "data", "list")["datasets"] if state["cached"]]
    assert (found["name"], found["class_names"], found["train_counts"]) == ("flowers", ["a", "b"], [5, 10])


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("elsewhere/set.npz", "See what is there: ls {place}/elsewhere"),
        ("elsewhere/photos", "See what is there: ls {place}/elsewhere"),
        (
            "images:photos/daisy",
            "Put the images of each class into a folder of its own, or name the folder that holds those.",
        ),
    ],
)
def test_data_that_are_not_there_end_with_a_step(
    place: Path, capsys: pytest.CaptureFixture[str], name: str, step: str
) -> None:
    assert main(["data", "fetch", name]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == step.format(place=place.parent)
