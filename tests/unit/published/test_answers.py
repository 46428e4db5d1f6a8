"""Open questions: verdicts follow the results, whichever way they come out."""

from __future__ import annotations

import re

import pytest

from paceline.published.answers.verdicts_by_name import VERDICTS
from paceline.published.beside import published_comparison
from paceline.published.table_files import published_names, published_study
from paceline.studies.load.load import load_study, shipped_studies
from samples import published_samples
from samples.published_samples import answer

QUESTIONS = {q.name: q for name in published_names() for q in published_study(name).questions}


def test_every_open_question_is_there_by_name() -> None:
    named = {
        *("transfer-at-chance", "fine-tune-worse", "two-nodes-slower", "same-time-any-nodes", "got-what-was-asked"),
        *("real-user-sys", "too-complex-models", "accuracy-falls-with-batch", "message-log"),
        *("hyper-parameters-vs-resources", "more-cores-slower", "overfitting", "what-made-the-cloud-faster"),
        *("checkpoint-cost", "best-split", "averaging-loses-precision", "epochs-to-stable-vs-ranks", "sixteen-gpus"),
        *("v100-equals-t4", "superlinear", "which-size-first", "accuracy-falls-with-ranks", "allreduce-instead"),
        *("partial-reads", "gpu", "model-parallel", "nodes-or-processes", "table-contradicts-itself"),
    }
    own = {"how-much-sooner"}  # what the printed table itself asks
    assert set(QUESTIONS) == named | own


@pytest.mark.parametrize("name", published_names())
def test_a_study_that_answers_a_question_has_it_in_its_own_report(name: str) -> None:
    """Whichever file asks it: a study that is named as answering has the question in the file that it names."""
    for question in published_study(name).questions:
        for study in question.studies:
            published = published_study(load_study(study).study.published)
            own = next((one for one in published.questions if one.name == question.name), None)
            assert own is not None and study in own.studies, (question.name, study)


def test_each_is_answered_by_a_shipped_study_or_says_what_it_waits_for() -> None:
    shipped = {study.name: study for study in shipped_studies()}
    for question in QUESTIONS.values():
        assert bool(question.studies) != bool(question.missing), question.name
        assert set(question.studies) <= set(shipped)
        assert bool(question.studies) == (question.name in VERDICTS)
    assert {QUESTIONS[name].missing != "" for name in ("sixteen-gpus", "model-parallel", "best-split")} == {True}


def test_other_studies_are_named_with_their_command() -> None:
    found = answer(published_samples.usual("fruits-gpus"), "averaging-loses-precision")
    assert not found.answered and found.command == "paceline study averaging"


@pytest.mark.parametrize("name", published_samples.ASKED)
def test_studies_that_repeat_no_row_have_their_questions_alone(name: str) -> None:
    published = published_samples.beside_of(published_samples.usual(name))
    assert published is not None and published.tables == () == published.contradictions
    assert published.answers and all(name in one.question.studies for one in published.answers)


@pytest.mark.parametrize("repeats", [3, 5])
@pytest.mark.parametrize("cores", [2, 8])
@pytest.mark.parametrize("name", [*published_samples.STUDIES, *published_samples.ASKED, *published_samples.OTHERWISE])
def test_a_verdict_has_two_sentences_at_most(name: str, cores: int, repeats: int) -> None:
    results = published_samples.results_of(name, cores=cores, repeats=repeats)
    times = {point.point_id: published_samples.cpu_times(1e9) for point in results.points}
    for one in published_comparison(published_study(results.study.published), results, times).answers:
        assert one.verdict.endswith((".", "cuda")), one.verdict
        assert len(re.split(r"(?<=[.?]) ", one.verdict)) <= 2, one.verdict
        assert len(re.split(r"(?<=[.?]) ", one.opening)) <= 2, one.opening
