"""`paceline run` and `paceline study --script` without real ranks: words, output, exit codes; and following a log."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from light_ranks.light_launch import wait_for
from paceline import catalog
from paceline.cli.app import main
from paceline.cli.follow import Follower
from paceline.cli.options import divided, doubled
from paceline.errors import RankError
from samples import instant_script
from samples.instant_script import written

HEADER = "=== rank 0 of 2, run 1, attempt 1, launched 2024-01-01T00:00:00\n"


class Failing(instant_script.InstantScripts):
    """Rank 1 raises after the spans are written."""

    def run(self, folder, manifest, **options: Any):
        super().run(folder, manifest, **options)
        raise RankError("Rank 1 of 2 on here failed after step 5: ValueError: no", next="Its log: rank-0001.log")


class Interrupted(instant_script.InstantScripts):
    """Somebody presses Ctrl-C."""

    def run(self, folder, manifest, **options: Any):
        raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    use(monkeypatch, "samples.instant_script:InstantScripts")
    written(tmp_path)
    return tmp_path


def use(monkeypatch: pytest.MonkeyPatch, launcher: str) -> None:
    """Have the ranks that `local` would start made up by another launcher."""
    monkeypatch.setitem(catalog.ENTRIES["launcher"], "local", catalog.LauncherEntry(at=launcher))


@pytest.mark.parametrize(
    ("given", "seen", "parts"),
    [
        (["run", "a"], ["run", "a"], (("run", "a"), ())),
        (["run", "--", "t.py", "-n", "2"], ["run", "--", "--", "t.py", "-n", "2"], (("run",), ("t.py", "-n", "2"))),
        (["a", "--", "b", "--", "c"], ["a", "--", "--", "b", "--", "c"], (("a",), ("b", "--", "c"))),
    ],
)
def test_the_words_of_a_script_are_told_from_ours(given: list[str], seen: list[str], parts: tuple) -> None:
    assert doubled(given) == seen
    assert divided(given) == parts


def test_a_run_shows_what_rank_0_prints_and_where_the_time_went(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "-n", "2", "--", "train.py", "--rounds", "3"]) == 0
    out, err = capsys.readouterr()
    assert out == "hello from rank 0\n"
    for part in (
        "Study      train.py --rounds 3",
        "[ OK ] (1/1) 2 ranks, run 1: 11 steps, 181,818 samples/s",
        "Found      DDP, 1 optimizers, 2 optimizers",
        "Where the time went",
        "Next    paceline trace runs/train-",
    ):
        assert part in err
    (folder,) = (place / "runs").iterdir()
    assert (folder / "report.html").is_file()


def test_every_run_has_a_folder_of_its_own(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["run", "--", "train.py"]) == 0
    assert len(list((place / "runs").iterdir())) == 2


def test_a_run_in_a_named_folder_is_only_repeated_when_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "--out", "here", "--", "train.py"]
    assert main(command) == 0
    capsys.readouterr()
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out == "" and "already finished. Use --fresh" in err and "Where the time went" in err
    assert main([*command[:3], "--fresh", *command[3:]]) == 0
    assert capsys.readouterr().out == "hello from rank 0\n"


def test_json_is_one_object_and_the_script_prints_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--json", "--threads", "2", "--", "train.py", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["run"]["samples"] == 1000 and found["points"][0]["strategy"] == "script"
    assert found["points"][0]["settings"]["script.arguments"] == ["--json"]
    assert found["points"][0]["settings"]["run.threads"] == 2
    assert "hello from rank 0" in err


def test_a_failure_is_told_once_with_the_way_to_the_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, f"{__name__}:Failing")
    assert main(["run", "-n", "2", "--out", "here", "--", "train.py"]) == 1
    out, err = capsys.readouterr()
    assert out == "hello from rank 0\n"
    assert err.count("ValueError: no") == 1 and "Its log: rank-0001.log" in err
    assert "paceline trace here/points/2-ranks-script-" in err


def test_an_interrupted_run_is_said_to_begin_anew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, f"{__name__}:Interrupted")
    assert main(["run", "--", "train.py"]) == 130
    assert "Interrupted: the run was not finished" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "No script is named."),
        (["--"], "No script is named."),
        (["--", "none.py"], "none.py does not exist."),
        (["--", "."], ". is a folder."),
        (["--", "-m", "package.train"], "torchrun --nproc-per-node 2 -m paceline.probe -m package.train"),
        (["--", "notes.txt"], "notes.txt is not a Python script, line 1: "),
        (["train.py", "other"], "The argument 'other' comes before --."),
        (["train.py", "--epochs", "3"], "The script and its arguments come after --"),
        (["-n", "two", "--", "train.py"], "-n two is not a whole number."),
        (["-n", "0", "--", "train.py"], "run.ranks = [0]: each must be from 1 to 4096."),
        (["--set", "train.lr=1", "--", "train.py"], "[train]: does not go with [script]"),
        (["--launcher", "nine", "--", "train.py"], "there is no such launcher."),
    ],
)
def test_a_wrong_request_starts_nothing(
    place: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "notes.txt").write_text("This is not Python.\n")
    assert main(["run", *words]) == 2
    out, err = capsys.readouterr()
    assert said in err and out == "" and "Traceback" not in err
    assert not (place / "runs").exists()


class TestStudies:
    def test_a_study_of_a_script_has_a_speed_up(self, capsys: pytest.CaptureFixture[str]) -> None:
        command = ["study", "--script", "train.py", "--ranks", "1,2", "--repeats", "1", "--", "--rounds", "3"]
        assert main(command) == 0
        out, err = capsys.readouterr()
        assert "2 ranks process samples 1.82 times as fast as 1" in out
        assert "hello from rank 0" not in out and "accuracy" not in out
        assert "Folder     runs/train\n" in err

    def test_its_resolved_file_goes_on_with_it(self, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["study", "--script", "train.py", "--repeats", "1", "--json"]) == 0
        capsys.readouterr()
        assert main(["study", "runs/train/study.toml", "--out", "runs/train", "--json"]) == 0
        out, err = capsys.readouterr()
        assert "2 of 2 runs are finished already" in err and json.loads(out)["runs"] == 2

    def test_a_dry_run_names_the_script(self, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["study", "--script", "train.py", "--repeats", "2", "--dry-run", "--", "--rounds", "3"]) == 0
        out = capsys.readouterr().out
        assert f"Script: {place}/train.py --rounds 3" in out and "Runs: 4, 4 of them not finished." in out
        assert "batch per rank" not in out
        assert not (place / "runs").exists()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["digits", "--script", "train.py"], "Both a study (digits) and a script (train.py)"),
            (["--script", "train.py", "--strategy", "flat"], 'run.strategy = "flat": the script itself divides'),
            (["--script", "none.py"], "none.py does not exist."),
            (["digits", "--", "--epochs"], "Unexpected argument: --epochs"),
            (["digits", "more"], "Unexpected argument: more"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["study", *words]) == 2
        out, err = capsys.readouterr()
        assert said in err and out == "" and "Traceback" not in err

    def test_paceline_does_not_train_a_script(self, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (place / "s.toml").write_text('[study]\nname = "s"\n[script]\npath = "train.py"\narguments = ["a b"]\n')
        assert main(["train", "s.toml"]) == 2
        assert "paceline run -- train.py 'a b'" in capsys.readouterr().err


class Copied:
    """What a follower has written so far."""

    def __init__(self) -> None:
        self.text = ""
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        with self._lock:
            self.text += text


class TestFollower:
    def test_what_is_added_is_copied_while_it_comes(self, tmp_path: Path) -> None:
        log, copied = tmp_path / "log", Copied()
        follower = Follower(log, 0, copied, every_s=0.005)
        follower.start()
        with log.open("ab", buffering=0) as file:
            file.write((HEADER + "one\n").encode())
            assert wait_for(lambda: copied.text == "one\n", 20)
            file.write(b"10 %\r20 %\r")
            assert wait_for(lambda: copied.text == "one\n10 %\r20 %\r", 20)
            file.write("é".encode()[:1])
            file.write("é".encode()[1:] + b"\nlast, without an end")
        follower.stop()
        follower.stop()
        assert copied.text == "one\n10 %\r20 %\ré\nlast, without an end"

    def test_earlier_attempts_and_headers_are_left_out(self, tmp_path: Path) -> None:
        log, copied = tmp_path / "log", Copied()
        log.write_text(HEADER + "an earlier attempt\n")
        follower = Follower(log, 0, copied, every_s=0.005)
        follower.start()
        with log.open("ab", buffering=0) as file:
            for part in (HEADER[:9], HEADER[9:] + "now\n", HEADER, "=== not a header\n", "x " + HEADER, "==="):
                file.write(part.encode())
        follower.stop()
        assert copied.text == "now\n=== not a header\nx " + HEADER + "==="

    def test_a_log_that_never_comes_ends_all_the_same(self, tmp_path: Path) -> None:
        copied = Copied()
        follower = Follower(tmp_path / "log", 0, copied, every_s=0.005)
        follower.start()
        follower.stop()
        assert copied.text == ""
