"""The verbs on a study that is finished, and those that need none."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paceline import catalog
from paceline.cli.app import main
from paceline.studies.execute.preflight import Built
from samples.finished_study import STUDY, finished_study


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in, and a cache."""
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def finished(place: Path) -> Path:
    finished_study(place / "study", place / "cache")
    return Path("study")


def json_of(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def launch_with(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """Let another class be the launcher local."""
    monkeypatch.setitem(catalog.ENTRIES["launcher"], "local", catalog.LauncherEntry(at=at))


def test_a_finished_study_is_only_reported(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "instant.toml", "--out", "study"]) == 0
    out, err = capsys.readouterr()
    opening = [line.split()[0] for line in err.splitlines()]
    assert opening == ["Paceline", "Machine", "Study", "Folder", "Placement", "2", "Resumed"]
    assert "Instant scaling: Is it there yet?" in err
    assert "6 of 6 runs are finished" in err
    for part in (
        "speed-up",
        "2 ranks train 2.00 times as fast",
        "Report  study/report.html",
        "Next  ",
        "paceline study",
    ):
        assert part in out


def test_the_report_says_the_same_as_the_study(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "instant.toml", "--out", "study"]) == 0
    first = capsys.readouterr().out
    (finished / "report.html").unlink()
    assert main(["report", "study"]) == 0
    assert capsys.readouterr().out == first
    assert (finished / "report.html").is_file()


