"""What computes in which numbers."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from paceline.records.settings import TrainSettings
from paceline.training.models.cnn import cnn_small
from paceline.training.models.transfer import Transfer, dense_head
from paceline.training.precision import move_to_device

CPU = torch.device("cpu")


def settings(precision: str, *, cached: bool = False) -> TrainSettings:
    return TrainSettings(batch_global=8, epochs=1, precision=precision, cached_features=cached)


def seen_dtypes(model: nn.Module) -> set[torch.dtype]:
    """Of what convolutions and dense layers put out, filled as the model is called."""
    seen: set[torch.dtype] = set()
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(lambda _module, _inputs, output: seen.add(output.dtype))
    return seen


@pytest.mark.parametrize(
    ("precision", "computed", "kept"),
    [
        ("float32", torch.float32, torch.float32),
        ("float64", torch.float64, torch.float64),
        ("bfloat16", torch.bfloat16, torch.float32),
    ],
)
def test_layers_compute_in_one_precision_and_weights_scores_and_gradients_are_kept_in_another(
    precision, computed, kept
):
    model = cnn_small((28, 28, 1), 10)
    move_to_device(model, settings(precision), CPU)
    seen = seen_dtypes(model)
    scores = model(torch.rand(4, 1, 28, 28, dtype=kept))
    functional.cross_entropy(scores, torch.arange(4)).backward()
    assert seen == {computed}
    assert scores.dtype == kept
    assert {p.dtype for p in model.parameters()} == {kept}
    assert {p.grad.dtype for p in model.parameters()} == {kept}


def test_gradients_of_mixed_precision_point_where_those_of_float32_do():
    torch.manual_seed(1)
    exact = cnn_small((28, 28, 1), 10).eval()  # without dropout
    mixed = copy.deepcopy(exact)
    move_to_device(exact, settings("float32"), CPU)
    move_to_device(mixed, settings("bfloat16"), CPU)
    images, labels = torch.rand(64, 1, 28, 28), torch.randint(0, 10, (64,))
    for model in (exact, mixed):
        functional.cross_entropy(model(images), labels).backward()
    ours, theirs = ([p.grad for p in model.parameters()] for model in (mixed, exact))
    for one, other in zip(ours, theirs, strict=True):
        assert not torch.equal(one, other), "nothing was mixed"
        # Not closer: of two pixels that bfloat16 cannot tell apart, a maximum may take the other one.
        assert functional.cosine_similarity(one.flatten(), other.flatten(), dim=0) > 0.95


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_weights_of_images_lie_channels_last_and_those_of_volumes_as_they_are(precision):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Unflatten(1, (1, 4)), nn.Conv3d(1, 2, 2))
    move_to_device(model, settings(precision), CPU)
    assert model[0].weight.stride() == (27, 1, 9, 3)
    assert model[2].weight.is_contiguous()
    dtype = model[0].weight.dtype
    model(torch.rand(2, 3, 8, 8, dtype=dtype)).sum().backward()


def test_state_keeps_its_names():
    plain = cnn_small((28, 28, 1), 10)
    mixed = cnn_small((28, 28, 1), 10)
    move_to_device(mixed, settings("bfloat16"), CPU)
    assert list(mixed.state_dict()) == list(plain.state_dict())
    plain.load_state_dict(mixed.state_dict())


def test_kept_features_and_the_head_that_learns_from_them_are_mixed_as_well():
    base = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1))
    model = Transfer(base, dense_head(4, 2, []))
    model.freeze()
    move_to_device(model, settings("bfloat16", cached=True), CPU)
    seen = seen_dtypes(model)
    features = model.features(torch.rand(2, 3, 8, 8))
    assert (features.dtype, seen) == (torch.float32, {torch.bfloat16})
    seen.clear()
    scores = model.head(features)
    assert (scores.dtype, seen) == (torch.float32, {torch.bfloat16})
    model = nn.Module()
    model.features, model.head = base, nn.Sequential(nn.Flatten(), nn.Linear(4, 2))  # a layer, as torchvision has it
    model.forward = lambda inputs: model.head(model.features(inputs))
    move_to_device(model, settings("bfloat16", cached=True), CPU)
    assert model.features(torch.rand(2, 3, 8, 8)).dtype == torch.float32


def test_its_two_halves_make_the_whole():
    model = Transfer(nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1)), dense_head(4, 2, []))
    move_to_device(model, settings("bfloat16", cached=True), CPU)
    assert torch.allclose(model(torch.zeros(2, 3, 8, 8)), model.head(model.features(torch.zeros(2, 3, 8, 8))))
