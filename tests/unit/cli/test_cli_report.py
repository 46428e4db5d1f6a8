"""`paceline report` asked for a target and a margin."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paceline.cli.app import main
from paceline.launch.launcher import Outcome
from paceline.studies.execute.execute import execute
from paceline.studies.load.load import load_study
from samples.finished_study import STUDY, InstantLauncher


class LearningLauncher(InstantLauncher):
    """Validation accuracy rises by a tenth an epoch, whatever the ranks; the test is the better, the more there are."""

    def run(self, folder, manifest, *, heartbeat_s, progress=lambda progress: None) -> Outcome:
        outcome = super().run(folder, manifest, heartbeat_s=heartbeat_s, progress=progress)
        reports = []
        for report in outcome.reports:
            epochs = tuple(
                replace(line, validation_loss=1.0, validation_accuracy=0.5 + 0.1 * line.epoch)
                for line in report.training.epochs
            )
            accuracy = 0.9 + 0.01 * len(outcome.reports) + 0.001 * (manifest.seed % 2)
            reports.append(replace(report, training=replace(report.training, epochs=epochs, test_accuracy=accuracy)))
        return replace(outcome, reports=tuple(reports))


@pytest.fixture
def learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("instant.toml").write_text(STUDY.replace("repeats = 3", "repeats = 5"))
    study = load_study(Path("instant.toml"), ())
    execute(study, Path("study"), launcher=LearningLauncher(), preflight=False, cache=tmp_path / "cache")
    return "study"


def json_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["report", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_target_is_answered(learned: str, capsys: pytest.CaptureFixture[str]) -> None:
    view = json_of(capsys, learned, "--target", "0.65")
    assert view["learning"]["target"] == 0.65 and view["learning"]["rule"] == "given"
    one, two = (point["learning"] for point in view["points"])
    assert one["target"]["epochs"]["median"] == pytest.approx(1.5) and one["target"]["interpolated"]
    assert two["effective_speedup"]["median"] == pytest.approx(2.0)
    assert view["learning"]["first"] == view["points"][1]["point"]
    assert main(["report", learned, "--target", "0.65"]) == 0
    assert "65.0 % validation accuracy is reached first with 2 ranks" in " ".join(capsys.readouterr().out.split())


def test_a_margin_decides_what_is_equal(learned: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Test accuracies differ by one point, in every repeat the same."""
    (usual,) = json_of(capsys, learned)["learning"]["checks"]
    assert (usual["called"], usual["margin"]) == ("different", 0.005)
    (wide,) = json_of(capsys, learned, "--margin", "0.02")["learning"]["checks"]
    assert (wide["called"], wide["margin"]) == ("different, within the margin", 0.02)


def test_a_finished_run_knows_its_classes(learned: str) -> None:
    results = list(Path(learned).rglob("result.json"))
    assert results and all(json.loads(path.read_text())["classes"] == 10 for path in results)


@pytest.mark.parametrize(
    "words", [["--target", "98"], ["--target", "0"], ["--margin", "0"], ["--margin", "2"], ["--margin", "nan"]]
)
def test_what_makes_no_sense_is_refused(learned: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", learned, *words]) == 2
    said = capsys.readouterr().err
    assert words[1] in said and f"{words[0]} 0." in said and "Traceback" not in said


def test_a_target_without_validation_says_so(tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("instant.toml").write_text(STUDY)
    study = load_study(Path("instant.toml"), ())
    execute(study, Path("study"), launcher=InstantLauncher(), preflight=False, cache=tmp_path / "cache")
    assert main(["report", "study", "--target", "0.9"]) == 0
    assert "No run has a validation accuracy" in capsys.readouterr().err
