from __future__ import annotations

import os
from pathlib import Path

import pytest

from paceline.errors import FolderError, RequestError
from paceline.identity import this_rank
from paceline.probe.__main__ import Request, main, parsed
from paceline.probe.attached import DeferredSpanWriter, ExternalRank
from paceline.probe.recorder import Recorder
from paceline.storage.span_stream import read_spans


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [each for each in os.environ if each.startswith(("SLURM_", "TORCHELASTIC_"))]:
        monkeypatch.delenv(name)
    return tmp_path


def test_spans_from_before_the_folder_was_known_are_not_lost(here):
    attached = ExternalRank(Path("train.py"), None, this_rank())
    with attached.recorder.span("forward"):
        pass
    attached.recorder.flush()
    assert not (here / "runs").exists()
    folder = attached.end()
    assert folder.path.parent == here / "runs" and folder.path.name.startswith("train-2")
    assert len(read_spans(folder.rank_spans(0), 0)) == 1


def test_two_runs_of_one_second_have_two_folders(here):
    first, second = (ExternalRank("package.train", None, this_rank()).end() for _ in range(2))
    assert first.path != second.path and first.path.name.startswith("package-train-2")


def test_ranks_that_never_talk_find_the_same_folder(here, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    folders = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        folders.append(ExternalRank(Path("train.py"), None, this_rank()).end())
    assert folders[0] == folders[1]
    assert folders[0].rank_spans(0).exists() and folders[0].rank_spans(1).exists()
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURM_STEP_ID", "3")
    assert ExternalRank(Path("train.py"), None, this_rank()).end().path == here / "runs" / "train-12.3"


def test_a_folder_that_was_asked_for(here, monkeypatch):
    folder = ExternalRank(Path("train.py"), Path("mine"), this_rank()).end()
    assert folder.path == here / "mine"
    with pytest.raises(FolderError, match="has the spans of a run already"):
        ExternalRank(Path("train.py"), Path("mine"), this_rank())
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert ExternalRank(Path("train.py"), Path("mine"), this_rank()).end().path == here / "mine-restart-1"


def test_a_writer_without_a_place_keeps_everything_in_order(tmp_path):
    writer = DeferredSpanWriter()
    recorder = Recorder(writer, ExternalRank(Path("x.py"), tmp_path / "other", this_rank()).recorder._pulse)
    for kind in ("forward", "backward", "optimizer"):
        with recorder.span(kind):
            pass
        recorder.flush()
        if kind == "backward":
            writer.open(tmp_path / "spans")
    recorder.close()
    assert len(read_spans(tmp_path / "spans", 0)) == 3


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        (["train.py", "--out", "x"], Request(Path("train.py"), ("--out", "x"), None)),
        (["--out", "runs/a", "train.py", "-m"], Request(Path("train.py"), ("-m",), Path("runs/a"))),
        (["--out=runs/a", "-m", "a.b", "--lr", "1"], Request("a.b", ("--lr", "1"), Path("runs/a"))),
        (["--", "-odd.py", "1"], Request(Path("-odd.py"), ("1",), None)),
    ],
)
def test_the_command_line(words, request_):
    assert parsed(words) == request_


def test_requests_that_are_wrong(capsys, here):
    for words in ([], ["--out"], ["--folder", "x", "train.py"], ["-m"], ["--out", "x"]):
        with pytest.raises(RequestError):
            parsed(words)
    assert main(["--help"], 0) == 0
    assert "Usage: python -m paceline.probe" in capsys.readouterr().out
    assert main(["missing.py"], 0) == 2
    told = capsys.readouterr().err
    assert "missing.py cannot be read" in told and "Traceback" not in told
    assert not (here / "runs").exists()
