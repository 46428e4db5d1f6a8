"""`paceline report --format ... --figures ...`: which files are written where, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paceline.cli.app import main
from samples.finished_study import finished_study


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    finished_study(tmp_path / "study", tmp_path / "cache")
    return "study"


def made(study: str) -> set[str]:
    """Files of the study besides its runs and what was always there."""
    known = {"study.toml", "points.json", "results.csv", "results.parquet", "report.html"}
    paths = (path.relative_to(study) for path in Path(study).rglob("*") if path.is_file())
    return {str(path) for path in paths if path.parts[0] != "points"} - known


def test_nothing_more_than_before_unless_asked_for(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", study]) == 0
    assert made(study) == set() and "Wrote" not in capsys.readouterr().out
    assert main(["report", study, "--json"]) == 0
    assert "files" not in json.loads(capsys.readouterr().out)


def test_every_file_has_its_place_and_is_printed(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", study, "--format", "md,tex,csv", "--figures", "svg,png"]) == 0
    out = capsys.readouterr().out
    figures = {f"figures/{name}.{kind}" for name in ("strong-scaling", "epoch-time") for kind in ("svg", "png", "txt")}
    texts = {"report.md", "report.tex", "report-body.tex", "tables/scaling.csv", "tables/ledger.csv"}
    assert figures | texts <= made(study)
    for name in made(study):
        assert f"Wrote   {Path(study) / name}" in out
    assert "(figures/strong-scaling.svg)" in Path(study, "report.md").read_text()
    assert "{\\pacelinefigures/strong-scaling.png}" in Path(study, "report-body.tex").read_text()
    assert Path(study, "figures/strong-scaling.txt").read_text().startswith("Strong scaling of mlp (170 parameters) on")


def test_the_same_folder_gives_the_same_bytes(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", study, "--format", "md,tex,csv", "--figures", "pdf", "--json"]
    assert main(words) == 0
    files = [Path(name) for name in json.loads(capsys.readouterr().out)["files"]]
    before = {path: path.read_bytes() for path in files}
    assert main(words) == 0
    assert {path: path.read_bytes() for path in files} == before


def test_without_figures_none_is_linked(study: str) -> None:
    assert main(["report", study, "--format", "md,tex"]) == 0
    assert "![" not in Path(study, "report.md").read_text()
    assert "includegraphics" not in Path(study, "report-body.tex").read_text()


def test_a_study_without_scaling_draws_nothing_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    finished_study(tmp_path / "study", tmp_path / "cache", overrides=("run.ranks=2",))
    assert main(["report", "study", "--figures", "pdf"]) == 0
    assert "No figure was drawn" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "latex"], "Unknown format: 'latex'."),
        (["--figures", "jpg"], "svg, pdf, png"),
        (["--format", "md,txe"], "Did you mean 'tex'?"),
        (["--figures", "pdf", "--width", "5"], "5 mm wide"),
        (["--figures", "pdf", "--width", "nan"], "--width 175"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    study: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", study, *words]) == 2
    assert said in capsys.readouterr().err and made(study) == set()


def test_a_file_in_the_way_is_said(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(study, "tables").write_text("mine")
    assert main(["report", study, "--format", "csv"]) == 2
    assert "tables is a file" in capsys.readouterr().err and Path(study, "tables").read_text() == "mine"
