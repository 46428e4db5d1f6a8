from pathlib import Path

import pytest
from study_help import loaded, result

from paceline.launch.launcher import Progress
from paceline.studies.execute.time_left import Pace
from paceline.studies.expand.expand import expand, schedule
from paceline.studies.folder.estimates import Estimates


@pytest.fixture
def runs(tmp_path: Path):
    return schedule(expand(loaded(tmp_path).study, data_digest="", model_digest=""), 2)


def test_time_left_grows_from_steps_to_runs(runs) -> None:
    now = 100.0
    estimates = Estimates()
    pace = Pace(estimates, clock=lambda: now)
    pace.start()
    first, second, third, fourth = runs
    assert pace.left_s(first, Progress(step=0, total_steps=0, phase="startup"), runs[1:]) is None
    now = 103.0  # three seconds of startup
    assert pace.left_s(first, Progress(step=0, total_steps=100, phase="compute"), runs[1:]) is None
    now = 105.0  # 20 steps in 2 s: 10 s for all, so the run takes 13 s
    assert pace.left_s(first, Progress(step=20, total_steps=100, phase="compute"), runs[1:]) == 8 + 3 * 13
    estimates.add(first.point, result(first, wall_s=13.0))
    pace.start()
    assert pace.left_s(second, Progress(step=0, total_steps=0, phase="startup"), [third, fourth]) == 3 * 13
    estimates.add(second.point, result(second, wall_s=7.0))
    pace.start()  # third is of the second point, fourth of the first
    assert pace.left_s(third, Progress(step=0, total_steps=0, phase="startup"), [fourth]) == 7 + 13
    now = 200.0  # slower than ever: the time left does not become negative
    assert pace.left_s(third, Progress(step=9, total_steps=100, phase="compute"), [fourth]) == 13


def test_time_in_a_queue_is_not_time_of_the_run(runs) -> None:
    now = 0.0
    pace = Pace(Estimates(), clock=lambda: now)
    pace.start()
    now = 500.0
    pace.waiting(Progress(step=0, total_steps=0, phase="queued (Priority)"))
    now = 503.0
    pace.waiting(Progress(step=0, total_steps=0, phase="startup"))
    assert pace.elapsed_s == 3.0
