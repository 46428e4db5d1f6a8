"""Pretrained networks: the right layers, the right weights in them, what is done to images, and how it is counted."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from checks.ci import in_ci
from paceline import catalog
from paceline.data.sources import NoSourceError
from paceline.data.weights_store import EFFICIENTNET_LITE0, weights_file
from paceline.errors import ModelError
from paceline.training.models import keras_resnet50, pretrained
from paceline.training.models.build_model import build_model
from paceline.training.models.efficientnet_lite import EfficientNetLite0, SameConv2d, renamed
from paceline.training.models.summary import keras_count, summary
from paceline.training.models.transfer import Transfer
from paceline.training.models.weights import read_weights

SHAPE = (32, 32, 3)


def built(name: str, **options: object) -> Transfer:
    model = build_model(name, {"weights": "none", **options}, shape=SHAPE, classes=10)
    assert isinstance(model, Transfer)
    return model


def test_lite0_has_the_published_layers():
    network = EfficientNetLite0(1000)
    assert sum(p.numel() for p in network.parameters()) == 4_652_008
    kernels = {kernel: [c for c in network.modules() if isinstance(c, SameConv2d) and c.kernel_size[0] == kernel]
               for kernel in (3, 5)}  # fmt: skip
    assert [len(found) for found in kernels.values()] == [1 + 1 + 2 + 3 + 1, 2 + 3 + 4]
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    assert {(norm.eps, norm.momentum) for norm in norms} == {(1e-3, 0.01)}
    assert sum(type(module) is nn.ReLU6 for module in network.modules()) == len(norms) - 16, "not after a projection"
    sizes: list[tuple[int, ...]] = []
    for block in network.blocks:
        block.register_forward_hook(lambda m, given, out: sizes.append(tuple(out.shape[1:])))
    with torch.inference_mode():
        assert network.eval()(torch.zeros(1, 3, 224, 224)).shape == (1, 1000)
    assert [sizes[i] for i in (0, 2, 4, 7, 10, 14, 15)] == [
        (16, 112, 112), (24, 56, 56), (40, 28, 28), (80, 14, 14), (112, 14, 14), (192, 7, 7), (320, 7, 7),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("size", "kernel", "before", "after"), [(8, 3, 0, 1), (8, 5, 1, 2), (9, 3, 1, 1), (7, 5, 2, 2)]
)
def test_strides_pad_as_tensorflow_does(size, kernel, before, after):
    """SAME: the odd pixel goes to the right and to the bottom."""
    convolution = SameConv2d(3, 2, kernel, stride=2)
    image = torch.randn(1, 3, size, size)
    padded = functional.pad(image, (before, after, before, after))
    torch.testing.assert_close(convolution(image), functional.conv2d(padded, convolution.weight, stride=2))
    assert convolution(image).shape[-1] == -(-size // 2)


def published_names() -> list[str]:
    """Of the file that the registry carries, as its authors name them."""
    own = {"weight": 1, "bias": 1, "running_mean": 1, "running_var": 1, "num_batches_tracked": 1}
    norm = [f".{name}" for name in own]
    names = ["_conv_stem.weight", *(f"_bn0{end}" for end in norm)]
    for block in range(16):
        expand = ["_expand_conv.weight", *(f"_bn0{end}" for end in norm)] if block else []
        rest = ["_depthwise_conv.weight", *(f"_bn1{end}" for end in norm)]
        rest += ["_project_conv.weight", *(f"_bn2{end}" for end in norm)]
        names += [f"_blocks.{block}.{name}" for name in (*expand, *rest)]
    return [*names, "_conv_head.weight", *(f"_bn1{end}" for end in norm), "_fc.weight", "_fc.bias"]


def test_every_name_of_the_published_file_has_its_place():
    names = published_names()
    assert len(names) == 296
    assert list(renamed(dict.fromkeys(names, torch.zeros(1)))) == list(EfficientNetLite0(1000).state_dict())


def test_the_published_weights():
    """In the user's own cache, so that they are fetched once and not by every test run."""
    try:
        path = weights_file(EFFICIENTNET_LITE0)
    except NoSourceError as error:
        if in_ci():
            raise
        pytest.skip(f"no source of the weights can be reached: {'; '.join(error.failures)}")
    model = build_model("efficientnet-lite0", {}, shape=SHAPE, classes=10)
    assert isinstance(model, Transfer) and model.frozen and pretrained.LITE0_SHA256[:16] in model.facts["weights"]
    weights = read_weights(path)
    assert weights["_fc.weight"].shape == (1000, 1280)
    network = EfficientNetLite0(1000).eval()
    network.load_state_dict(renamed(weights))
    line = torch.arange(224.0)
    waves = [torch.sin(line[:, None] / down) * torch.cos(line / along) for down, along in ((7, 11), (13, 5), (23, 17))]
    with torch.inference_mode():
        scores = network(torch.stack(waves)[None])[0]
    # What the network of its publisher, efficientnet_lite_pytorch 0.1.0, says of the same image.
    assert scores[::200].tolist() == pytest.approx([-0.6826, -1.3433, -1.5638, 0.7666, 0.3660], abs=2e-3)
    assert (scores.argmax().item(), scores.max().item()) == (906, pytest.approx(9.6218, abs=2e-3))


