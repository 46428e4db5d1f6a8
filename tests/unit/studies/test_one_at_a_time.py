"""One factor at a time: the baseline, and for every other value of a factor the baseline with that alone."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.records.settings import ModelSettings, RunSettings, TrainSettings
from paceline.records.study import Point, Study, point_label
from paceline.studies.expand.expand import expand, num_variants, unchanging, variants

VALUES = {
    "train.epochs": st.integers(1, 50),
    "train.lr": st.floats(1e-4, 1.0),
    "train.batch_global": st.integers(8, 4096),
    "run.threads": st.integers(1, 64),
    "run.cores": st.integers(1, 64),
    "run.pin": st.booleans(),
    "model.neurons": st.integers(1, 512),
    "model.name": st.sampled_from(["mlp", "my_file.py:build", "other.py:net"]),
    "data.train_samples": st.integers(8, 60_000),
}


@st.composite
def studies(draw) -> Study:
    paths = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, min_size=1, max_size=5))
    vary = {path: tuple(draw(st.lists(VALUES[path], unique=True, min_size=2, max_size=5))) for path in paths}
    ranks = tuple(draw(st.lists(st.integers(1, 8), unique=True, min_size=1, max_size=4)))
    # Before the factors it has other values than any of them.
    return Study(
        name="s",
        design="one-at-a-time",
        model=ModelSettings(name="mlp", options={"neurons": 1000}),
        train=TrainSettings(batch_global=5000, epochs=100),
        run=RunSettings(ranks=ranks, threads=100),
        vary=vary,
    )


def settings(point: Point) -> dict[str, object]:
    """Every setting of a point under its path."""
    flat: dict[str, object] = {}
    for section, fields in asdict(point).items():
        flat |= {f"{section}.{k}": v for k, v in fields.items()} if isinstance(fields, dict) else {section: fields}
    flat |= {f"model.{key}": value for key, value in point.model.options.items()}
    del flat["model.options"]
    return flat


def points_of(study: Study) -> tuple[Point, ...]:
    return expand(study, data_digest="d", model_digest="m")


@given(studies())
def test_there_is_the_baseline_and_one_point_for_every_other_value(study: Study) -> None:
    points = points_of(study)
    values = [*study.vary.values(), study.run.ranks]
    assert len(points) == 1 + sum(len(own) - 1 for own in values) == num_variants(study)
    assert len({point.point_id for point in points}) == len(points)


@given(studies())
def test_every_point_differs_from_the_baseline_in_exactly_one_setting(study: Study) -> None:
    baseline, *others = map(settings, points_of(study))
    differing = [{key for key in baseline if baseline[key] != other[key]} for other in others]
    assert all(len(keys) == 1 for keys in differing)
    assert {key for (key,) in differing} == {
        *(path if path.partition(".")[0] in ("train", "model", "data") else path.split(".")[1] for path in study.vary),
        *(["ranks"] if len(study.run.ranks) > 1 else []),
    }


@given(studies())
def test_the_baseline_has_the_first_value_of_every_factor_and_is_the_first_point(study: Study) -> None:
    first = settings(points_of(study)[0])
    for path, values in study.vary.items():
        assert first[path if path in first else path.split(".")[1]] == values[0]
    assert first["ranks"] == study.run.ranks[0]


def test_points_follow_the_order_of_the_file() -> None:
    study = Study(
        name="s",
        design="one-at-a-time",
        model=ModelSettings(name="mlp"),
        train=TrainSettings(batch_global=64, epochs=1),
        run=RunSettings(ranks=(1, 2)),
        vary={"model.neurons": (32, 128, 256), "run.threads": (1, 2)},
    )
    assert [point_label(point, study.vary) for point in points_of(study)] == [
        "1 rank, 32 neurons, 1 thread",
        "2 ranks, 32 neurons, 1 thread",
        "1 rank, 128 neurons, 1 thread",
        "1 rank, 256 neurons, 1 thread",
        "1 rank, 32 neurons, 2 threads",
    ]


def test_the_grid_of_the_same_factors_has_every_combination() -> None:
    study = Study(
        name="s",
        train=TrainSettings(batch_global=64),
        run=RunSettings(ranks=(1, 2)),
        vary={"train.epochs": (1, 2, 3), "run.threads": (1, 2)},
    )
    assert len(points_of(study)) == num_variants(study) == 12


@pytest.mark.parametrize(
    ("ranks", "vary", "said"),
    [
        ((1,), {"run.strategy": ("ddp", "flat")}, [("run.strategy", "flat")]),  # one rank exchanges nothing
        ((2,), {"run.strategy": ("ddp", "flat")}, []),
        ((2,), {"run.strategy": ("ddp", "parameter-server"), "run.servers": (1, 2)}, [("run.servers", 2)]),
        ((2,), {"run.strategy": ("parameter-server", "ddp"), "run.servers": (1, 2)}, []),
    ],
)
def test_a_value_that_changes_nothing_is_known(ranks: tuple[int, ...], vary: dict, said: list) -> None:
    study = Study(name="s", design="one-at-a-time", train=TrainSettings(batch_global=8), run=RunSettings(ranks=ranks))
    study = replace(study, vary=vary)
    assert list(unchanging(study)) == said


def test_an_option_goes_to_the_models_that_take_it() -> None:
    study = Study(
        name="s",
        model=ModelSettings(name="mlp", options={"neurons": 32, "dropout": 0.1}),
        train=TrainSettings(batch_global=8),
        vary={"model.name": ("mlp", "cnn-small"), "model.neurons": (32, 64)},
    )
    assert [variant.model.options for variant in variants(study)] == [
        {"neurons": 32, "dropout": 0.1},
        {"neurons": 64, "dropout": 0.1},
        {"dropout": 0.1},
        {"dropout": 0.1},
    ]
    assert len(points_of(study)) == 6  # of cnn-small, which has no neurons to vary, one for each number of ranks
