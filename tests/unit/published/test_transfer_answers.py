"""Verdicts about transfer learning: what leads to chance, and what fine-tuning gains."""

from __future__ import annotations

from dataclasses import replace

from paceline.published.beside import published_comparison
from paceline.published.records import Answer
from paceline.published.table_files import published_study
from paceline.records.study import Point
from paceline.reporting.wording.learning_words import gain_sentences
from samples import published_samples
from samples.published_samples import answer


def transfer(*overrides: str) -> Answer:
    """transfer-cifar10 where pixels that are scaled twice leave the head at chance, and small images do not."""

    def accuracy(point: Point, run: int) -> float:
        options = point.model.options
        usual = 0.85 if options["image_size"] == 112 else 0.52
        return (0.12 if options.get("preprocessing") == "twice" else usual) + 0.0001 * run

    results = published_samples.results_of("transfer-cifar10", accuracy=accuracy, overrides=overrides)
    return answer(results, "transfer-at-chance")


def test_what_leads_to_chance() -> None:
    whole = transfer()
    assert whole.answered and whole.figure == "12.03 ± 0.02 % in place of 85.03 ± 0.02 %"
    assert whole.verdict.startswith("Preprocessing twice in place of own leads to chance, all else equal")
    assert "Not so image size 32, which alone leaves 52.03" in whole.verdict
    one_size, right, wrong = "model.image_size=112", "model.preprocessing=own", "model.preprocessing=twice"
    assert transfer('model.preprocessing=["own","twice"]', one_size).verdict.endswith("Nothing else was changed.")
    for alone in (transfer(right, one_size), transfer(wrong, "model.image_size=32")):
        assert not alone.answered and "--set 'model.preprocessing" in alone.verdict and alone.opening == alone.verdict


def test_what_leads_to_chance_takes_five_repeats_and_every_run() -> None:
    def accuracy(point: Point, run: int) -> float:
        return (0.12 if point.model.options.get("preprocessing") == "twice" else 0.85) + 0.0001 * run

    few = published_samples.results_of("transfer-cifar10", accuracy=accuracy, repeats=4)
    found = answer(few, "transfer-at-chance")
    assert not found.answered and found.verdict.endswith(
        "With 4 repeats that is no test: five are needed (--repeats 5)."
    )

    def one_learns(point: Point, run: int) -> float:
        return 0.22 if run == 1 and accuracy(point, run) < 0.2 else accuracy(point, run)

    mixed = answer(published_samples.results_of("transfer-cifar10", accuracy=one_learns), "transfer-at-chance")
    assert not mixed.answered and "some runs with 112 pixels and preprocessing twice may be there" in mixed.verdict

    def one_dies(point: Point, run: int) -> float:
        return 0.1 if run == 1 else accuracy(point, run)

    dying = answer(published_samples.results_of("transfer-cifar10", accuracy=one_dies), "transfer-at-chance")
    assert not dying.answered, "no point is free of runs at chance"


def test_fine_tuning_names_the_point_that_the_report_speaks_of() -> None:
    results = published_samples.usual("fruits-gpus")
    asked = replace(published_study("cifar10-nodes"), asked_alone=("fruits-gpus",))
    questions = tuple(replace(q, studies=("fruits-gpus",)) for q in asked.questions if q.name == "fine-tune-worse")
    (found,) = published_comparison(replace(asked, questions=questions), results).answers
    (said,) = gain_sentences(results)
    assert "over 5 repeats with 1 rank." in found.verdict and "test accuracy of 1 rank by" in said


def test_fine_tuning_has_a_study_of_its_own() -> None:
    found = answer(published_samples.usual("fine-tuning"), "fine-tune-worse")
    assert found.opening == "Fine-tuning made it better by +1.00 points [+1.00, +1.00] over 5 repeats."
