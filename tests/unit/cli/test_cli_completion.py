"""`paceline completion bash`, in a real bash: what is offered for the word that is being typed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.cli.app import VERBS, main

ASK = """
source {script}
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_paceline
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with two studies in it, and the command on the path."""
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "paceline").write_text(f'#!/bin/sh\nexec {sys.executable} -m paceline "$@"\n')
    (bin / "paceline").chmod(0o755)
    monkeypatch.setenv("PATH", str(bin), prepend=":")
    work = tmp_path / "work"
    for name in ("runs/digits", "runs/with space", "elsewhere", "runs/no-study"):
        (work / name).mkdir(parents=True)
        if name != "runs/no-study":
            (work / name / "study.toml").touch()
    (work / "my-study.toml").touch()
    monkeypatch.chdir(work)
    assert main(["completion", "bash"]) == 0
    out, err = capsys.readouterr()
    (tmp_path / "script.bash").write_text(out)
    assert "bash-completion/completions/paceline" in err
    return tmp_path / "script.bash"


def offered(script: Path, words: str) -> set[str]:
    """What bash offers for the last of some words; `''` is an empty one."""
    asked = ASK.format(script=script, words=words)
    done = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split("\n")) - {""}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_offers_verbs_options_studies_and_folders(place: Path) -> None:
    assert offered(place, "paceline ''") == set(VERBS)
    assert offered(place, "paceline stu") == {"study", "studies"}
    assert offered(place, "paceline data ''") == {"list", "fetch", "check", "show"}
    assert {"--target", "--format", "--figures", "--width"} <= offered(place, "paceline report runs/digits --")
    assert offered(place, "paceline study dig") == {"digits"}
    assert offered(place, "paceline train my") == {"my-study.toml"}
    assert offered(place, "paceline report ''") == {"elsewhere", "runs/digits", "runs/with\\ space"}
    assert offered(place, "paceline trace runs/d") == {"runs/digits"}
    assert offered(place, "paceline study digits --strategy ddp,fl") == {"ddp\\,flat"}  # as a shell writes it
    assert offered(place, "paceline export runs/digits --format t") == {"tensorboard"}
    assert "resnet50" in offered(place, "paceline models resnet5")
    assert offered(place, "paceline completion z") == {"zsh"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script_that_knows_the_verbs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell, "--json"]) == 0
    view = json.loads(capsys.readouterr().out)
    assert view["shell"] == shell and view["place"].startswith("~/")
    assert all(verb in view["script"] for verb in VERBS) and "__complete" in view["script"]


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert "paceline completion --help" in capsys.readouterr().err


def test_names_come_without_heavy_imports() -> None:
    code = (
        "import sys; from paceline.cli.app import main; main(['__complete', 'study', 'd']); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "digits" in done.stdout
    heavy = {"torch", "numpy", "pyarrow", "plotly", "matplotlib", "mlflow", "tensorboard", "scipy", "jinja2"}
    assert not heavy & set(done.stderr.split())
