"""Sentences about a recipe are made last: with all of them reworded, every figure of a study stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paceline.analyze.study.study_results import study_results
from paceline.records.settings import TrainSettings
from paceline.records.study import Study
from paceline.reporting.export.json_view import json_object
from paceline.reporting.export.rows import rows
from paceline.reporting.wording import choice_words
from paceline.studies.expand.recipe import with_recipe
from samples.trace_samples import traces_of


@pytest.mark.parametrize(
    "said",
    [
        {"recipe": "scale", "batch_per_rank": 2048, "epochs_rule": "divide-by-ranks"},
        {"recipe": "scale", "batch_global": 512, "optimizer": "sgd"},
        {"recipe": "as-published", "batch_global": 512},
    ],
    ids=lambda said: said["recipe"],
)
def test_no_figure_follows_from_a_sentence(point, run, epoch, said, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> tuple[list[dict[str, Any]], dict[str, Any], list[str]]:
        train = TrainSettings(epochs=10, **said)
        points = [with_recipe(replace(point(ranks), train=train)) for ranks in (1, 2, 8)]
        runs = [
            run(each, number, epochs=(epoch(1, 9.0 / each.ranks), epoch(2, (3.0 + number) / each.ranks)))
            for each in points
            for number in (1, 2, 3)
        ]
        found = study_results(
            Study(name="reworded", train=train), "", points, runs, traces=traces_of(()), machine=None, expected_runs=9
        )
        view = json_object(found, None)
        sentences = [choice.pop("sentence") for row in view["points"] for choice in row["chosen"]]
        return rows(found), view, sentences

    figures, view, sentences = shown()
    assert view["points"][2]["baseline"] == view["points"][0]["point"]
    assert view["points"][2]["speedup"]["median"] == pytest.approx(8.0)
    reworded = {reason: lambda reason=reason, **facts: f"train.lr = {reason}" for reason in choice_words.REASONS}
    monkeypatch.setattr(choice_words, "REASONS", reworded)
    other_figures, other_view, other_sentences = shown()
    assert (other_figures, other_view) == (figures, view)
    assert not set(other_sentences) & set(sentences)


def test_every_reason_of_a_recipe_has_a_sentence(point) -> None:
    said = [
        {"recipe": recipe, "optimizer": optimizer, "batch_global": batch, "epochs_rule": "divide-by-ranks"}
        for recipe in ("scale", "as-published")
        for optimizer in ("sgd", "adam", "adadelta")
        for batch in (512, 16384)
    ]
    points = [with_recipe(replace(point(2), train=TrainSettings(epochs=10, **train))) for train in said]
    chosen = [choice for each in points for choice in each.chosen]
    assert {choice.reason for choice in chosen} == set(choice_words.REASONS)
    assert all(choice_words.choice_sentence(choice) for choice in chosen)


def test_what_all_points_chose_is_one_line(point) -> None:
    wide = with_recipe(replace(point(2), train=TrainSettings(recipe="scale", batch_per_rank=64, epochs=10)))
    alone = with_recipe(replace(point(1), train=TrainSettings(recipe="scale", batch_per_rank=64, epochs=10)))
    lines = choice_words.choice_lines(
        [("1 rank", alone.chosen), ("2 ranks", wide.chosen), ("2 ranks, again", wide.chosen)]
    )
    shared, *own = choice_words.choice_lines([("1 rank", alone.chosen)])
    assert lines[0] == shared and f"{own[-1]} (1 rank)" in lines
    assert lines[-1].endswith("(2 ranks; 2 ranks, again)")
