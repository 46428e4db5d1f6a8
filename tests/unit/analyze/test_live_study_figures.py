"""What is made of looks at a study that runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.analyze.study.live_study_figures import Memory, live_view, next_memory, time_left_s
from paceline.records.live_study import KILLED, RUNNING, PointLook, RankLook, RunLook, StudyLook, Watched
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import Pulse
from paceline.storage.run_trace import read_run
from paceline.studies.folder.watched_folder import watcher
from samples.compared_studies import attached_run
from samples.finished_study import finished_study


def pulse(step: int, beats: int = 1, total: int = 100, phase: str = "compute") -> Pulse:
    return Pulse(beats, step, total, 0, phase)


def run_look(*steps: int, beats: int = 1, **more: object) -> RunLook:
    ranks = tuple(RankLook(rank=rank, pulse=pulse(step, beats)) for rank, step in enumerate(steps))
    return replace(RunLook(key="run", label="2 ranks", point_id="p", number=1, ranks=ranks, elapsed_s=20.0), **more)


def study_look(run: RunLook | None, **more: object) -> StudyLook:
    points = (PointLook(point_id="p", label="2 ranks", of=3), PointLook(point_id="q", label="4 ranks", of=3))
    return replace(StudyLook(folder="f", name="n", state=RUNNING, told="told", points=points, run=run), **more)


def looked(*looks: tuple[float, RunLook], **more: object) -> Watched:
    """What is shown after looks at these instants."""
    memory, at_s = Memory(), 0.0
    for at_s, run in looks:
        memory = next_memory(memory, study_look(run, **more), at_s)
    return live_view(study_look(looks[-1][1], **more), memory, at_s=at_s, looked_at="now")


def test_each_rank_has_its_share_of_the_batch() -> None:
    seen = looked((0, run_look(10, 10, batch_per_rank=32)), (2, run_look(20, 18, beats=2, batch_per_rank=32)))
    assert seen.run is not None
    assert [rank.steps_per_s for rank in seen.run.ranks] == [5, 4]
    assert [rank.samples_per_s for rank in seen.run.ranks] == [160, 128]
    assert seen.run.samples_per_s == 288
    assert (seen.run.step, seen.run.total_steps) == (18, 100), "of the rank that has come least far"


def test_of_a_script_no_samples_are_known() -> None:
    seen = looked((0, run_look(10, 10)), (2, run_look(20, 20, beats=2)))
    assert seen.run is not None and seen.run.samples_per_s is None and seen.run.ranks[0].steps_per_s == 5


def test_a_rank_that_stands_still_or_is_gone_is_seen() -> None:
    first = run_look(10, 10)
    later = replace(first, ranks=(replace(first.ranks[0], pulse=pulse(12, 9)), first.ranks[1]))
    gone = replace(later, ranks=(later.ranks[0], RankLook(rank=1, pulse=None, ended="ended by signal 9")))
    seen = looked((0, first), (8, later))
    assert seen.run is not None and [rank.still_s for rank in seen.run.ranks] == [0, 8]
    seen = looked((0, first), (8, gone))
    assert seen.run is not None
    assert (seen.run.ranks[1].ended, seen.run.ranks[1].still_s, seen.run.ranks[1].step) == (
        "ended by signal 9",
        None,
        None,
    )


def test_another_run_begins_with_nothing() -> None:
    memory = next_memory(Memory(), study_look(run_look(10, 10)), 0.0)
    again = next_memory(memory, study_look(replace(run_look(50, 50, beats=5), key="next")), 2.0)
    assert all(len(moves.readings) == 1 for moves in again.moves.values())
    assert next_memory(memory, study_look(None), 2.0).moves == {}


def test_the_ledger_so_far_is_of_every_rank_and_their_mean(tmp_path: Path) -> None:
    traces = read_run(RunFolder(attached_run(tmp_path / "run", steps=30))).traces
    seen = looked((0, run_look(30, 30, spans=traces, launched_at_ns=0)))
    assert seen.run is not None and seen.run.ledger_step == 29 and seen.run.ledger_s is not None
    for ledger in (seen.run.ledger_s, *(rank.ledger_s for rank in seen.run.ranks)):
        assert ledger is not None
        assert sum(value or 0.0 for value in ledger.values()) == pytest.approx(seen.run.ledger_reaches_s)
    assert looked((0, run_look(3, 3))).run.ledger_s is None  # pyright: ignore[reportOptionalMemberAccess]


def test_time_left_is_of_this_run_and_of_those_after_it() -> None:
    pace = ((0.0, run_look(10, 10)), (2.0, run_look(20, 20, beats=2)))
    assert looked(*pace).left_s == pytest.approx(80 / 5)
    assert looked(*pace, pending_s=40.0).left_s == pytest.approx(16 + 40)
    assert looked(*pace, pending_unknown=2).left_s == pytest.approx(16 + 2 * (20 + 16)), "as long as this one"
    assert looked(*pace, pending_unknown=2, expected_s=30.0).left_s == pytest.approx(16 + 2 * 30)
    assert looked(*pace, state=KILLED).left_s is None


def test_without_a_pace_it_is_what_others_took_or_nothing() -> None:
    assert looked((0.0, run_look(0, 0)), expected_s=50.0).left_s == pytest.approx(30)
    assert looked((0.0, run_look(0, 0)), expected_s=5.0).left_s == 0.0, "longer than the others"
    assert looked((0.0, run_look(0, 0))).left_s is None
    assert time_left_s(study_look(None, pending_s=7.0), None) == 7.0
    assert time_left_s(study_look(None), None) is None


def test_figures_of_a_point_are_made_anew_when_a_run_of_it_ends(tmp_path: Path) -> None:
    finished_study(tmp_path / "study", tmp_path / "cache")
    whole = watcher(tmp_path / "study").look()
    part = replace(whole, points=tuple(replace(point, results=point.results[:1]) for point in whole.points))
    memory = next_memory(Memory(), part, 0.0)
    assert {point.epoch_s.n for point in memory.points.values() if point.epoch_s} == {1}
    later = next_memory(memory, whole, 2.0)
    assert {point.epoch_s.n for point in later.points.values() if point.epoch_s} == {3}
    again = next_memory(later, whole, 4.0)
    assert all(again.points[name] is point for name, point in later.points.items())


def test_points_say_which_is_on() -> None:
    seen = looked((0.0, run_look(1, 1)))
    assert [(point.label, point.state) for point in seen.points] == [("2 ranks", "running"), ("4 ranks", "waiting")]
    assert (seen.done, seen.of) == (0, 6)
    assert {point.state for point in looked((0.0, run_look(1, 1)), state=KILLED).points} == {"waiting"}
