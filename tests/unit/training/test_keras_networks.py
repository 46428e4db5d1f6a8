"""Keras's own networks, computed by PyTorch, and its own counts beside ours."""

from __future__ import annotations

import importlib.util
import inspect

import pytest
import torch

from paceline import catalog
from paceline.errors import ModelError
from paceline.training.models.build_model import build_model
from paceline.training.models.keras_networks import KerasBase, _application, _keras, _preparation
from paceline.training.models.summary import keras_count
from paceline.training.models.transfer import Transfer

# Looked for, not imported: which backend it takes is decided when it is.
pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
SHAPE = (32, 32, 3)


def built(network: str, **options: object) -> Transfer:
    given = {"weights": "none", "freeze": True, "preprocessing": "none", **options}
    model = build_model(f"keras:{network}", given, shape=SHAPE, classes=10)
    assert isinstance(model, Transfer) and isinstance(model.base, KerasBase)
    return model


@pytest.fixture(scope="module")
def mobile() -> Transfer:
    torch.manual_seed(3)
    return built("MobileNet")


@pytest.mark.parametrize(
    ("network", "head", "total", "trainable"),
    [("EfficientNetB0", [], 4_062_381, 12_810), ("ResNet50", [20], 23_628_902, 41_190)],
)
def test_keras_itself_counts_what_was_published(network, head, total, trainable):
    """The rules for our own modules are held to the same figures in `test_pretrained.py`."""
    model = built(network, head=head)
    assert model.base.network.count_params() + sum(p.numel() for p in model.head.parameters()) == total
    assert (keras_count(model).total, keras_count(model).trainable) == (total, trainable)


@pytest.mark.parametrize("preprocessing", ["own", "twice"])
def test_a_network_is_built_for_the_size_that_its_preprocessing_brings_images_to(preprocessing):
    model = built("MobileNet", preprocessing=preprocessing)
    assert model.base.network.input_shape == (None, 224, 224, 3)
    with torch.no_grad():
        assert model(torch.rand(1, 3, 32, 32) * 255).shape == (1, 10)


def test_a_frozen_one_keeps_its_statistics_and_an_unfrozen_one_by_choice(mobile):
    images = torch.rand(4, 3, 32, 32) * 255
    mobile.freeze()
    before = {name: tensor.clone() for name, tensor in mobile.base.state_dict().items()}

    def moved() -> set[str]:
        mobile.train()
        mobile.zero_grad()
        mobile(images).sum().backward()
        return {name for name, tensor in mobile.base.state_dict().items() if not torch.equal(tensor, before[name])}

    assert moved() == set() and all(p.grad is None for p in mobile.base.parameters())
    assert not mobile.base.network.trainable_variables
    mobile.unfreeze(batchnorm="frozen")
    assert moved() == set() and all(p.grad is not None for p in mobile.base.parameters())
    mobile.unfreeze(batchnorm="train")
    assert {name.rpartition("/")[2] for name in moved()} == {"moving_mean", "moving_variance"}
    assert mobile.base.network.trainable_variables


def test_statistics_are_buffers_that_keras_goes_on_using(mobile):
    mobile.double().float()  # other memory than before
    name, buffer = next(iter(mobile.base.named_buffers()))
    variable = next(v for v in mobile.base.network.variables if v.path == name)
    buffer.fill_(7.0)
    assert bool((variable.value == 7.0).all())
    assert all("moving" not in name for name, _ in mobile.named_parameters())


def test_the_same_seed_gives_the_same_network():
    def weights() -> torch.Tensor:
        torch.manual_seed(5)
        return next(built("MobileNet").base.parameters()).detach().clone()

    assert torch.equal(weights(), weights())


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("ResNet50", "(x - [123.7, 116.8, 103.9]) / 1, channels reversed"),
        ("MobileNetV2", "(x - 127.5) / 127.5"),
        ("EfficientNetB0", "values 0 to 255 as they are"),
        ("DenseNet121", "(x - [123.7, 116.3, 103.5]) / [58.4, 57.12, 57.38]"),
    ],
)
def test_preprocessing_is_keras_s_own(network, said):
    prepare = _application(network)[1].preprocess_input
    found = _preparation(prepare, 224)
    assert found.text == f"224×224 pixels (bilinear, antialiased), {said}"


def test_optimizers_have_by_default_what_the_catalog_says():
    optimizers = _keras().optimizers
    kinds = {name.lower(): kind for name, kind in vars(optimizers).items() if inspect.isclass(kind)}
    defaults = {name: entry.keras_defaults for name, entry in catalog.entries("optimizer") if entry.keras_defaults}
    assert set(defaults) == {"adam", "adamw", "adadelta"}
    for name, values in defaults.items():
        usual = inspect.signature(kinds[name]).parameters
        assert values == {key: usual[key].default for key in ("epsilon", "rho") if key in usual}


def test_a_network_that_keras_has_not_is_refused():
    with pytest.raises(ModelError, match="Did you mean 'ResNet50'"):
        built("resnet50")


def test_other_precisions_are_refused(mobile):
    with pytest.raises(ModelError, match="is float64"):
        mobile.base(torch.zeros(1, 3, 32, 32, dtype=torch.float64))
