from pathlib import Path

from study_help import FakeLauncher, loaded

from paceline.data import store
from paceline.records.study import DataSettings
from paceline.study.execute import execute, plan
from paceline.study.load import load_study


def test_a_plan_of_what_was_never_run_fetches_and_writes_nothing(tmp_path: Path) -> None:
    study = load_study("mnist-scaling", ["run.ranks=1,3"])
    found = plan(study, tmp_path / "out", launcher=FakeLauncher(), cache=tmp_path / "cache")
    assert (found.runs, found.finished, found.dataset) == (10, None, None)
    one, three = found.points
    assert (one.ranks, one.batch_global, one.batch_per_rank, one.steps_per_epoch) == (1, 128, 128, 94)
    assert (three.ranks, three.threads, three.strategy, three.placement) == (3, 1, "ddp", "3 nowhere")
    assert (one.oversubscribed, three.oversubscribed, three.finished) == (False, True, None)
    assert 42 < three.batch_per_rank < 43
    assert list(tmp_path.iterdir()) == []


def test_a_plan_knows_what_is_finished(tmp_path: Path) -> None:
    cache, out = tmp_path / "cache", tmp_path / "out"
    store.prepare(DataSettings(dataset="digits"), base=tmp_path, cache=cache)
    study = load_study("digits", ["run.repeats=2"])
    found = plan(study, out, launcher=FakeLauncher(), cache=cache)
    assert (found.finished, [point.finished for point in found.points]) == (0, [0, 0])
    assert found.points[0].steps_per_epoch == -(-(found.dataset.train - 150) // 64)  # pyright: ignore[reportOptionalMemberAccess]
    execute(study, out, launcher=FakeLauncher(), preflight=False, cache=cache)
    found = plan(load_study("digits", ["run.repeats=3"]), out, launcher=FakeLauncher(), cache=cache)
    assert (found.runs, found.finished, [point.finished for point in found.points]) == (6, 4, [2, 2])


def test_weak_scaling_grows_the_global_batch(tmp_path: Path) -> None:
    found = plan(loaded(tmp_path, "train.batch_per_rank=8"), launcher=FakeLauncher(), cache=tmp_path / "cache")
    assert [(point.batch_global, point.batch_per_rank) for point in found.points] == [(8, 8), (16, 8)]