@pytest.mark.parametrize(
    ("name", "base"),
    [("efficientnet-lite0", 3_371_008), ("efficientnet-b0", 4_007_548), ("mobilenet-v3-small", 1_517_856),
     ("torchvision:squeezenet1_1", 722_496)],
)  # fmt: skip
def test_networks_of_the_catalog_are_what_it_says(name, base):
    model = built(name, preprocessing="none", freeze=True)
    assert sum(p.numel() for p in model.base.parameters()) == base
    if name in catalog.names("model"):
        assert f"{base:,} parameters before" in catalog.description("model", name)
    with torch.inference_mode():
        assert model(torch.zeros(2, 3, 64, 64)).shape == (2, 10)
        assert model.features(torch.zeros(2, 3, 64, 64)).dim() == 2
    assert [n for n, p in model.named_parameters() if p.requires_grad] == ["head.0.weight", "head.0.bias"]


@pytest.mark.parametrize("name", ["efficientnet-lite0", "resnet50", "torchvision:resnet18", "resnet50-keras"])
def test_an_option_that_there_is_not_is_named(name):
    with pytest.raises(ModelError) as refused:
        built(name, haed=[20])
    assert "Did you mean 'head'?" in str(refused.value)
    assert "weights, freeze, head, preprocessing, image_size" in str(refused.value)


def test_its_own_preprocessing_is_the_default_and_is_noted():
    lite, torchvision = built("efficientnet-lite0"), built("mobilenet-v3-small", image_size=112)
    assert lite.facts["preprocessing"] == "own: 224×224 pixels (bicubic, antialiased), (x - 127) / 128"
    official = "own: 112×112 pixels (bilinear, antialiased, the middle of 128), "
    assert torchvision.facts["preprocessing"].startswith(official)
    assert lite.wants_pixels and torchvision.wants_pixels
    seen = []
    lite.base.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    with torch.inference_mode():
        lite.eval()(torch.full((1, 3, 32, 32), 255.0))
    assert seen[0].shape == (1, 3, 224, 224) and torch.allclose(seen[0], torch.ones(()))


def test_torchvision_prepares_as_its_own_transforms_do():
    from paceline.training.models.torchvision_import import torchvision_models

    official = torchvision_models().get_model_weights("mobilenet_v3_small").DEFAULT.transforms()
    pixels = torch.randint(60, 190, (2, 3, 40, 52), dtype=torch.uint8)
    ours = built("mobilenet-v3-small").preprocessing(pixels.float())
    # Theirs rounds to whole pixels after it has resized.
    assert (ours - official(pixels)).abs().max() < 0.6 / 255 / 0.224


@pytest.mark.parametrize(("given", "frozen"), [({}, False), ({"freeze": True}, True), ({"freeze": False}, False)])
def test_a_base_is_frozen_where_it_has_weights_or_where_it_is_asked_for(given, frozen):
    assert built("efficientnet-lite0", **given).frozen is frozen


def test_weights_of_ones_own(tmp_path):
    torch.manual_seed(1)
    source = built("efficientnet-lite0")
    path = tmp_path / "mine.safetensors"
    save_file({f"model.{name}": tensor for name, tensor in source.state_dict().items()}, path)
    model = built("efficientnet-lite0", weights=str(path))
    assert model.frozen and model.facts["weights"].startswith("own: mine.safetensors, SHA-256")
    for name, tensor in source.base.state_dict().items():
        assert torch.equal(model.base.state_dict()[name], tensor)
    assert not torch.equal(model.head[0].weight, source.head[0].weight)
    with pytest.raises(ModelError, match=r"mine\.safetensors lacks \d+ of the"):
        built("mobilenet-v3-small", weights=str(path))


