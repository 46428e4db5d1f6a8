"""`paceline export --format tensorboard` and `mlflow`, read back by the programs they are for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

from paceline.cli.app import main
from paceline.identity import temporary_variables
from paceline.records.run import RunResult
from paceline.reporting.export.mlflow import store
from paceline.storage.codec import read_record
from paceline.studies.folder.collect import collect
from samples.finished_study import finished_study

QUIET = """
import sys
reached = []
def look(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        reached.append((event, arguments[1:]))
sys.addaudithook(look)
from paceline.cli.app import main
code = main(sys.argv[1:])
import threading, time
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(5)
import os
assert not reached, reached
assert not [name for name in os.environ if name.startswith("MLFLOW_")]
sys.exit(code)
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two points with three runs each."""
    monkeypatch.chdir(tmp_path)
    finished_study(tmp_path / "study", tmp_path / "cache")
    return tmp_path / "study"


def result_of(study: Path, point: str, number: int) -> RunResult:
    return read_record(next((study / "points").glob(f"{point}*")) / "runs" / str(number) / "result.json", RunResult)


def test_tensorboard_reads_every_run(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(study), "--format", "tensorboard", "--out", "logs"]) == 0
    assert "Wrote 6 runs of instant into logs." in capsys.readouterr().out
    files = sorted(Path("logs").rglob("events.out.tfevents.*"))
    assert len(files) == 6 and {file.parent.name for file in files} == {"run-1", "run-2", "run-3"}
    found = EventAccumulator(str(next(file.parent for file in files if "2-ranks" in str(file))))
    found.Reload()
    assert {"loss/train", "accuracy/train", "throughput/samples_per_s", "test/accuracy"} <= set(found.Tags()["scalars"])
    result = result_of(study, "2-ranks", 1)
    assert [(event.step, event.value) for event in found.Scalars("loss/train")] == [(8, 1.0), (16, 0.5)]
    assert [event.value for event in found.Scalars("throughput/samples_per_s")] == pytest.approx([120.0, 120.0])
    (test,) = found.Scalars("test/accuracy")
    assert (test.step, test.value) == (result.steps, pytest.approx(0.9))
    assert "loss/validation" not in found.Tags()["scalars"], "what was not measured is not there"
    data = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    told = plugin_data_pb2.HParamsPluginData.FromString(data).session_start_info.hparams  # pyright: ignore
    assert told["run.ranks"].number_value == 2 and told["train.optimizer"].string_value == "adam"


def test_tensorboard_twice_is_refused_and_forced_is_the_same_bytes(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = ["export", str(study), "--format", "tensorboard", "--out", "logs"]
    assert main(export) == 0
    before = {path: path.read_bytes() for path in Path("logs").rglob("events*")}
    assert main(export) == 2
    assert "already has 6 runs of this study" in capsys.readouterr().err
    assert main([*export, "--force"]) == 0
    assert {path: path.read_bytes() for path in Path("logs").rglob("events*")} == before


def test_one_point_forced_leaves_the_others(study: Path) -> None:
    assert main(["export", str(study), "--format", "tensorboard", "--out", "logs"]) == 0
    words = ["--point", "2-ranks", "--run", "3", "--force"]
    assert main(["export", str(study), "--format", "tensorboard", "--out", "logs", *words]) == 0
    assert len(list(Path("logs").rglob("events*"))) == 6


def test_a_run_by_its_folder(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = collect(study).runs[0].folder.path
    assert main(["export", str(folder), "--format", "tensorboard", "--json"]) == 0
    view = json.loads(capsys.readouterr().out)
    assert view["out"] == "tensorboard" and len(view["runs"]) == 1 and Path(view["runs"][0]).is_file()


def test_mlflow_reads_every_run_and_none_twice(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = ["export", str(study), "--format", "mlflow", "--out", "store"]
    assert main([*export, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["runs"]
    assert len(first) == 6
    assert main(export) == 2
    assert "already has 6 runs of this study" in capsys.readouterr().err
    assert main([*export, "--force", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)["runs"]
    with store(Path("store")) as client:
        experiment = client.get_experiment_by_name("instant")
        assert experiment is not None
        shown = client.search_runs([experiment.experiment_id])
        assert {run.info.run_id for run in shown} == set(second) and not set(first) & set(second)
        run = next(run for run in shown if run.data.tags["paceline.run"] == "2" and run.data.params["run.ranks"] == "2")
        result = result_of(study, "2-ranks", 2)
        assert run.info.run_name == "2 ranks, run 2" and run.info.status == "FINISHED"
        assert run.data.tags["paceline.point"] == result.point_id and run.data.tags["paceline.study"] == "instant"
        assert run.data.metrics["test/accuracy"] == 0.9 and run.data.params["train.optimizer"] == "adam"
        history = client.get_metric_history(run.info.run_id, "loss/train")
        assert [(metric.step, metric.value) for metric in history] == [(8, 1.0), (16, 0.5)]
        files = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert {"manifest.json", "result.json", "curves.csv"} <= files


def test_mlflow_tells_nobody_and_leaves_nothing_behind(study: Path, tmp_path: Path) -> None:
    """In a process of its own that is no test and no continuous integration, where MLflow would report its use."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH")}
    words = ["export", str(study), "--format", "mlflow", "--out", str(tmp_path / "store")]
    done = subprocess.run(
        [sys.executable, "-c", QUIET, *words], env={**kept, "HOME": str(home)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" and list(home.rglob("*")) == []


def test_variables_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_TEST_A", "before")
    monkeypatch.delenv("PACELINE_TEST_B", raising=False)
    with pytest.raises(KeyError), temporary_variables({"PACELINE_TEST_A": "1", "PACELINE_TEST_B": "2"}):
        assert (os.environ["PACELINE_TEST_A"], os.environ["PACELINE_TEST_B"]) == ("1", "2")
        raise KeyError
    assert os.environ["PACELINE_TEST_A"] == "before" and "PACELINE_TEST_B" not in os.environ


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "tensorbord"], "Did you mean 'tensorboard'?"),
        (["--format", "mlflow", "--point", "9-ranks"], "Continue it: paceline study"),
        (["--format", "tensorboard", "--out", "instant.toml"], "is a file"),
    ],
)
def test_what_cannot_be_done_is_refused(
    study: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(study), *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("format", "package"), [("tensorboard", "tensorboard"), ("mlflow", "mlflow")])
def test_a_missing_package_is_named(
    study: Path, format: str, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["export", str(study), "--format", format]) == 2
    assert "pip install 'paceline[track]'" in capsys.readouterr().err
