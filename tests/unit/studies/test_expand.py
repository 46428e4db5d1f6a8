from dataclasses import replace

from paceline.records.settings import DataSettings, ModelSettings, RunSettings, TrainSettings
from paceline.records.study import Study
from paceline.studies.expand.expand import expand, schedule

STUDY = Study(
    name="s",
    train=TrainSettings(batch_global=8, epochs=1, seed=5),
    run=RunSettings(ranks=(4, 1, 2), threads=3, strategy="flat", device="cpu", pin=False, repeats=2),
)


def points(study: Study = STUDY):
    return expand(study, data_digest="d", model_digest="m")


def test_points_follow_the_order_of_the_file_and_carry_every_setting() -> None:
    assert [point.ranks for point in points()] == [4, 1, 2]
    for point in points():
        assert (point.data_digest, point.model_digest) == ("d", "m")
        assert (point.threads, point.strategy, point.device, point.pin) == (3, "flat", "cpu", False)
        assert point.train == STUDY.train and point.data == STUDY.data and point.model == STUDY.model


def test_repeats_are_interleaved_and_alternate_in_direction() -> None:
    runs = schedule(points(), 3)
    assert [(run.point.ranks, run.number) for run in runs] == [
        (4, 1),
        (1, 1),
        (2, 1),
        (2, 2),
        (1, 2),
        (4, 2),
        (4, 3),
        (1, 3),
        (2, 3),
    ]
    assert {run.seed for run in runs if run.number == 3} == {7}


def test_repeats_and_patience_leave_points_as_they_are() -> None:
    other = replace(STUDY, title="t", run=replace(STUDY.run, repeats=9, heartbeat_s=1.0, ranks=(1, 2, 4)))
    assert {point.point_id for point in points(other)} == {point.point_id for point in points()}


def test_where_a_file_lies_leaves_points_as_they_are_but_not_its_contents() -> None:
    def ids(model: str, data: str, digest: str = "m") -> set[str]:
        study = replace(STUDY, model=ModelSettings(name=model), data=DataSettings(dataset=data))
        return {point.point_id for point in expand(study, data_digest="d", model_digest=digest)}

    here = ids("/a/net.py:build", "/a/x.npz")
    assert ids("/b/c/net.py:build", "/b/x.npz") == here
    assert not here & ids("/a/net.py:build", "/a/x.npz", digest="other")
    assert not here & ids("/a/net.py:wide", "/a/x.npz")


def test_any_setting_makes_another_point() -> None:
    changes = [
        replace(STUDY, train=replace(STUDY.train, lr=0.5)),
        replace(STUDY, train=replace(STUDY.train, batch_global=None, batch_per_rank=8)),
        replace(STUDY, train=replace(STUDY.train, seed=6)),
        replace(STUDY, data=replace(STUDY.data, validation=0.1)),
        replace(STUDY, model=replace(STUDY.model, options={"width": 2})),
        replace(STUDY, run=replace(STUDY.run, threads=1)),
        replace(STUDY, run=replace(STUDY.run, pin=True)),
    ]
    every = [frozenset(point.point_id for point in points(study)) for study in (STUDY, *changes)]
    assert len(frozenset.union(*every)) == 3 * len(every)
