from __future__ import annotations

import pytest

from paceline.data.store import prepare
from paceline.errors import ModelError, RequestError
from paceline.records.run import Manifest
from paceline.records.settings import AugmentSettings, DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.training.model_check import checked_model


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return prepare(DataSettings(dataset="digits"), base=cache, cache=cache)


@pytest.fixture
def ask(digits, tmp_path):
    def ask(
        text: str = "",
        *,
        name: str = "mine.py:build",
        ranks: int = 2,
        strategy: str = "ddp",
        precision: str = "float32",
        **augment: int,
    ) -> dict:
        file = tmp_path / "mine.py"
        file.write_text("import torch\nfrom torch import nn\n" + text)
        point = Point(
            data=DataSettings(dataset="digits"),
            data_digest=digits.dataset.digest,
            model=ModelSettings(name=name),
            model_digest="",
            train=TrainSettings(batch_global=64, epochs=1, precision=precision),
            augment=AugmentSettings(**augment),
            ranks=ranks,
            strategy=strategy,
            device="cpu",
        )
        manifest = Manifest(
            study="s",
            point_id=point.point_id,
            point=point,
            run=1,
            seed=0,
            data_folder=str(digits.folder),
            model_file=str(file) if text else None,
            cores=None,
            placement="",
            launched_at_ns=0,
            launched_at="",
        )
        return checked_model(manifest)

    return ask


def test_a_model_that_fits_is_counted(ask):
    assert ask(name="mlp") == {"ok": True, "parameters": 64 * 32 + 32 + 32 * 10 + 10}


def test_augmentation_that_leaves_nothing_of_an_image_is_refused_before_any_rank_starts(ask):
    assert ask(name="mlp", crop=7)["ok"]
    with pytest.raises(RequestError, match=r"augment\.crop = 8: the images of this data set have 8×8 pixels"):
        ask(name="mlp", crop=8)


LINEAR = "def build():\n    return nn.Sequential(nn.Flatten(), nn.Linear({inputs}, {outputs}))\n"
SPARE = """
class Spare(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.spare = nn.Linear(64, 10), nn.Linear(3, 3)
    def forward(self, x):
        return self.used(x.flatten(1))
build = Spare
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LINEAR.format(inputs=65, outputs=10), "does not fit digits, images of 8×8×1"),
        (LINEAR.format(inputs=64, outputs=9), "returns (2, 9) for 2 images"),
        ("def build():\n    return nn.Flatten()\n", "has no parameter to train"),
        (SPARE, "does not depend on parameter 'spare.weight'"),
    ],
)
def test_a_model_that_does_not_fit_is_told_what_would(ask, text, sentence):
    with pytest.raises(ModelError) as caught:
        ask(text)
    assert sentence in caught.value.what


OWN_DTYPE = """
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(64, 10), nn.Parameter(torch.eye(10))
    def forward(self, x):
        scores = torch.zeros(len(x), 10)
        scores[torch.arange(len(x))] = self.layer(x.flatten(1))   # of one dtype alone
        return scores @ self.last
build = Own
"""


def test_a_model_that_cannot_be_mixed_is_told_before_any_rank_starts(ask):
    assert ask(OWN_DTYPE)["ok"] and ask(name="mlp", precision="bfloat16")["ok"]
    with pytest.raises(ModelError, match="does not fit digits"):
        ask(OWN_DTYPE, precision="bfloat16")


FLOATS = """
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 10)
    def forward(self, x):
        return self.layer(x.float().flatten(1))
build = Own
"""


def test_a_model_is_tried_in_the_numbers_that_it_will_compute_with(ask):
    assert ask(FLOATS)["ok"] and ask(name="mlp", precision="float64")["ok"]
    with pytest.raises(ModelError, match="does not fit digits"):
        ask(FLOATS, precision="float64")


VOLUMES = """
def build():
    first = nn.Sequential(nn.Unflatten(1, (1, 1)), nn.Conv3d(1, 4, (1, 3, 3)), nn.ReLU())
    return nn.Sequential(first, nn.Flatten(), nn.Linear(144, 10))
"""


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_weights_with_five_dimensions_are_taken(ask, precision):
    assert ask(VOLUMES, precision=precision)["ok"]


def test_a_parameter_without_gradient_hinders_ddp_alone(ask):
    assert ask(SPARE, strategy="flat")["ok"]
    assert ask(SPARE, ranks=1)["ok"]
    for compressed in ("ddp-fp16", "ddp-powersgd"):
        with pytest.raises(ModelError) as caught:
            ask(SPARE, strategy=compressed)
        assert compressed in caught.value.right
