"""`paceline compare` on folders whose times are given."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from paceline.cli.app import main
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.script_outcome import ScriptOutcome
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder
from samples.compared_studies import attached_run, timed_study


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Studies with five repeats at 1 and 2 ranks, and runs."""
    place = tmp_path_factory.mktemp("compared")
    cache, five = place / "cache", "run.repeats=5"
    timed_study(place / "before", cache, five)
    timed_study(place / "again", cache, five, seed=11)
    timed_study(place / "after", cache, five, "run.strategy=flat", forward_us=520, seed=2, accuracy=0.8)
    timed_study(place / "three", cache, "run.repeats=3", forward_us=520, seed=3)
    timed_study(place / "wide", cache, five, "run.ranks=[4]", seed=4)
    timed_study(place / "once", cache, "run.repeats=1", "run.ranks=[2]", seed=5, steps=80)
    timed_study(place / "once-more", cache, "run.repeats=1", "run.ranks=[4]", seed=6, steps=80)
    attached_run(place / "attached", seed=7)
    attached_run(place / "slow-link", seed=8, communicate_us=200)
    return place


@pytest.fixture(autouse=True)
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def json_of(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert main(["compare", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def shares(change: dict[str, Any]) -> dict[str, float]:
    return {part["kind"]: part["share"] for part in change["parts"]}


def test_what_changed_is_found_with_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, "before", "after")
    assert [(each["section"], each["name"], each["a"], each["b"]) for each in found["differences"]] == [
        ("setting", "run.strategy", "ddp", "flat")
    ]
    assert [change["label"] for change in found["changes"]] == ["1 rank", "2 ranks"]
    for change in found["changes"]:
        assert change["time_s"]["real"] and change["over"] == "runs" and change["unit"] == "step"
        assert change["time_s"]["change"]["median"] == pytest.approx(1.12, abs=0.03)
        assert change["time_s"]["p_adjusted"] == pytest.approx(2 * 2 / 252)
        assert shares(change)["forward"] == pytest.approx(0.12, abs=0.02)
        assert sum(shares(change).values()) == pytest.approx(change["time_s"]["change"]["median"] - 1)
        assert list(shares(change)) == list(LEDGER_KINDS)
        assert change["accuracy"]["real"] and change["accuracy"]["change"]["median"] == pytest.approx(-0.1, abs=0.01)
    assert found["changes"][1]["messages"][0]["operation"] == "allreduce_"
    assert any("take turns" in note for note in found["notes"])
    assert (found["a"]["name"], found["a"]["what"], found["a"]["runs"]) == ("before", "study", 10)


def test_the_same_again_is_not_called_different(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before", "again"]) == 0
    text = capsys.readouterr().out
    assert text.count("cannot be told apart") == 2 and "would not have been seen" in text
    assert "What differs" not in text


def test_a_check_fails_only_where_b_is_really_slower_by_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert json_of(capsys, "before", "after", "--fail-if-slower", "5", code=1)["slower"] == ["1 rank", "2 ranks"]
    assert main(["compare", "before", "after", "--fail-if-slower", "5"]) == 1
    assert "[FAIL] B is significantly slower than A by more than 5 %: 1 rank; 2 ranks." in capsys.readouterr().err
    for words in (("before", "after", "20"), ("after", "before", "0"), ("before", "again", "0")):
        assert json_of(capsys, *words[:2], "--fail-if-slower", words[2])["slower"] == []


def test_a_check_that_could_not_fail_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before", "three", "--fail-if-slower", "5"]) == 0
    out, err = capsys.readouterr()
    # Three against five: the least p is 2/56, enough for one point and not for two.
    assert "[WARN] Not checked, too few runs: 1 rank; 2 ranks." in err
    assert "cannot be told apart" in out
    assert main(["compare", "three", "three", "--fail-if-slower", "5"]) == 0
    assert "With 3 and 3 runs the test gives no p below 0.1" in capsys.readouterr().out


def test_single_runs_are_compared_by_their_steps(capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, "attached", "slow-link")
    (change,) = found["changes"]
    assert (change["label"], change["over"], change["unit"]) == ("2 ranks", "steps", "step")
    assert change["time_s"]["real"] and change["time_s"]["change"]["median"] == pytest.approx(1.1, abs=0.01)
    assert shares(change)["comm-transfer"] == pytest.approx(0.1, abs=0.01)
    assert sum(shares(change).values()) == pytest.approx(change["time_s"]["change"]["median"] - 1)
    assert change["messages"][0]["bandwidth"]["change"]["median"] == pytest.approx(0.5, abs=0.01)
    assert not change["messages"][0]["bandwidth"]["real"], "one run a side"
    assert any("single run" in note for note in found["notes"])
    assert any("not known" in note for note in change["notes"])
    assert found["differences"] == []


def test_the_folder_of_a_run_inside_a_study_is_a_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (
        str(next((place / study / "points").glob("2-ranks-*")).relative_to(place) / "runs" / "1")
        for study in ("before", "after")
    )
    found = json_of(capsys, one, two)
    assert [each["name"] for each in found["differences"]] == ["run.strategy"]
    (change,) = found["changes"]
    # 15 steps after the first are fewer than four blocks of five: too few for a test.
    assert (change["over"], change["time_s"]["real"], change["smallest_seen"]) == ("steps", False, None)
    assert json_of(capsys, one, "once")["changes"][0]["label"] == "2 ranks"


def test_studies_of_one_run_are_runs_whatever_their_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, "once", "once-more")
    assert [(each["name"], each["a"], each["b"]) for each in found["differences"]] == [("run.ranks", "2", "4")]
    (change,) = found["changes"]
    assert change["label"] == "2 ranks against 4"
    assert change["block_steps"][0] >= 5


def test_one_run_of_a_point_against_several_is_compared_with_the_middle_one(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    timed_study(place / "partly", place / "cache", "run.repeats=1")
    changed = json_of(capsys, "before", "partly")["changes"]
    assert [change["over"] for change in changed] == ["steps", "steps"]


def test_a_study_without_spans_has_times_and_no_parts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(place / "after", place / "bare")
    for spans in (place / "bare").rglob("spans"):
        shutil.rmtree(spans)
    found = json_of(capsys, "before", "bare")
    for change in found["changes"]:
        assert change["time_s"]["real"] and change["parts"] == [] and "no spans" in change["gap"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("before", "nowhere"), ("There is no folder nowhere.", "paceline study")),
        (("before", "cache"), ("cache is neither a study nor a run", "Two study folders are compared")),
        (("before", "attached"), ("attached is one run, but before is a study of 10 runs.", "choose one of them")),
        (("attached", "before"), ("attached is one run, but before is a study of 10 runs.", "choose one of them")),
        (("before", "wide"), ("have no matching points: A has 1 rank; 2 ranks; B has 4 ranks.", "--ranks 1")),
        (("before", "after", "--fail-if-slower", "-1"), ("--fail-if-slower -1 is not a percentage", "at least 0")),
        (("before", "after", "--fail-if-slower", "nan"), ("--fail-if-slower nan is not a percentage", "at least 0")),
        (("before",), ("", "paceline compare --help")),
        (("before", "after", "--out", "page.pdf"), ("page.pdf does not end in .html.", "page.pdf.html")),
        (("before", "after", "--out", "cache"), ("cache is a folder.", "cache.html")),
        (("before",) * 13, ("13 folders are too many", "Up to 12")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_compared_is_refused(
    words: tuple[str, ...], told: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and all(part in err for part in told) and "Traceback" not in err


def test_a_study_of_which_nothing_is_finished_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    timed_study(place / "empty", place / "cache", "run.repeats=1")
    shutil.rmtree(place / "empty" / "points")
    assert main(["compare", "before", "empty"]) == 2
    assert "No run of the study in empty is finished." in capsys.readouterr().err


@pytest.mark.parametrize("damage", [b"", b"ARROW1", b"\x00" * 4096], ids=["empty", "short", "zeros"])
def test_damaged_spans_are_said_and_no_traceback(
    damage: bytes, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(place / "attached", tmp_path / "damaged")
    (tmp_path / "damaged" / "spans" / "rank-0001.arrows").write_bytes(damage)
    assert main(["compare", "attached", str(tmp_path / "damaged")]) == 0
    out, err = capsys.readouterr()
    assert "rank-0001.arrows" in out or "B has no timed steps" in out
    assert "Traceback" not in out + err
    (tmp_path / "damaged" / "spans" / "rank-0000.arrows").write_bytes(damage)
    assert main(["compare", "attached", str(tmp_path / "damaged")]) in (0, 1, 2)
    assert "bug" not in capsys.readouterr().err


def test_ranks_of_a_script_say_how_many_samples_a_step_takes(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twice the batch in twice the time: nothing per sample has changed."""
    batches = {"small": (32, 1.0), "large": (64, 2.0)}
    for name, (batch, factor) in batches.items():
        times = {f"{kind}_us": factor * us for kind, us in (("forward", 400), ("backward", 500), ("communicate", 100))}
        folder = attached_run(tmp_path / name, seed=9, **times)
        for rank in range(2):
            write_record(RunFolder(folder).rank_script(rank), outcome(rank, batch, ("--batch", str(batch))))
    found = json_of(capsys, str(tmp_path / "small"), str(tmp_path / "large"))
    (change,) = found["changes"]
    assert change["unit"] == "sample" and not change["time_s"]["real"]
    assert change["time_s"]["a"]["median"] == pytest.approx(1e-3 / 64, rel=0.01)
    assert [(each["name"], each["a"], each["b"]) for each in found["differences"]] == [
        ("script.arguments", "--batch 32", "--batch 64")
    ]


def test_the_page_goes_below_runs_or_where_it_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before", "after"]) == 0
    page, next_step = capsys.readouterr().out.splitlines()[-2:]
    assert page == "Page    runs/compare-before-after.html"
    assert next_step.startswith("Next ") and next_step.endswith("after")
    page = (place / "runs" / "compare-before-after.html").read_text()
    assert "B is 12" in page and "What could not be compared?" in page
    assert json_of(capsys, "before", "after", "--out", "side.html")["page"] == "side.html"
    assert (place / "side.html").is_file()
    run = str(next((place / "before" / "points").glob("2-ranks-*")).relative_to(place) / "runs" / "1")
    name = json_of(capsys, run, "once")["page"]
    assert name.startswith("runs/compare-before-2-ranks-") and name.endswith("-1-once.html")


def test_a_page_that_cannot_be_written_keeps_no_answer_back(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "file").write_text("no folder")
    assert main(["compare", "before", "after", "--out", "file/page.html"]) == 0
    out, err = capsys.readouterr()
    assert "B is 12 %" in out and "\nPage    not written\n" in out and "[WARN] The page was not written" in err


def test_three_sides_are_each_tested_against_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, "before", "after", "again", "three")
    assert [found["letter"], *(each["letter"] for each in found["more"])] == ["B", "C", "D"]
    assert [each["a"]["name"] for each in found["more"]] == ["before", "before"]
    alone = json_of(capsys, "before", "after")
    # Six can be told apart of eight pairs, not two of two: the same values have to show more.
    assert alone["changes"][0]["time_s"]["p_adjusted"] == pytest.approx(2 * 2 / 252)
    assert found["changes"][0]["time_s"]["p_adjusted"] == pytest.approx(6 * 2 / 252)
    assert found["changes"][0]["time_s"]["a"] == alone["changes"][0]["time_s"]["a"]
    assert [change["time_s"]["real"] for change in found["more"][0]["changes"]] == [False, False]
    figures = [(each["label"], each["letter"]) for each in found["figures"]]
    assert figures == [(label, letter) for label in ("1 rank", "2 ranks") for letter in "ABCD"]
    by_side = {each["letter"]: each for each in found["figures"] if each["label"] == "2 ranks"}
    assert by_side["A"]["samples_per_s"]["median"] == pytest.approx(60 / 0.008, rel=0.02)
    assert by_side["B"]["epoch_s"]["median"] == pytest.approx(0.00896, rel=0.02)
    assert by_side["B"]["test_accuracy"]["median"] == pytest.approx(0.8, abs=0.01)
    assert by_side["B"]["ledger_s"]["forward"] == pytest.approx(520e-6, rel=0.03)


def test_three_sides_as_text_have_a_column_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before", "after", "again", "wide"]) == 0
    out = capsys.readouterr().out
    assert "run.strategy  ddp  flat  ddp  ddp" in out
    assert "C against A\nWith 1 rank A and C cannot be told apart" in out
    assert "D against A\nbefore and wide have no matching points: A has 1 rank; 2 ranks; D has 4 ranks." in out
    assert "p is corrected for 4 tests, of all sides together" in " ".join(out.split())
    assert "Page    runs/compare-before-after-again-wide.html" in out


def test_a_check_of_several_sides_names_the_one_that_is_slower(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("before", "again", "after", "--fail-if-slower", "5")
    assert json_of(capsys, *words, code=1)["slower"] == ["C, 1 rank", "C, 2 ranks"]
    assert "[FAIL] Sides are significantly slower than A by more than 5 %: C, 1 rank; C, 2 ranks." in capsys_err(
        words, capsys
    )


def capsys_err(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["compare", *words]) == 1
    return capsys.readouterr().err


def test_where_no_side_can_be_compared_it_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before", "wide", "attached"]) == 2
    assert "have no matching points" in capsys.readouterr().err


def outcome(rank: int, batch: int, arguments: tuple[str, ...]) -> ScriptOutcome:
    return ScriptOutcome(
        script="somewhere/train.py",
        arguments=arguments,
        rank=rank,
        size=2,
        host="here",
        pid=1,
        exit_code=0,
        error=None,
        traceback=None,
        steps=60,
        samples=60 * batch,
        timed_steps=59,
        timed_samples=59 * batch,
        timed_from_ns=1,
        timed_to_ns=2,
        device="cpu",
        backend="gloo",
    )