def test_json_of_a_study_is_one_object_and_nothing_else(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = json_of(capsys, "study", "instant.toml", "--out", "study")
    assert study == json_of(capsys, "report", "study")
    assert {"study", "folder", "report", "points", "findings"} <= set(study)
    point = study["points"][1]
    figures = ("epoch_s", "total_s", "samples_per_s", "speedup", "efficiency")
    assert all({"median", "low", "high"} <= set(point[name]) for name in figures)
    assert {"mean", "std"} <= set(point["test_accuracy"])
    assert {"ranks", "hosts", "launcher", "strategy", "settings", "runs", "ledger_s", "median_run"} <= set(point)


def test_failed_runs_end_a_study_with_1(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report about failed runs is no failure; running them, and failing again, is."""
    finished_study(place / "study", place / "cache", fails_at=2)
    assert main(["report", "study"]) == 0
    assert "Rank 0 of 2 died" in capsys.readouterr().out
    launch_with(monkeypatch, "samples.finished_study:FailingLauncher")
    assert main(["study", "instant.toml", "--out", "study", "--json"]) == 1
    out, err = capsys.readouterr()
    assert "[FAIL] (2/6) 2 ranks, run 1: Rank 0 of 2 died.\n       Look at its log." in err
    assert json.loads(out)["points"][1]["failure"].startswith("Rank 0 of 2 died")


def test_an_interrupted_study_says_what_is_kept_and_how_to_go_on(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "instant.toml").write_text(STUDY)
    launch_with(monkeypatch, "samples.finished_study:InterruptedLauncher")
    assert main(["study", "instant.toml", "--out", "my study"]) == 130
    out, err = capsys.readouterr()
    line = err.splitlines()[-1]
    assert out == "" and line.startswith("Interrupted: 1 of 6 runs are finished. Continue with: paceline study ")
    launch_with(monkeypatch, "samples.finished_study:InstantLauncher")
    assert main(shlex.split(line.partition("paceline ")[2])) == 0
    assert "1 of 6 runs are finished already" in capsys.readouterr().err


def test_train_is_one_run_of_one_point(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "instant.toml").write_text(STUDY)
    launch_with(monkeypatch, "samples.finished_study:InstantLauncher")
    assert main(["train", "instant.toml", "--ranks", "2"]) == 0
    out, err = capsys.readouterr()
    assert "epoch 2: loss 0.500, accuracy 50.0 %, 500 ms, 120 samples/s" in err
    assert out.startswith("Test accuracy 90.0 %, test loss 0.500: 2 epochs (16 steps), 2 ranks")
    again = json_of(capsys, "train", "instant.toml", "--ranks", "2")
    assert (again["runs"], again["run"]["ranks"], len(again["run"]["epochs"])) == (1, 2, 2)
    assert (place / "runs" / "train-instant" / "report.html").is_file()


def test_a_resumed_training_says_from_where_and_what_was_found(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "instant.toml").write_text(STUDY)
    launch_with(monkeypatch, "samples.finished_study:ResumedLauncher")
    assert main(["train", "instant.toml"]) == 0
    out = capsys.readouterr().out
    assert (
        "\nIt went on from the checkpoint of step 1,200, written on another host or with other versions: "
        "host there → here.\n" in out
    )
    findings = {found["name"]: found["summary"] for found in json_of(capsys, "train", "instant.toml")["findings"]}
    shown = " ".join(out.split())
    assert findings.pop("few-repeats") not in shown
    assert findings and all(summary in shown for summary in findings.values())


def test_a_failed_training_ends_with_1(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "instant.toml").write_text(STUDY)
    launch_with(monkeypatch, "samples.finished_study:FailingLauncher")
    assert main(["train", "instant.toml", "--ranks", "2"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "Rank 0 of 2 died." in err


@pytest.mark.parametrize("how", [["--dry-run"], ["--dry-run", "--json"], []])
def test_what_cannot_run_here_is_refused(
    how: list[str], place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "instant.toml").write_text(STUDY)
    launch_with(monkeypatch, "samples.finished_study:SmallLauncher")
    assert main(["study", "instant.toml", *how]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.endswith("There is no room for 2 ranks.\n1 fits.\nAsk for fewer.\n")
    assert not (place / "runs").exists()


def test_the_preview_of_a_study_writes_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "digits", "--ranks", "1,2,6", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "6 ranks × 1 thread" in out and "Runs: 9. Nothing was run." in out
    shown = json_of(capsys, "study", "digits", "--ranks", "1,2", "--repeats", "7", "--dry-run")["preview"]
    assert shown["runs"] == 14 and [point["batch_per_rank"] for point in shown["points"]] == [64, 32]
    assert list(place.iterdir()) == []


def test_what_does_not_fit_is_listed_by_the_preview_and_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = STUDY.replace("[study]", '[study]\nfits = "machine"').replace("batch_global = 8", "batch_per_rank = 1")
    (place / "large.toml").write_text(large.replace("samples = 60", "samples = 4000"))
    command = ["study", "large.toml", "--ranks", "1000,2000"]
    assert main([*command, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out.count("Not run: ") == 2 and "Not run: 1,000 ranks. It has 1,000 ranks" in out
    assert "No point of this study fits" in out and "Rank-hours" not in out
    assert main(command) == 2
    err = capsys.readouterr().err
    assert "No point of the study 'instant' can be run here: It has 1,000 ranks" in err
    assert not (place / "runs").exists()


def test_the_preview_shows_what_varies_an_estimate_and_job_scripts(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["study", "digits", "--strategy", "ddp,flat", "--ranks", "2", "--dry-run"]
    assert main(words) == 0
    out = capsys.readouterr().out
    header, _, first, second = out.splitlines()[:4]
    assert header.split()[:2] == ["ranks", "strategy"] and "rank-hours" in header
    assert (first.split()[:2], second.split()[:2]) == (["2", "ddp"], ["2", "flat"])
    assert "Rank-hours: not known before the first run." in out and "Job script" not in out
    shown = json_of(capsys, *words)["preview"]
    assert [point["label"] for point in shown["points"]] == ["2 ranks, ddp", "2 ranks, flat"]
    assert main([*words, "--launcher", "pbs"]) == 0
    out = capsys.readouterr().out
    assert out.count("#PBS -N") == 2 and "Job script, 2 ranks, flat:" in out
    assert list(place.iterdir()) == []


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the check of the model, which costs an import of torch at every turn and has tests of its own."""
    monkeypatch.setattr(
        "paceline.studies.execute.job.check_model", lambda manifests, timed: (Built(),) * len(manifests)
    )


@pytest.mark.usefixtures("unchecked")
def test_a_budget_that_is_reached_ends_a_study_with_1(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "instant.toml").write_text(STUDY)
    launch_with(monkeypatch, "samples.finished_study:SlowLauncher")
    words = ["study", "instant.toml", "--out", "study", "--budget"]
    stopped = json_of(capsys, *words, "2.5", code=1)
    assert stopped["runs"] == 1 and "2.5 rank-hours, 1.00 are spent" in stopped["stopped"]
    assert main([*words, "2.5"]) == 1
    out, err = capsys.readouterr()
    assert "[STOP] (2/6) 2 ranks, run 1: Stopped: the budget is 2.5 rank-hours, 1.00 are spent" in err
    assert "1 of 6 runs are finished already" in err and "Report  " in out
    assert "stopped" not in json_of(capsys, *words, "99")
    for wrong in ("0", "nan", "much"):
        assert main([*words, wrong]) == 2
        assert wrong in capsys.readouterr().err


@pytest.mark.usefixtures("unchecked")
def test_several_strategies_are_one_study_and_train_takes_the_first(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "instant.toml").write_text(STUDY + 'strategy = ["flat", "ddp"]\n')
    launch_with(monkeypatch, "samples.finished_study:InstantLauncher")
    assert main(["study", "instant.toml", "--repeats", "1"]) == 0
    assert "[ OK ] (3/3) 2 ranks, ddp, run 1: " in capsys.readouterr().err
    assert json_of(capsys, "train", "instant.toml", "--ranks", "2")["points"][0]["strategy"] == "flat"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--hosts", "2"], 'run.launcher = "local": all its ranks are on this machine'),
        (["--hosts", "x"], "--hosts 'x' is not a list of whole numbers."),
        (["--strategy", "mpi-allreduce"], "mpi and slurm can"),
        (["--strategy", "ddp,ddp"], "each value may stand there once"),
        (["--launcher", "slrum"], 'Did you mean "slurm"?'),
        (["--site", "nowhere"], "There is no site called 'nowhere'."),
    ],
)
def test_what_cannot_be_is_refused_with_2(
    words: list[str], said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "digits", *words]) == 2
    assert said in capsys.readouterr().err and list(place.iterdir()) == []


