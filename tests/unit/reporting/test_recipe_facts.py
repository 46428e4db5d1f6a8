"""What recipes chose is shown: in the report's settings, in JSON, and when a study starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.cli.app import main
from paceline.records.recipe_choice import HIGHEST_LR, Choice
from paceline.reporting.export.json_view import json_object
from paceline.reporting.wording.choice_words import choice_sentence
from paceline.reporting.wording.facts import settings_facts
from samples import report_samples

COMMON = Choice(path="train.schedule", value="cosine", reason="rate-ends-near-zero")
OWN = Choice(path=HIGHEST_LR, value=0.004, reason="rate-times-factor", facts={"lr": 0.001, "factor": 4.0})


def test_the_report_says_what_was_chosen_and_where() -> None:
    results = report_samples.typical()
    assert "chosen by the recipe" not in {fact.label for fact in settings_facts(results)}
    first, *rest = results.points
    chosen = [replace(first, point=replace(first.point, chosen=(COMMON, OWN)))]
    chosen += [replace(other, point=replace(other.point, chosen=(COMMON,))) for other in rest]
    results = replace(results, points=tuple(chosen))
    lines = [fact.text for fact in settings_facts(results) if fact.label == "chosen by the recipe"]
    assert lines == [choice_sentence(COMMON), f"{choice_sentence(OWN)} ({first.label})"]
    shown = json_object(results, None)["points"][0]["chosen"]
    assert [(one["path"], one["value"], one["sentence"]) for one in shown] == [
        (choice.path, choice.value, choice_sentence(choice)) for choice in (COMMON, OWN)
    ]


def test_a_dry_run_prints_the_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert main(["study", "digits", "--set", "train.recipe=scale", "--set", "train.batch_global=512", "--dry-run"]) == 0
    said = capsys.readouterr().err
    assert "train.lr_rule = linear: " in said and "highest learning rate 0.4: train.lr = 0.1 × 4" in said
