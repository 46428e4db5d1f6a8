from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch
from torch import nn

from paceline.errors import ModelError
from paceline.training.models.build_model import build_model
from paceline.training.models.summary import summary


@pytest.mark.parametrize(
    ("name", "shape", "options", "parameters"),
    [
        ("cnn-690k", (28, 28, 1), {}, 690_590),
        ("cnn-small", (28, 28, 1), {}, 1_199_882),
        ("cnn-small", (32, 32, 3), {}, 1_626_442),
        ("cnn-photo", (64, 64, 3), {}, 395_178),
        ("cnn-photo", (224, 224, 3), {}, 395_178),
        ("mlp", (28, 28, 1), {"layers": 1, "neurons": 32}, 784 * 32 + 32 + 32 * 10 + 10),
        ("mlp", (28, 28, 1), {"layers": 3, "neurons": 16}, 784 * 16 + 16 + 2 * (16 * 16 + 16) + 16 * 10 + 10),
        ("mlp", (8, 8, 1), {"layers": 0}, 64 * 10 + 10),
    ],
)
def test_parameter_counts(name, shape, options, parameters):
    found = summary(name, shape, 10, options)
    assert found.parameters == found.trainable == parameters
    assert sum(layer.parameters for layer in found.layers) == parameters
    assert found.layers[-1].output_shape == (10,)


def test_pooling_before_relu_is_the_same_function():
    """The swap that saves three quarters of ReLU's work changes no value and no gradient."""
    torch.manual_seed(0)
    model = build_model("cnn-690k", {"dropout": 0.0}, shape=(28, 28, 1), classes=10)
    swapped = list(model)
    for i in (1, 4, 7):
        assert isinstance(swapped[i], nn.MaxPool2d)
        swapped[i], swapped[i + 1] = nn.ReLU(), swapped[i]
    published = nn.Sequential(*swapped)
    images = torch.randn(8, 1, 28, 28)
    ours = model(images)
    ours.sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    theirs = published(images)
    theirs.sum().backward()
    assert torch.equal(ours, theirs)
    for mine, other in zip(gradients, (p.grad for p in published.parameters()), strict=True):
        assert torch.equal(mine, other)


@pytest.mark.parametrize("side", [32, 64, 100, 256])
def test_the_network_for_photos_takes_any_size_and_learns(side):
    """A few steps on two classes that differ in colour alone."""
    torch.manual_seed(0)
    model = build_model("cnn-photo", {"dropout": 0.0}, shape=(side, side, 3), classes=5)
    assert sum(p.numel() for p in model.parameters()) == 393_893
    if side > 64:
        assert model(torch.zeros(1, 3, side, side)).shape == (1, 5)
        return
    images, labels = torch.randn(16, 3, side, side), torch.arange(16) % 2
    images[labels == 1, 0] += 1.0
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _ in range(12):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


@pytest.fixture
def model_file(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(text)
        return path

    return write


def build(path: Path, function: str = "build", **options):
    return build_model(f"mine.py:{function}", options, shape=(28, 28, 1), classes=10, model_file=path)


def test_a_users_function_gets_what_it_asks_for(model_file):
    path = model_file("from torch import nn\ndef build(shape, width=3):\n    return nn.Linear(shape[0], width)\n")
    assert build(path, width=5).out_features == 5
    path = model_file("from torch import nn\ndef build():\n    return nn.Linear(2, 2)\n")
    assert isinstance(build(path), nn.Linear)


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("import nothing_like_this\n", {}, "could not be imported: ModuleNotFoundError"),
        ("def build(:\n", {}, "could not be imported: SyntaxError"),
        ("raise SystemExit(3)\n", {}, "could not be imported: SystemExit"),
        ("def biuld(): pass\n", {}, "Did you mean 'biuld'?"),
        ("build = 3\n", {}, "has no function called 'build'"),
        ("def build(): return 3\n", {}, "returned int"),
        ("def build(): return 1 / 0\n", {}, "ZeroDivisionError: division by zero (line 1"),
        ("def build(width=3): pass\n", {"widht": 3}, "Did you mean 'width'?"),
    ],
)
def test_whatever_goes_wrong_in_a_users_file_is_said(model_file, text, options, sentence):
    with pytest.raises(ModelError) as caught:
        build(model_file(text), **options)
    assert sentence in str(caught.value)


def test_a_file_that_changed_since_the_study_began_is_refused(model_file):
    path = model_file("from torch import nn\ndef build():\n    return nn.Linear(2, 2)\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    known = {"shape": (28, 28, 1), "classes": 10, "model_file": path, "model_digest": digest}
    assert isinstance(build_model("mine.py:build", {}, **known), nn.Linear)
    path.write_text(path.read_text() + "\n")
    with pytest.raises(ModelError, match="changed while its study ran"):
        build_model("mine.py:build", {}, **known)


def test_a_network_that_needs_larger_images_says_so():
    with pytest.raises(ModelError, match="too small"):
        build_model("cnn-690k", {}, shape=(8, 8, 1), classes=10)
    with pytest.raises(ModelError, match="at least 32×32"):
        build_model("cnn-photo", {}, shape=(28, 28, 3), classes=10)