def test_studies_are_those_that_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    shipped = json_of(capsys, "studies")["studies"]
    assert {"mnist-scaling", "digits"} <= {study["name"] for study in shipped}
    assert main(["studies"]) == 0
    out = capsys.readouterr().out
    for study in shipped:
        assert study["name"] in out and study["title"] in out and study["question"] in out
        assert main(["study", study["name"], "--dry-run"]) == 0


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    families = [f"{family}:NAME" for family in catalog.FAMILIES]
    assert [model["name"] for model in json_of(capsys, "models")["models"]] == [*catalog.names("model"), *families]
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{name} " in out for name in catalog.names("model"))


def test_a_model_is_shown_layer_by_layer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "cnn-690k"]) == 0
    out = capsys.readouterr().out
    assert "Conv2d (0)     32×26×26             320" in out
    assert "Parameters:    690,590 (2.8 MB in float32)" in out
    assert "Keras" not in out  # which counts the same


def test_a_pretrained_network_is_counted_in_keras_s_way_too(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("models", "efficientnet-b0", "--shape", "32,32,3", "--set", "image_size=32")
    assert main(list(words)) == 0
    out = capsys.readouterr().out
    assert "Trainable:     12,810" in out and "Base:          frozen" in out
    assert "Counted as in Keras: 4,062,381, 12,810 of them trainable and 4,049,571 not" in out
    assert "Preprocessing: own: 32×32 pixels (bicubic" in out
    found = json_of(capsys, *words)
    assert (found["keras"]["total"], found["keras"]["trainable"]) == (4_062_381, 12_810)


def test_a_model_takes_shape_classes_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("models", "mlp", "--shape", "2,2,3", "--classes", "4", "--set", "layers=1", "--set", "neurons=5")
    found = json_of(capsys, *words)
    assert found["parameters"] == 12 * 5 + 5 + 5 * 4 + 4
    assert [layer["output_shape"] for layer in found["layers"]] == [[12], [5], [5], [4]]


def test_a_model_of_ones_own_is_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "mine.py").write_text(
        "import torch\nprint('hello')\n"
        "def build(shape, classes, width=3):\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(width, classes))\n"
    )
    found = json_of(capsys, "models", "mine.py:build", "--shape", "1,4,1", "--classes", "2", "--set", "width=4")
    assert (found["name"], found["parameters"]) == ("mine.py:build", 10)
    assert main(["models", "mine.py:buidl", "--shape", "1,4,1"]) == 2
    assert "buidl" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine.py:build", "there is no file"),
        ("mine.py", 'must be "my_file.py:function"'),
        ("mine", 'Or name a function of your own: "my_file.py:build".'),
    ],
)
def test_a_model_that_is_not_there_is_refused(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", name]) == 2
    assert said in capsys.readouterr().err


def test_data_sets_come_are_checked_and_are_listed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not any(found["cached"] for found in json_of(capsys, "data", "list")["datasets"])
    fetched = json_of(capsys, "data", "fetch", "digits")
    assert (fetched["train"] + fetched["test"], fetched["shape"]) == (1797, [8, 8, 1])
    assert json_of(capsys, "data", "check", "digits") == fetched
    assert [d["name"] for d in json_of(capsys, "data", "list")["datasets"] if d["cached"]] == ["digits"]
    assert main(["data", "list"]) == 0
    assert "digits         yes" in capsys.readouterr().out
    images = next(Path(fetched["folder"]).glob("train*images*.npy"))
    damaged = bytearray(images.read_bytes())
    damaged[-1] ^= 1
    images.chmod(0o644)
    images.write_bytes(damaged)
    assert main(["data", "check", "digits"]) == 2
    assert "damaged" in capsys.readouterr().err


def test_the_doctor_looks_at_everything(capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, "doctor")
    checks = {check["name"]: check for check in found["checks"]}
    names = ["Cores", "Idle", "Memory", "Loopback", "Shared memory", "Cache", "Runs", "Data sets", "Launchers"]
    assert list(checks) == [*names, "PyTorch", "BLAS", "Backends", "GPUs"]
    assert found["ready"] and checks["Loopback"]["status"] == "ok"
    assert "gloo" in checks["Backends"]["facts"]["backends"]
    assert checks["Cores"]["facts"]["usable"] >= 1
    assert all(check["remedy"] for check in checks.values() if check["status"] != "ok")


def test_the_doctor_ends_with_1_where_a_study_cannot_run(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "file").touch()
    monkeypatch.setenv("PACELINE_CACHE", str(place / "file"))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "[FAIL] Cache" in out and "PACELINE_CACHE" in out and "until this is fixed: Cache." in out


@pytest.mark.parametrize("words", [["report", "study"], ["studies"], ["data", "list"], ["models"], ["study", "--help"]])
def test_verbs_that_train_nothing_import_no_torch(words: list[str], finished: Path) -> None:
    code = f"import sys; from paceline.cli.app import main; main({words!r}); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
