"""How fast a rank moves, from looks at its pulse."""

from __future__ import annotations

import pytest

from paceline.analyze.study.live_study_figures import PulseReadings, steps_per_s, with_pulse
from paceline.storage.pulse import Pulse


def seen(*looks: tuple[float, int], beats: bool = True) -> PulseReadings | None:
    moves = None
    for number, (at_s, step) in enumerate(looks, start=1):
        moves = with_pulse(moves, Pulse(number if beats else 1, step, 100, 0, "compute"), at_s)
    return moves


def test_a_rate_needs_two_looks_and_a_step_between_them() -> None:
    assert steps_per_s(None) is None
    assert steps_per_s(seen((0, 5))) is None
    assert steps_per_s(seen((0, 5), (2, 5))) is None
    assert steps_per_s(seen((0, 5), (2, 9))) == pytest.approx(2)
    assert steps_per_s(seen((0, 5), (0.1, 6))) is None, "too soon"


def test_start_up_is_no_part_of_a_pace() -> None:
    assert steps_per_s(seen((0, 0), (10, 0), (12, 8))) == pytest.approx(4)


def test_a_rank_that_stands_still_gets_slower() -> None:
    assert steps_per_s(seen((0, 1), (2, 9), (4, 9), (8, 9))) == pytest.approx(1)


def test_old_readings_are_forgotten() -> None:
    looks = [(float(second), second) for second in range(0, 40, 2)]
    looks += [(40.0 + second, 40 + 5 * second) for second in range(0, 20, 2)]
    assert steps_per_s(seen(*looks)) == pytest.approx(5, rel=0.01)


def test_what_goes_back_begins_anew() -> None:
    assert steps_per_s(seen((0, 50), (2, 60), (4, 10))) is None
    assert steps_per_s(seen((0, 50), (2, 60), (4, 10), (6, 30))) == pytest.approx(10)


def test_a_sign_of_life_is_a_new_beat() -> None:
    moves = seen((0, 5), (2, 5), (4, 5), beats=False)
    assert moves is not None and moves.moved_at_s == 0
    moves = seen((0, 5), (2, 5), (4, 5))
    assert moves is not None and moves.moved_at_s == 4