def test_tensors_other_than_the_published_are_refused(tmp_path, monkeypatch):
    """The file's own sum is checked when it is found; this is of what was read out of it."""
    path = tmp_path / "w.safetensors"
    save_file(EfficientNetLite0().state_dict(), path)
    monkeypatch.setattr(pretrained, "weights_file", lambda published: path)
    with pytest.raises(ModelError, match="are not those of efficientnet-lite0: their SHA-256 differs"):
        build_model("efficientnet-lite0", {}, shape=SHAPE, classes=10)


@pytest.mark.parametrize(
    ("name", "said"),
    [("torchvision:resnet51", "Did you mean 'resnet50'"), ("torchvision:fasterrcnn", "has no classifier called")],
)
def test_a_network_that_torchvision_has_not_is_refused(name, said):
    with pytest.raises(ModelError, match=said):
        build_model(name, {}, shape=SHAPE, classes=10)


def test_keras_s_first_resnet50_is_built_of_torchvision_s_modules():
    """A block as Keras computes it, biases and all, beside the block that its tensors make here."""
    torch.manual_seed(0)
    kernels = {"2a": (1, 256, 128), "2b": (3, 128, 128), "2c": (1, 128, 512), "1": (1, 256, 512)}
    keras: dict[str, torch.Tensor] = {}
    for layer, (size, inputs, outputs) in {
        "conv1": (7, 3, 64),
        **{f"res3a_branch{b}": k for b, k in kernels.items()},
    }.items():
        keras |= {
            f"{layer}/kernel": torch.randn(size, size, inputs, outputs) / 20,
            f"{layer}/bias": torch.randn(outputs),
        }
        norm = "bn_conv1" if layer == "conv1" else layer.replace("res", "bn")
        keras |= {f"{norm}/{kind}": torch.rand(outputs) for kind in ("gamma", "beta", "moving_mean", "moving_variance")}
    keras |= {"fc1000/kernel": torch.zeros(2048, 1000), "fc1000/bias": torch.zeros(1000)}
    ours = {
        n.removeprefix("layer2.0."): t for n, t in keras_resnet50.renamed(keras).items() if n.startswith("layer2.0.")
    }
    block = built("resnet50-keras", freeze=True).base.layer2[0].eval()
    block.load_state_dict(ours, strict=False)

    def published(inputs: torch.Tensor, branch: str, stride: int) -> torch.Tensor:
        name, kernel = f"3a_branch{branch}", keras[f"res3a_branch{branch}/kernel"].permute(3, 2, 0, 1)
        out = functional.conv2d(inputs, kernel, keras[f"res{name}/bias"], stride, padding=kernel.shape[-1] // 2)
        mean, var, gamma, beta = (
            keras[f"bn{name}/{kind}"].view(-1, 1, 1) for kind in ("moving_mean", "moving_variance", "gamma", "beta")
        )
        return (out - mean) / (var + 1e-3).sqrt() * gamma + beta

    image = torch.randn(2, 256, 8, 8)
    inside = published(published(image, "2a", 2).relu(), "2b", 1).relu()
    expected = (published(inside, "2c", 1) + published(image, "1", 2)).relu()
    with torch.inference_mode():
        torch.testing.assert_close(block(image), expected, rtol=1e-4, atol=1e-4)


def test_counts_in_keras_s_way_are_those_of_the_published_study():
    """Both frozen, on 32×32×3: EfficientNetB0 under a dense layer of 10, ResNet50 under layers of 20 and 10."""
    small = summary("efficientnet-b0", SHAPE, 10, {"preprocessing": "none"})
    assert (small.keras.total, small.keras.trainable) == (4_062_381, 12_810)
    assert (small.parameters, small.trainable) == (4_020_358, 12_810)
    large = summary("resnet50", SHAPE, 10, {"preprocessing": "none", "head": [20]})
    assert (large.keras.total, large.keras.trainable) == (23_628_902, 41_190)
    assert (large.parameters, large.trainable) == (23_549_222, 41_190)


def test_what_learns_counts_as_trainable_in_keras_too():
    """A ResNet's biases learn where its base does; running statistics never do."""
    model = built("torchvision:resnet50", freeze=False)
    assert keras_count(model).trainable == 23_555_082
    assert keras_count(model).total == 23_608_202
    assert keras_count(built("resnet50-keras", freeze=True, head=[20])).total == 23_628_902


def test_other_models_count_alike_but_for_running_statistics():
    assert keras_count(nn.Linear(3, 4)).why == ""
    counted = keras_count(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)))
    assert (counted.total, counted.trainable) == (20 + 4 + 4, 24)
