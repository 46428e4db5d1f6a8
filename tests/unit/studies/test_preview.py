import time
from pathlib import Path

import pytest
from study_help import FakeLauncher, loaded

from paceline.data import store
from paceline.errors import RequestError
from paceline.records.settings import DataSettings
from paceline.records.study import Point
from paceline.storage.folder import RunFolder
from paceline.studies.execute.execute import execute
from paceline.studies.execute.preview import preview
from paceline.studies.load.load import load_study


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
    found = preview(study, out, launcher=FakeLauncher(), preflight=False, cache=cache)
    assert (found.rank_h, found.basis) == (None, "not known before the first run")
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


class Scheduler(FakeLauncher):
    """Hands a job to somebody."""

    def script(self, point: Point, folder: RunFolder) -> str:
        return f"#!/bin/sh\ntrain {folder.path} {point.ranks}\n"


def test_a_preview_shows_factors_and_job_scripts(tmp_path: Path) -> None:
    study = loaded(tmp_path, "run.ranks=2", "run.strategy=parameter-server,flat", "run.servers=1,2")
    found = preview(study, tmp_path / "out", launcher=Scheduler(), cache=tmp_path / "cache")
    assert [point.label for point in found.points] == [
        "2 ranks, parameter-server, 1 server",
        "2 ranks, parameter-server, 2 servers",
        "2 ranks, flat",
    ]
    assert [point.factors for point in found.points] == [
        {"run.strategy": "parameter-server", "run.servers": 1},
        {"run.strategy": "parameter-server", "run.servers": 2},
        {"run.strategy": "flat", "run.servers": None},
    ]
    for point in found.points:
        assert point.script is not None and point.script.startswith("#!/bin/sh\ntrain ")
        assert str(tmp_path / "out" / "points") in point.script and point.script.endswith("/runs/1 2\n")
    assert not (tmp_path / "out").exists()
    assert preview(study, tmp_path / "out", launcher=FakeLauncher(), cache=tmp_path / "cache").points[0].script is None


def test_a_preview_estimates_what_is_left_from_what_is_finished(tmp_path: Path) -> None:
    cache, out = tmp_path / "cache", tmp_path / "out"
    study = load_study("digits", ["run.repeats=2"])
    execute(study, out, launcher=FakeLauncher(before=lambda manifest: time.sleep(0.02)), preflight=False, cache=cache)
    done = preview(study, out, launcher=FakeLauncher(), cache=cache)
    assert (done.rank_h, [point.rank_h for point in done.points]) == (0.0, [0.0, 0.0])
    more = preview(
        load_study("digits", ["run.repeats=4", "run.ranks=1,2,3"]), out, launcher=FakeLauncher(), cache=cache
    )
    assert more.basis.startswith("from the runs that are finished")
    one, two, three = (point.rank_h or 0.0 for point in more.points)
    assert one > 2 * 0.02 / 3600 and two > one and three > 0
    assert more.rank_h == pytest.approx(one + two + three)


def test_before_the_first_run_a_few_steps_of_the_model_are_timed(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    store.prepare(DataSettings(dataset="digits"), base=tmp_path, cache=cache)
    found = preview(load_study("digits", ["run.strategy=ddp,flat"]), tmp_path / "out", cache=cache)
    assert found.basis.startswith("from a few steps of one rank; starting the ranks")
    assert found.rank_h is not None and 0 < found.rank_h < 1
    one, two = found.points[:2]
    assert one.rank_h == pytest.approx(two.rank_h), "the same samples, whoever computes them"
    assert not (tmp_path / "out").exists()
