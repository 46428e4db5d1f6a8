"""Every command of the documentation is run, or marked as needing what a test machine lacks.

a verb that reads            for real, on studies that were finished in milliseconds
run, train                   for real, with a launcher that starts no process
study                        as a dry run: all checks, points, placements and job scripts
tune                         up to where its ranks would be started
make, pytest                 their targets and files are there; the suite is what runs them
"""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

import pytest
from doc_pages import ROOT, Block, blocks, commands, parsed

from paceline import catalog
from paceline.app import study_loading
from paceline.cli.app import main
from paceline.studies.execute.lr_range_study import range_study
from samples.compared_studies import timed_study
from samples.image_files import write_folder

FINISHED = ("digits", "my-study", "train", "narrow", "wide", "before", "after")
"""Folders below runs/ that pages take for finished studies of the reader's."""
UNMARKED = {" ".join(words): (block, words) for block, words in commands() if not block.needs}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader would have it who has followed all pages so far."""
    place = tmp_path_factory.mktemp("reader")
    for block in blocks("python", "toml"):
        if block.file is not None and not block.file.startswith("src/"):
            (place / block.file).write_text(block.text)
    (place / "runs").mkdir()
    timed_study(place / "runs" / FINISHED[0], place / "cache", "data.validation=12", "run.repeats=5")
    for name in FINISHED[1:]:
        shutil.copytree(place / "runs" / FINISHED[0], place / "runs" / name)
    write_folder(place / "photos", {"daisy": 4, "roses": 4})
    return place


@pytest.fixture
def there(reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reader's folder as the current one, and nothing but it: no cache and no profile of this machine."""
    monkeypatch.chdir(reader)
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    if not (reader / "stripes.npz").exists():
        runpy.run_path("make_arrays.py")
    return reader


@pytest.mark.parametrize("line", [line for line in UNMARKED if line.startswith("paceline ")])
def test_a_command_does_what_its_page_says(
    there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    verb, *rest = UNMARKED[line][1][1:]
    if verb == "study":
        assert main([verb, *dry(rest)]) == 0
    elif verb == "tune":
        given = parsed(UNMARKED[line][1])[1]
        study = study_loading.load(given.get("study", "mnist-scaling"), ranks=given.get("ranks"))
        assert range_study(study, cores=2, first=1e-5, last=1.0, steps=100, repeats=1).study.run.repeats == 1
    else:
        launcher = (
            "samples.instant_script:InstantScripts" if verb == "run" else "samples.finished_study:InstantLauncher"
        )
        monkeypatch.setitem(catalog.ENTRIES["launcher"], "local", catalog.LauncherEntry(at=launcher))
        # What the doctor finds is about the machine, which may be too busy to answer it.
        assert main([verb, *rest]) in ((0, 1) if verb == "doctor" else (0,))
    out, err = capsys.readouterr()
    assert "Traceback" not in err and (out or err or verb == "tune")


def dry(words: list[str]) -> list[str]:
    """The words of a study with `--dry-run` among its own, before those of a script."""
    at = words.index("--") if "--" in words else len(words)
    return words if "--dry-run" in words else [*words[:at], "--dry-run", *words[at:]]


def test_nothing_else_is_left_unrun() -> None:
    """What is no verb of ours is a target of make, a file of tests, or has a mark with what it needs."""
    makefile = (ROOT / "Makefile").read_text()
    for block, words in UNMARKED.values():
        program, *rest = words
        if program == "paceline":
            continue
        if program == "make":
            assert all(f"\n{word}:" in makefile for word in rest if "=" not in word), words
            continue
        suite = words[:3] == [".venv/bin/python", "-m", "pytest"]
        assert suite, f"{block}: {' '.join(words)} is run by nothing: put <!-- needs: ... --> above its block"
        assert all((ROOT / word).exists() for word in rest[2:]), words


@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_a_shell_would_see_the_same_comments(block: Block) -> None:
    assert not re.search(r"[^\s#]#", block.text), "a # within a word begins no comment"


@pytest.mark.parametrize("block", [block for block in blocks("sh") if block.needs], ids=str)
def test_what_a_mark_says_is_missing_is_a_thing(block: Block) -> None:
    assert len(block.needs) > 3 and not block.needs.endswith("."), "the site makes a sentence of it"
