"""main: every way in which a command can end, as a sentence and an exit code."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from paceline import __version__
from paceline.cli.app import VERBS, main
from paceline.errors import DataError, FolderError, RankError, StorageError


def stop() -> None:
    """Interrupt."""
    raise KeyboardInterrupt


def crash() -> None:
    """Go wrong in a way that nobody has thought of."""
    raise ZeroDivisionError("nobody thought of this")


def refuse() -> None:
    """Refuse."""
    raise DataError("The file is damaged.", right="Files are whole.", next="Fetch it again.")


def fail() -> None:
    """Fail."""
    raise RankError("Rank 1 died.")


def lose() -> None:
    """Find a file damaged."""
    raise StorageError("The spans of rank 1 are damaged: they break off.")


def forbid() -> None:
    """Refuse, and say no more."""
    raise FolderError("There is no room.")


def fill() -> None:
    """Fill the disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/file")


def succeed() -> None:
    """Succeed."""


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch):
    """Makes a function of this file a verb."""

    def add(name: str) -> str:
        monkeypatch.setitem(VERBS, name, (f"{__name__}:{name}", "", ""))
        return name

    return add


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """What stands on standard error; nothing stands on standard output."""
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


def test_the_overview_is_shown_in_every_way_of_asking(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for asked in ([], ["--help"], ["-h"], ["help"]):
        assert main(asked) == 0
        texts.append(capsys.readouterr().out)
    assert len(set(texts)) == 1
    assert all(f"\n  {verb} " in texts[0] for verb in VERBS)


def test_help_before_the_verb_is_help_of_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "studies"]) == 0
    first = capsys.readouterr().out
    assert main(["studies", "--help"]) == 0
    assert capsys.readouterr().out == first
    assert first.startswith("Usage: paceline studies")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["stdy"], "There is no verb called 'stdy'. Did you mean 'study'?"),
        (["--jsno"], "There is no option called '--jsno'."),
        (["help", "nothing"], "There is no verb called 'nothing'."),
        (["studies", "--jsno"], "Unknown option: --jsno. Did you mean --json?"),
        (["studies", "one", "two"], "Unexpected argument: one two"),
        (["data", "ftch"], "Unknown command"),
        (["report"], "requires an argument"),
        (["study", "--ranks"], "requires an argument"),
        (["study", "--ranks", "1,x"], "--ranks '1,x' is not a list of whole numbers."),
        (["study", "--repeats", "1.5"], "--repeats 1.5 is not a whole number."),
        (["study", "digits", "--repeats", "0"], "run.repeats = 0"),
        (["study", "digits", "--set", "train.rl=1"], "train.rl: there is no such key"),
        (["study", "no-such-study"], "There is no study called 'no-such-study'."),
        (["models", "mlpp"], 'Did you mean "mlp"?'),
        (["models", "mlp", "--shape", "28,28"], "is not the shape of an image"),
        (["models", "mlp", "--set", "layers"], "is not KEY=VALUE"),
    ],
)
def test_a_wrong_request_ends_with_2_and_a_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = told(capsys)
    assert sentence in said
    assert re.search(r"paceline \S", said.splitlines()[-1])  # the next command


def test_errors_of_ours_are_sentences_with_their_exit_code(verb, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb("refuse")]) == 2
    assert told(capsys) == "The file is damaged.\nFiles are whole.\nFetch it again.\n"


@pytest.mark.parametrize(
    ("name", "code", "step"),
    [
        ("fail", 1, "Check this machine: paceline doctor. The same command continues; finished runs are not repeated."),
        (
            "lose",
            1,
            "Delete the folder of this run and run the study again: only this run is repeated.",
        ),
        ("forbid", 2, "See: paceline forbid --help"),
        ("refuse", 2, "Fetch it again."),
    ],
)
def test_every_error_ends_with_a_step(
    verb, name: str, code: int, step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb(name)]) == code
    assert told(capsys).splitlines()[-1].startswith(step)


def test_a_full_disk_is_no_bug(verb, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb("fill")]) == 1
    assert told(capsys).startswith("No space left while writing /some/file.")


def test_ctrl_c_ends_with_130_and_one_line(verb, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb("stop")]) == 130
    assert told(capsys).count("\n") == 1


def test_a_bug_is_one_line_and_a_file_with_the_traceback(
    verb, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main([verb("crash")]) == 1
    line = told(capsys)
    assert line.startswith("This is a bug in Paceline: ZeroDivisionError: nobody thought of this.")
    assert line.count("\n") == 1
    (file,) = tmp_path.iterdir()
    assert str(file) in line
    assert "Traceback" in file.read_text() and "in crash" in file.read_text()


def test_a_bug_with_no_place_for_its_traceback_shows_it(
    verb, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "not-there"))
    assert main([verb("crash")]) == 1
    assert "in crash" in capsys.readouterr().err


def test_a_verb_that_says_nothing_is_done(verb, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb("succeed")]) == 0
    assert told(capsys) == ""


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paceline", *words]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, check=False, **options)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--help"], ["studies"], ["study", "--help"]])
def test_a_reader_that_goes_away_is_no_failure(words: list[str], unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(*words, stdout=writing, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_output_that_does_not_fit_anywhere_is_said() -> None:
    with open("/dev/full", "w") as full:
        done = run("--help", stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith("No space left while writing the output.")


def test_characters_that_the_terminal_does_not_have_are_replaced() -> None:
    done = run("models", stdout=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "28?28?1" in done.stdout
