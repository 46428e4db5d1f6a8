"""What a second phase and cached features ask of a model is found out before any rank starts."""

from __future__ import annotations

import pytest

from paceline.data.store import prepare
from paceline.errors import ModelError
from paceline.records.run import Manifest
from paceline.records.settings import DataSettings, FinetuneSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.training.model_check import checked_model

GOOD = """
from torch import nn
from paceline.training.models.transfer import Transfer
def build(classes):
    base = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5))
    return Transfer(base, nn.Linear(144, classes))
"""
UNFLATTENED = (
    GOOD
    + """
class Own(Transfer):
    def features(self, inputs): return self.base(inputs)
    def forward(self, inputs): return self.head(self.features(inputs).flatten(1))
def build_own(classes):
    return Own(nn.Conv2d(1, 4, 3), nn.Linear(144, classes))
"""
)
BEHIND = (
    GOOD
    + """
class Own(Transfer):
    def forward(self, inputs): return 2 * self.head(self.features(inputs))
def build_own(classes):
    return Own(nn.Conv2d(1, 4, 3), nn.Linear(144, classes))
"""
)
PLAIN = """
from torch import nn
def build(classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))
"""
# Its base has a parameter that no loss reaches: that shows only when it is unfrozen.
SPARE = (
    GOOD
    + """
def build_own(classes):
    made = build(classes)
    made.base.register_parameter("spare", nn.Parameter(made.head.bias.detach().clone()))
    return made
"""
)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return prepare(DataSettings(dataset="digits"), base=cache, cache=cache)


@pytest.fixture
def ask(digits, tmp_path):
    def ask(text: str, *, finetune: int = 0, cached_features: bool = False, precision: str = "float32") -> dict:
        file = tmp_path / "mine.py"
        file.write_text(text)
        point = Point(
            data=DataSettings(dataset="digits"),
            data_digest=digits.dataset.digest,
            model=ModelSettings(name=f"mine.py:{'build_own' if 'build_own' in text else 'build'}"),
            model_digest="",
            train=TrainSettings(batch_global=64, epochs=1, cached_features=cached_features, precision=precision),
            finetune=FinetuneSettings(epochs=finetune),
            ranks=2,
            device="cpu",
        )
        return checked_model(
            Manifest(
                study="s",
                point_id=point.point_id,
                point=point,
                run=1,
                seed=0,
                data_folder=str(digits.folder),
                model_file=str(file),
                cores=None,
                placement="",
                launched_at_ns=0,
                launched_at="",
            )
        )

    return ask


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_a_model_that_can_is_passed_through_both_phases(ask, precision):
    assert ask(GOOD, finetune=1, cached_features=True, precision=precision)["ok"]


@pytest.mark.parametrize(
    ("text", "settings", "said"),
    [
        (PLAIN, {"finetune": 1}, "has no freeze(), which [finetune] needs"),
        (PLAIN, {"cached_features": True}, "has no freeze, which train.cached_features needs"),
        (UNFLATTENED, {"cached_features": True}, "returns (2, 4, 6, 6) for 2 images"),
        (BEHIND, {"cached_features": True}, "does more than head(features(inputs))"),
        (BEHIND, {"cached_features": True, "precision": "bfloat16"}, "does more than head(features(inputs))"),
        (SPARE, {"finetune": 1}, "does not depend on parameter 'base.spare'"),
    ],
    ids=["no-freeze", "no-features", "not-flat", "behind-the-head", "mixed-behind-the-head", "spare"],
)
def test_one_that_cannot_is_refused(ask, text, settings, said):
    with pytest.raises(ModelError) as caught:
        ask(text, **settings)
    assert said in caught.value.what and caught.value.next


def test_a_frozen_parameter_needs_no_gradient(ask):
    assert ask(SPARE.replace("return made", "made.freeze(); return made"))["ok"]
