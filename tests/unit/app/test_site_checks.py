"""`paceline doctor --site`: a profile that is right starts two ranks for real; one that is wrong is told in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paceline.app import site_checks as site
from paceline.cli.app import main
from paceline.records.settings import LaunchSettings


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "config" / "paceline" / "sites"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder


def doctor(config: Path, capsys: pytest.CaptureFixture[str], text: str) -> tuple[int, dict[str, Any]]:
    (config / "mine.toml").write_text(text)
    code = main(["doctor", "--site", "mine", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["ready"] == (code == 0)
    return code, {check["name"]: check for check in found["checks"]}


@pytest.mark.parametrize("launcher", ["local", "mpi"])
def test_two_ranks_start_meet_and_exchange(config: Path, capsys: pytest.CaptureFixture[str], launcher: str) -> None:
    code, checks = doctor(config, capsys, f'[run]\nlauncher = "{launcher}"\n')
    assert code == 0, checks
    assert list(checks) == ["Profile", "Launcher", "Rank 0", "Rank 1", "Hello"]
    assert {check["status"] for check in checks.values()} == {"ok"}
    for rank in (0, 1):
        said = checks[f"Rank {rank}"]["facts"]
        assert said["rank"] == rank and said["met_s"] > 0 and said["started_s"] >= 0
        assert len(said["exchanges_s"]) == len(said["sizes_bytes"]) and min(said["exchanges_s"]) > 0
    assert list(Path.cwd().iterdir()) == []  # the folder of the run is gone, and runs/ with it


def test_a_profile_that_is_shown_to_a_person(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (config / "mine.toml").write_text('[run]\nlauncher = "mpi"\n[launch]\nmpiexec = "mpiexec.nosuch"\n')
    assert main(["doctor", "--site", "mine"]) == 1
    out = capsys.readouterr().out
    assert "[ OK ] Profile" in out and "[FAIL] Launcher       There is no mpiexec: 'mpiexec.nosuch'" in out
    assert "until this is fixed: Launcher." in out and "Traceback" not in out


def test_a_launcher_that_fails_is_told_in_its_own_words_and_leaves_its_logs(
    config: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = tmp_path / "mpiexec"
    broken.write_text(
        '#!/bin/sh\ncase "$1" in --version) echo HYDRA build details;; *) echo no slots left; exit 7;; esac\n'
    )
    broken.chmod(0o755)
    code, checks = doctor(config, capsys, f'[run]\nlauncher = "mpi"\n[launch]\nmpiexec = "{broken}"\n')
    assert (code, checks["Hello"]["status"]) == (1, "error")
    assert "ended with exit code 7 before any rank had started" in checks["Hello"]["found"].replace("\n", " ")
    assert "no slots left" in checks["Hello"]["remedy"]
    assert list(Path("runs").glob("hello-*/logs/launcher.log"))


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ('[run]\nlauncher = "locla"\n', "Profile", 'Did you mean "local"?'),
        ('[run]\nlauncher = "torchrun"\n[launch]\ninterface = "eht0"\n', "Interface", "no interface 'eht0'"),
        (
            '[run]\nlauncher = "mpi"\n[launch]\nmachines = ["a", "b"]\nagent = ["no-such-shell"]\n',
            "Agent",
            "no-such-shell: there is no such program",
        ),
        ('[run]\nlauncher = "ray"\n[launch]\nray_address = "127.0.0.1:1"\n', "Launcher", "There is no Ray cluster at"),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_started(
    config: Path, capsys: pytest.CaptureFixture[str], text: str, name: str, said: str
) -> None:
    code, checks = doctor(config, capsys, text)
    assert code == 1 and checks[name]["status"] == "error" and said in checks[name]["found"]
    assert "Hello" not in checks and not Path("runs").exists()


def test_a_partition_that_slurm_does_not_know(
    config: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sinfo = tmp_path / "bin" / "sinfo"
    sinfo.parent.mkdir()
    sinfo.write_text("#!/bin/sh\necho short\necho long\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sinfo.parent}:/usr/bin:/bin")
    code, checks = doctor(
        config, capsys, '[run]\nlauncher = "slurm"\n[launch]\npartition = "shrot"\nmodules = ["gcc"]\n'
    )
    assert code == 1
    assert checks["Partition"]["remedy"] == "SLURM knows short, long. Did you mean 'short'?"
    assert "gcc: loaded by the job" in checks["Modules"]["found"]


def test_a_site_that_is_not_there_names_those_that_are(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    (config / "alps.toml").touch()
    assert main(["doctor", "--site", "apls"]) == 1
    out = capsys.readouterr().out
    assert "There is no site called 'apls'. Did you mean 'alps'?" in out


@pytest.mark.parametrize(
    ("launcher", "settings", "hosts"),
    [
        ("local", LaunchSettings(interface="lo"), 1),
        ("mpi", LaunchSettings(machines=("a", "b")), 1),
        ("mpi", LaunchSettings(machines=("a", "b"), interface="lo"), 2),
        ("torchrun", LaunchSettings(machines=("a",), interface="lo"), 1),
        ("slurm", LaunchSettings(interface="ib0"), 2),
        ("ray", LaunchSettings(interface="lo"), 1),
        ("ray", LaunchSettings(interface="lo", ray_address="h:1"), 2),
        ("ray", LaunchSettings(interface="lo", ray_address="h:1", spread=False), 1),
    ],
)
def test_the_two_ranks_are_on_two_hosts_where_the_profile_says_how(
    launcher: str, settings: LaunchSettings, hosts: int
) -> None:
    assert site.hello_point(launcher, settings).hosts == hosts
