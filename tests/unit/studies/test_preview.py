from pathlib import Path

import pytest
from study_help import FakeLauncher, loaded

from paceline.data import store
from paceline.errors import RequestError
from paceline.records.study import DataSettings
from paceline.studies.execute import execute
from paceline.studies.load import load_study
from paceline.studies.preview import preview


def test_a_preview_of_what_was_never_run_fetches_and_writes_nothing(tmp_path: Path) -> None:
    study = load_study("mnist-scaling", ["run.ranks=1,3"])
    found = preview(study, tmp_path / "out", launcher=FakeLauncher(), cache=tmp_path / "cache")
    assert (found.runs, found.finished, found.dataset) == (10, None, None)
    one, three = found.points
    assert (one.ranks, one.batch_global, one.batch_per_rank, one.steps_per_epoch) == (1, 128, 128, 94)
    assert (three.ranks, three.threads, three.strategy, three.placement) == (3, 1, "ddp", "3 nowhere")
    assert (one.oversubscribed, three.oversubscribed, three.finished) == (False, True, None)
    assert 42 < three.batch_per_rank < 43
    assert list(tmp_path.iterdir()) == []


def test_a_preview_knows_what_is_finished(tmp_path: Path) -> None:
    cache, out = tmp_path / "cache", tmp_path / "out"
    store.prepare(DataSettings(dataset="digits"), base=tmp_path, cache=cache)
    study = load_study("digits", ["run.repeats=2"])
    found = preview(study, out, launcher=FakeLauncher(), cache=cache)
    assert (found.finished, [point.finished for point in found.points]) == (0, [0, 0])
    assert found.points[0].steps_per_epoch == -(-(found.dataset.train - 150) // 64)  # pyright: ignore[reportOptionalMemberAccess]
    execute(study, out, launcher=FakeLauncher(), preflight=False, cache=cache)
    found = preview(load_study("digits", ["run.repeats=3"]), out, launcher=FakeLauncher(), cache=cache)
    assert (found.runs, found.finished, [point.finished for point in found.points]) == (6, 4, [2, 2])
    with pytest.raises(RequestError, match="no room for 2 ranks"):
        preview(load_study("digits", ["run.repeats=3"]), out, launcher=FakeLauncher(most=1), cache=cache)
    assert preview(study, out, launcher=FakeLauncher(most=1), cache=cache).finished == 4, (
        "what is finished needs no room"
    )


def test_weak_scaling_grows_the_global_batch(tmp_path: Path) -> None:
    found = preview(loaded(tmp_path, "train.batch_per_rank=8"), launcher=FakeLauncher(), cache=tmp_path / "cache")
    assert [(point.batch_global, point.batch_per_rank) for point in found.points] == [(8, 8), (16, 8)]
