"""The Python examples of the notebooks' page are executed, one after the other as in a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_pages import blocks

import paceline
from paceline import catalog
from samples import instant_script
from samples.compared_studies import timed_study

EXAMPLES = [block for block in blocks("python") if block.page.name == "notebooks.md"]


def test_the_examples_run_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    instant_script.written(tmp_path)
    (tmp_path / "runs").mkdir()
    for number, name in enumerate(("before", "after")):
        timed_study(tmp_path / "runs" / name, tmp_path / "cache", seed=number)
    local = catalog.ENTRIES["launcher"]["local"]
    for block in EXAMPLES:
        instant = (
            "samples.instant_script:InstantScripts"
            if "train.py" in block.text
            else "samples.finished_study:InstantLauncher"
        )
        # A range test has to train.
        entry = local if "tune(" in block.text else catalog.LauncherEntry(at=instant)
        monkeypatch.setitem(catalog.ENTRIES["launcher"], "local", entry)
        exec(compile(block.text, str(block), "exec"), {"__name__": "notebook"})
        assert capsys.readouterr().err == "", block.text


def test_every_function_has_an_example() -> None:
    text = "\n".join(block.text for block in EXAMPLES)
    functions = [name for name in paceline.__all__ if name.islower() and callable(getattr(paceline, name))]
    assert len(functions) >= 9
    assert [name for name in functions if f"paceline.{name}(" not in text] == []
