"""`paceline watch`: a snapshot where nobody watches, a drawing where somebody does, and what it ends with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from paceline.app import live_view as verb
from paceline.cli.app import main
from paceline.studies.folder.lock import StudyLock
from samples.compared_studies import attached_run
from samples.finished_study import finished_study


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("watched")
    finished_study(place / "done", place / "cache")
    finished_study(place / "failed", place / "cache", fails_at=2)
    attached_run(place / "attached", steps=30)
    return place


@pytest.fixture(autouse=True)
def quick(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    monkeypatch.setattr(verb, "_RATE_S", 0.01)
    monkeypatch.delenv("NO_COLOR", raising=False)


def json_of(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert main(["watch", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_snapshot_of_a_finished_study(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "done"]) == 0
    out, err = capsys.readouterr()
    assert "All 6 runs are finished." in out and "Next    paceline report done" in out and err == ""
    assert "\x1b" not in out
    found = json_of(capsys, "done")
    assert (found["state"], found["done"], found["of"], found["left_s"]) == ("finished", 6, 6, None)
    assert found["points"][1]["epoch_s"]["median"] == pytest.approx(0.5)


def test_a_study_that_ended_otherwise_ends_it_with_1(capsys: pytest.CaptureFixture[str], made: Path) -> None:
    assert json_of(capsys, "failed", code=1)["state"] == "failed"
    assert main(["watch", "failed", "--once"]) == 1
    assert "Rank 0 of 2 died." in capsys.readouterr().out


def test_a_run_of_ranks_that_others_started_shows_its_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, "attached")
    assert found["state"] == "running" and len(found["run"]["ranks"]) == 2
    assert found["run"]["ledger_step"] == 29
    ledger = found["run"]["ranks"][1]["ledger_s"]
    assert sum(ledger.values()) == pytest.approx(found["run"]["ledger_reaches_s"])
    assert ledger["forward"] == pytest.approx(29 * 400e-6, rel=0.1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere",), "There is no folder nowhere."),
        (("cache",), "cache is neither a study nor a run."),
        (("done", "--every", "0"), "every 0 s is not possible"),
        (("done", "--every", "nan"), "every nan s is not possible"),
        ((), "paceline watch --help"),
    ],
)
def test_a_wrong_request_is_refused(words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and told in err and "Traceback" not in err


class Drawn:
    """A terminal, as far as `watch` asks for one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from rich.live import Live

        self.frames: list[str] = []
        monkeypatch.setattr("paceline.cli.console.Console.color", property(lambda console: True))
        monkeypatch.setattr(Live, "update", lambda live, text, **more: self.frames.append(text.plain))
        monkeypatch.setattr(Live, "start", lambda live, **more: None)
        monkeypatch.setattr(Live, "stop", lambda live: None)


def test_on_a_terminal_it_draws_until_the_study_ends(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, waits = Drawn(monkeypatch), []
    shutil.copytree(made / "done", made / "ending")
    result = max((made / "ending").rglob("result.json"))
    text = result.read_text()
    result.unlink()
    lock = StudyLock(made / "ending" / "lock")
    lock.__enter__()

    def later(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            result.write_text(text)
            lock.__exit__(None, None, None)
        if len(waits) == 4:
            (made / "ending" / "report.html").write_text("made")

    monkeypatch.setattr(verb.time, "sleep", later)
    assert main(["watch", "ending", "--every", "7"]) == 0
    assert waits == [7.0] * 4
    assert "5 of 6 runs" in drawn.frames[0] and "All 6 runs are finished." in drawn.frames[2]
    assert "Report" not in drawn.frames[2] and "Report  ending/report.html" in drawn.frames[-1]


def test_ctrl_c_ends_the_watching_and_nothing_else(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = Drawn(monkeypatch)
    shutil.copytree(made / "done", made / "going")
    max((made / "going").rglob("result.json")).unlink()

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verb.time, "sleep", interrupted)
    with StudyLock(made / "going" / "lock", beat_s=3600) as lock:
        assert main(["watch", "going"]) == 0
        lock.check()
        assert (made / "going" / "lock").exists()
    assert len(drawn.frames) == 1 and "still running" in capsys.readouterr().err
