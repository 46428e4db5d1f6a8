"""Models and data sets from Python, without the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.app.datasets import cached_dataset, dataset_settings
from paceline.app.model_layers import model_descriptions, model_summary
from paceline.errors import DataError, RequestError


def test_options_of_a_model_are_a_mapping_or_texts() -> None:
    assert "mlp" in model_descriptions()
    from_mapping = model_summary("mlp", options={"layers": 3, "neurons": 16}, classes=4)
    assert from_mapping == model_summary("mlp", options=["layers=3", "neurons=16"], classes=4)
    assert from_mapping.parameters > from_mapping.layers[-1].parameters > 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: model_summary("mlp", shape=(28, 28)),
        lambda: model_summary("mlp", classes=0),
        lambda: model_summary("mlp", options=["layers"]),
        lambda: model_summary("no-such-model"),
        lambda: dataset_settings("photos", test=2.0),
    ],
)
def test_wrong_requests_name_the_next_step(call: Callable[[], object]) -> None:
    with pytest.raises(RequestError) as caught:
        call()
    assert caught.value.what and caught.value.next


def test_a_data_set_that_was_not_fetched_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path))
    with pytest.raises(DataError):
        cached_dataset(dataset_settings("mnist"))
