"""A target accuracy that cannot be reached, or would be looked for in nothing, is refused."""

from __future__ import annotations

import pytest

from paceline.records.settings import DataSettings, TrainSettings
from paceline.records.study import Study
from paceline.studies.load.recipe_checks import target_problems as problems


def told(target: float | None, **data: object) -> list[str]:
    study = Study(name="s", train=TrainSettings(target_accuracy=target), data=DataSettings(**data))  # pyright: ignore[reportArgumentType]
    return [problem.text for problem in problems(study)]


@pytest.mark.parametrize("target", [0.0, 1.0, 98.0, -0.1, float("nan")])
def test_it_is_a_fraction(target: float) -> None:
    (text,) = told(target, validation=0.1)
    assert f"train.target_accuracy = {target}: must be a fraction above 0 and below 1" in text


def test_it_needs_something_to_be_looked_for_in() -> None:
    (text,) = told(0.9)
    assert "nothing is held out for validation. Add data.validation = 0.1." in text
    assert told(0.9, validation=0.1) == [] and told(None) == []
    assert told(0.9, dataset="photos") == [], "an image folder may bring a validation set"
