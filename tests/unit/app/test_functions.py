"""Every function of `paceline.app` from Python: results, how they show themselves, errors, and no output."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline import app, catalog, errors
from paceline.app.shown import ShownText
from paceline.records.lr_range import LrAdvice
from paceline.studies.execute import events
from paceline.studies.execute.preflight import Built
from samples import instant_script
from samples.compared_studies import timed_study
from samples.finished_study import STUDY


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("functions")
    timed_study(place / "study", place / "cache", "run.repeats=5")
    timed_study(place / "slow", place / "cache", "run.repeats=5", seed=1, forward_us=800)
    (place / "instant.toml").write_text(STUDY)
    instant_script.written(place)
    return place


@pytest.fixture(autouse=True)
def quiet(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """In the folder of the studies; afterwards nothing has been printed."""
    monkeypatch.chdir(made)
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "paceline.studies.execute.job.check_model", lambda manifests, timed: (Built(),) * len(manifests)
    )
    yield
    assert capfd.readouterr() == ("", "")


def use(monkeypatch: pytest.MonkeyPatch, launcher: str) -> None:
    monkeypatch.setitem(catalog.ENTRIES["launcher"], "local", catalog.LauncherEntry(at=launcher))


def shown(result: ShownText) -> str:
    """The text of a result, which is also in the card of a notebook, and whose repr is one line."""
    text, card = str(result), result._repr_html_()
    assert text.strip() and card.startswith("<div") and "<pre" in card and "<script" not in card
    assert repr(result).startswith(f"<{type(result).__name__}: ") and "\n" not in repr(result)
    return text


def test_trace_is_of_the_median_run_of_the_widest_point_or_of_the_one_that_is_named(made: Path) -> None:
    found = app.trace("study")
    assert found.run.ranks == 2 and "2-ranks" in found.chosen
    assert "2 ranks, " in shown(found)
    assert json.dumps(found.to_dict()["explained"]) and found.to_dict()["folder"] == found.run.name
    named = app.trace(made / "study", point="1-rank", run=3)
    assert named.chosen == "" and named.run.name.endswith("runs/3") and named.run.ranks == 1


def test_compare_says_what_is_slower_and_writes_a_page(tmp_path: Path) -> None:
    found = app.compare("study", "slow", out=tmp_path / "page.html")
    assert found.page == tmp_path / "page.html" and found.page.is_file() and not found.notes
    assert [label.split()[0] for label in found.slower(0.05)] == ["1", "2"] and found.slower(10.0) == ()
    assert "slow" in repr(found) and shown(found)
    assert found.to_dict()["page"] == str(found.page)


@pytest.mark.parametrize(("format", "name"), [("chrome", "trace.json.gz"), ("csv", "spans.csv"), ("chakra", "et")])
def test_export_writes_files_and_says_how_to_open_them(tmp_path: Path, format: str, name: str) -> None:
    found = app.export("study", format, out=tmp_path / name)
    assert found.to_dict()["format"] == format and str(tmp_path / name) in shown(found)
    assert all(Path(file).is_file() for file in found.to_dict()["files"])
    with pytest.raises(errors.FolderError, match="already exists"):
        app.export("study", format, out=tmp_path / name)


def test_export_of_runs_goes_to_a_tracker(tmp_path: Path) -> None:
    found = app.export("study", "tensorboard", out=tmp_path / "logs", point="1-rank")
    assert len(found.to_dict()["runs"]) == 5 and "tensorboard --logdir" in shown(found)


def test_report_writes_what_a_paper_needs() -> None:
    found = app.report("study", format=["md", "csv"], figures="svg", margin=0.01)
    names = {path.name for path in found.files}
    assert {"report.md", "scaling.csv"} <= names and any(name.endswith(".svg") for name in names)
    assert found.to_dict()["files"] == [str(path) for path in found.files]
    assert "files" not in app.report("study").to_dict()


def test_watch_is_iterated_until_the_study_is_over() -> None:
    app.open_results("study")
    view = app.watch("study", every_s=0.1)
    assert [(seen.state, seen.done, seen.of) for seen in view] == [("finished", 10, 10)]
    assert view.look().state == "finished" and view.to_dict()["done"] == 10
    assert "All 10 runs are finished." in shown(view)


def test_doctor_brings_every_check(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    found = app.doctor(each=seen.append)
    assert tuple(seen) == found.checks and {"Cores", "Memory", "Launchers", "PyTorch"} <= {c.name for c in seen}
    assert found.ready is (not found.wrong) and found.to_dict()["ready"] is found.ready
    assert "Cores" in shown(found) and found.verdict() in shown(found)


def test_doctor_of_a_site_that_is_not_there_is_not_ready() -> None:
    found = app.doctor(site="nowhere")
    assert not found.ready and found.wrong == ("Profile",) and "--site nowhere" in found.verdict()


def test_train_runs_one_point_once_and_then_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "samples.finished_study:InstantLauncher")
    heard: list[events.Event] = []
    found = app.train("instant.toml", out=tmp_path / "out", events=heard.append)
    assert (found.result.ranks, found.result.test_accuracy, found.folder) == (1, 0.9, tmp_path / "out")
    assert [type(event) for event in heard][:3] == [events.StudyLoaded, events.DataReady, events.StudyStarted]
    assert "Test accuracy 90.0 %" in shown(found) and found.to_dict()["run"]["ranks"] == 1
    assert found.report == tmp_path / "out" / "report.html"
    again = app.train("instant.toml", out=tmp_path / "out")
    assert again.result == found.result and again.run_folder == found.run_folder


def test_run_records_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "samples.instant_script:InstantScripts")
    found = app.run("train.py", ["--rounds", "3"], ranks=2, out=tmp_path / "out")
    assert (found.result.ranks, found.result.script.samples) == (2, 2000)
    assert found.run_folder.rank_log(0).read_text().endswith("hello from rank 0\n")
    assert "Where the time went" in shown(found)


def test_a_study_of_a_script_runs_at_several_numbers_of_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "samples.instant_script:InstantScripts")
    found = app.study(script="train.py", arguments=["--rounds", "3"], ranks=[1, 2], repeats=1, out=tmp_path / "out")
    assert [point.runs for point in found.points] == [1, 1]


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: app.trace("nowhere"), errors.FolderError, "There is no folder nowhere"),
        (lambda: app.trace("study", point="9-ranks"), errors.RequestError, "No point '9-ranks'"),
        (lambda: app.trace("study", top=0), errors.RequestError, "limited to 0 rows"),
        (lambda: app.compare("study", "nowhere"), errors.PacelineError, "nowhere"),
        (lambda: app.compare("study", "slow", out="page.txt"), errors.RequestError, "does not end in .html"),
        (lambda: app.export("study", "chrom"), errors.RequestError, "Did you mean 'chrome'"),
        (lambda: app.report("study", target=98), errors.RequestError, "A target of 98"),
        (lambda: app.report("study", margin=2), errors.RequestError, "A margin of 2 is"),
        (lambda: app.report("study", format="doc"), errors.RequestError, "Unknown format: 'doc'"),
        (lambda: app.report("study", width_mm=5), errors.RequestError, "5 mm"),
        (lambda: app.open_results("nowhere"), errors.FolderError, "nowhere"),
        (lambda: app.watch("nowhere"), errors.FolderError, "There is no folder nowhere"),
        (lambda: app.watch("study", every_s=0), errors.RequestError, "every 0 s is not possible"),
        (lambda: app.train("nothing"), errors.RequestError, "nothing"),
        (lambda: app.tune("instant.toml", first=1.0, last=0.1), errors.RequestError, ""),
        (lambda: app.run("nothing.py"), errors.RequestError, "nothing.py"),
        (lambda: app.study("digits", script="train.py"), errors.RequestError, "Both a study"),
        (lambda: app.study("digits", arguments=["-x"]), errors.RequestError, "-x"),
        (lambda: app.study("digits", budget=-1), errors.RequestError, "budget -1"),
    ],
)
def test_mistakes_are_exceptions_in_words(call: Callable[[], Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error) as refused:
        call()
    assert told in str(refused.value)


def test_a_run_that_fails_is_a_run_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "samples.finished_study:FailingLauncher")
    with pytest.raises(errors.RunError, match="Rank 0 of 2 died"):
        app.train("instant.toml", ranks=2, out=tmp_path / "out")
    with pytest.raises(errors.RunError, match="Rank 0 of 2 died"):
        app.run("train.py", ranks=2, out=tmp_path / "script")
    with pytest.raises(errors.RunError, match="No run of the study 'instant'"):
        app.study("instant.toml", ranks=2, out=tmp_path / "study")


def test_tune_reads_a_rate_off_real_range_tests(tmp_path: Path) -> None:
    options = {"model.neurons": 16, "train.optimizer": "sgd"}
    found = app.tune("instant.toml", ranks=1, steps=20, last=10.0, set=options, out=tmp_path / "out")
    assert isinstance(found.advice, LrAdvice) and found.page == tmp_path / "out" / "lr-range.html"
    assert "learning rate" in shown(found).lower() and found.to_dict()["lr"] == found.lr
    assert bool(found.command) is bool(found.changes) is (found.lr is not None)
    if found.lr is not None:
        assert f"--set train.lr={found.lr:g}" in found.command and "--set model.neurons=16" in found.command
