"""Options of pretrained networks, refused with a sentence before any process starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.records.settings import ModelSettings, TrainSettings
from paceline.records.study import Study
from paceline.studies.expand.expand import expand
from paceline.studies.load.files import model_digest, model_path, weights_path, with_absolute_paths
from paceline.studies.load.network_checks import problems


def study(name: str = "efficientnet-lite0", precision: str = "float32", **options: object) -> Study:
    train = TrainSettings(batch_global=8, epochs=1, precision=precision)
    return Study(name="s", model=ModelSettings(name=name, options=options), train=train)


def told(given: Study, base: Path = Path("/nowhere")) -> list[str]:
    return [problem.text for problem in problems(given, base)]


@pytest.mark.parametrize(
    "options",
    [{}, {"weights": "none", "freeze": False}, {"head": [20], "preprocessing": "unit", "image_size": 96}, {"head": []}],
)
@pytest.mark.parametrize("name", ["efficientnet-lite0", "resnet50", "torchvision:vgg16", "keras:ResNet50"])
def test_options_that_work(name, options):
    assert told(study(name, **options)) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weights": "imagnet"}, "must be imagenet or none, or a file that ends in .safetensors, .pth, .pt, .bin. "
                                 "Did you mean 'imagenet'?"),
        ({"weights": True}, "must be imagenet or none, or the path of a file."),
        ({"weights": "w.pth"}, "there is no file /nowhere/w.pth."),
        ({"weights": "w.h5"}, "must be imagenet or none, or a file"),
        ({"freeze": "yes"}, "must be true or false."),
        ({"head": 20}, "must be a list of the sizes of dense layers before the last one"),
        ({"head": [20, 0]}, "must be a list of the sizes"),
        ({"head": [True]}, "must be a list of the sizes"),
        ({"preprocessing": "units"}, "must be one of own, twice, unit, none. Did you mean 'unit'?"),
        ({"preprocessing": ["own"]}, "must be one of own, twice, unit, none."),
        ({"image_size": 0}, "must be a number of pixels from 1 to 2048."),
        ({"image_size": 1e9}, "must be a number of pixels"),
    ],
)  # fmt: skip
def test_options_that_cannot_be(options, said):
    (text,) = told(study(**options))
    key = next(iter(options))
    assert text.startswith(f"model.{key} = ") and said in text


def test_a_model_of_ones_own_may_call_its_options_what_it_likes():
    assert told(study("mine.py:build", weights=3, head="x", image_size="large")) == []


def test_keras_computes_in_float32_alone():
    assert "float32 alone" in told(study("keras:ResNet50", precision="float64"))[0]
    assert told(study("torchvision:resnet50", precision="float64")) == []


def test_the_weights_of_keras_may_be_keras_s_own_file(tmp_path):
    (tmp_path / "w.h5").write_bytes(b"x")
    assert told(study("keras:ResNet50", weights="w.h5"), tmp_path) == []


def test_weights_of_ones_own_are_found_from_anywhere_and_change_the_point(tmp_path):
    """What is in the file makes the point, not where it lies."""
    points = []
    for folder, data in (("a", b"one"), ("b", b"one"), ("c", b"two")):
        base = tmp_path / folder
        base.mkdir()
        (base / "w.pth").write_bytes(data)
        given = study(weights="w.pth")
        whole = with_absolute_paths(given, base)
        assert whole.model.options["weights"] == str(base / "w.pth")
        digest = model_digest(model_path(whole.model.name, base) or weights_path(whole.model, base))
        points.append(expand(whole, data_digest="", model_digest=digest)[0].point_id)
    assert points[0] == points[1] != points[2]


def test_published_weights_are_no_file_of_the_user_s(tmp_path):
    for weights in ("imagenet", "none"):
        assert weights_path(ModelSettings(name="resnet50", options={"weights": weights}), tmp_path) is None
    own = replace(study(weights="w.pth").model, name="mine.py:build")
    assert weights_path(own, tmp_path) is None
