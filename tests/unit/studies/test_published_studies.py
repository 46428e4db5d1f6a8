"""The shipped studies of published ones: all load and expand at both sizes, and say what they are of."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from paceline.app.study_loading import load
from paceline.errors import StudyFileError
from paceline.published.records import TIME
from paceline.published.table_files import published_names, published_study
from paceline.studies.execute.fits import misfit_reason
from paceline.studies.expand.expand import expand
from paceline.studies.load.load import LoadedStudy, load_study, shipped_studies
from samples import published_samples

NINE = {
    *("mnist-mpi", "mnist-batch-size", "fashion-sequential", "fashion-parameters", "flowers-sequential"),
    *("flowers-cloud", "cifar10-nodes", "fruits-gpus", "caltech256-gpus"),
}

FEWER_STEPS = {
    # Equal epochs are what is compared: as many steps at 2,048 would be 6,400 at 64.
    ("mnist-batch-size", 1024): 120,
    ("mnist-batch-size", 2048): 60,
    # All of its 23 million parameters are fine-tuned, and on three ranks for a third of the epochs.
    ("cifar10-nodes-resnet50", 3 * 128): 100,
}
"""By study and global batch: what its points have where they have fewer than two hundred steps."""


def loaded() -> Iterator[LoadedStudy]:
    for name in published_samples.STUDIES:
        yield load_study(name, size="small")


def test_there_is_one_for_every_published_table() -> None:
    shipped = {study.name for study in shipped_studies()}
    assert set(published_names()) == NINE <= set(published_samples.STUDIES) <= shipped
    for study in loaded():
        assert study.study.published in NINE
        assert study.study.name.startswith(study.study.published)
    named = {name for name in shipped if load_study(name).study.published}
    assert named == {*published_samples.STUDIES, *published_samples.ASKED, *published_samples.OTHERWISE}


@pytest.mark.parametrize("name", published_samples.ASKED)
def test_studies_that_answer_questions_alone(name: str) -> None:
    """They name the published study that asks, which names them; they have one size and no rows of their own."""
    study = load_study(name).study
    published = published_study(study.published)
    assert name in published.asked_alone and study.size == "" and study.question
    assert any(name in question.studies for question in published.questions)
    assert not any(row.study == name for table in published.tables for row in table.rows)


@pytest.mark.parametrize("name", published_samples.OTHERWISE)
def test_studies_that_repeat_rows_with_another_training(name: str) -> None:
    """They have the table beside them, one size, and a recipe that the published study did not have."""
    study = load_study(name).study
    published = published_study(study.published)
    assert name not in published.asked_alone and study.size == "" and study.train.recipe == "scale"
    assert any(name == question.studies[0] for question in published.questions)


@pytest.mark.parametrize("name", sorted(NINE))
def test_what_a_report_opens_with_is_asked_and_answered_there(name: str) -> None:
    published = published_study(name)
    questions = {question.name: question for question in published.questions}
    for study, led in published.leads.items():
        assert load_study(study).study.published == name and set(led) - {TIME} and len(led) <= 2
        for question in set(led) - {TIME}:
            assert study in questions[question].studies, (study, question)
    assert set(published.asked_alone) <= set(published.leads)


def test_every_study_but_one_opens_with_the_answer_to_its_question() -> None:
    """fashion-parameters asks what each factor changes, which the verdict of such a design says anyway."""
    led = {study for name in NINE for study in published_study(name).leads}
    every = {*published_samples.STUDIES, *published_samples.ASKED, *published_samples.OTHERWISE}
    assert led == every - {"fashion-parameters"}


@pytest.mark.parametrize("name", published_samples.STUDIES)
@pytest.mark.parametrize("size", ["small", "full"])
def test_both_sizes_expand(name: str, size: str) -> None:
    study = load_study(name, size=size).study
    points = expand(study, data_digest="d" * 64, model_digest="")
    assert study.size == size and study.fits == "machine" and study.question and len(points) >= 1
    assert len({point.point_id for point in points}) == len(points)


@pytest.mark.parametrize("name", published_samples.STUDIES)
def test_small_is_what_is_run_where_nothing_is_said(name: str) -> None:
    small, full = load(name).study, load_study(name, size="full").study
    assert small.size == "small" and small.full and small != full
    assert small.model.name == full.model.name or name == "cifar10-nodes-efficientnet"
    assert small.train.batch_per_rank == full.train.batch_per_rank
    # One server is what two cores have room for; the published three are tried, too, where there is more.
    assert small.vary.keys() <= full.vary.keys() | ({"run.servers"} if name == "flowers-cloud" else set())
    assert small.train.optimizer == full.train.optimizer and small.train.lr == full.train.lr


@pytest.mark.parametrize("name", published_samples.STUDIES)
def test_steps_of_a_small_point(name: str) -> None:
    """Two hundred over the repeats of a point, but where these would take more than ten minutes on two cores."""
    study = load(name).study
    for point in expand(study, data_digest="d" * 64, model_digest=""):
        if point.ranks > 4 or point.data.train_samples is None:
            continue
        epochs = (point.train.epochs or 0) + point.finetune.epochs
        steps = -(-point.data.train_samples // point.batch_global) * epochs * study.run.repeats
        assert steps >= FEWER_STEPS.get((name, point.batch_global), 200), (point.ranks, steps)


@pytest.mark.parametrize(
    ("name", "on_two", "on_sixteen"),
    [
        ("mnist-batch-size", 6, 12),
        ("mnist-mpi", 3, 4),
        ("flowers-cloud", 10, 18),
        ("flowers-cloud-controlled", 6, 10),
        ("fashion-parameters", 12, 13),
    ],
)
def test_a_larger_machine_runs_more_of_the_small_size(name: str, on_two: int, on_sixteen: int) -> None:
    study = load(name).study
    points = expand(study, data_digest="d" * 64, model_digest="")
    held = {cores: sum(not misfit_reason(study, point, cores) for point in points) for cores in (2, 16)}
    assert held == {2: on_two, 16: on_sixteen}


def test_as_published_where_it_is_known() -> None:
    mpi = load_study("mnist-mpi", size="full").study
    assert (mpi.train.batch_per_rank, mpi.train.epochs, mpi.train.lr) == (128, 5, 0.001)
    assert mpi.run.strategy == "mpi-reduce-broadcast-pickled" and mpi.data.read == "whole"
    batches = load_study("mnist-batch-size", size="full").study
    printed = [row.settings["batch_global"][0] for row in published_study("mnist-batch-size").tables[0].rows]
    assert list(batches.vary["train.batch_global"]) == printed and batches.train.epochs == 12
    fruits = load_study("fruits-gpus", size="full").study
    assert (fruits.train.lr, fruits.train.batch_per_rank, fruits.run.ranks) == (0.1, 32, (1, 2, 4))
    caltech = load_study("caltech256-gpus", size="full").study
    assert caltech.train.epochs == 30 and caltech.data.validation == 0.2 and {2, 4, 8} <= set(caltech.run.ranks)


def test_one_factor_at_a_time_has_every_published_value() -> None:
    study = load_study("fashion-parameters").study
    for row in published_study("fashion-parameters").tables[0].rows:
        for path, values in row.settings.items():
            assert values[0] in study.vary[path]


def test_they_read_as_documentation() -> None:
    for shipped in shipped_studies():
        if shipped.name in published_samples.STUDIES:
            words = shipped.path.read_text(encoding="utf-8")
            assert f"paceline study {shipped.name}" in words and "[small]" in words
            assert re.search(r"Not given\s+(#\s+)?in print|published", words)


def test_an_unknown_published_study_is_refused() -> None:
    with pytest.raises(StudyFileError, match="mnist-mpi"):
        load_study("digits", ["study.published=mnist-mpl"])
