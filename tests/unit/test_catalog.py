"""The catalog: what its entries say, and what other packages may register."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paceline import catalog
from paceline.app.launcher_checks import launcher_states
from paceline.cli.app import main
from paceline.errors import RequestError
from testbeds.installed_packages import installed, write_package

ENTRIES = """
from paceline.catalog import LauncherEntry, ModelEntry, OptimizerEntry, StrategyEntry

TINY = ModelEntry(at="acme:tiny", text="a tiny network", options={"width": 4})
LION = OptimizerEntry(at="acme:Lion", text="the sign of a mean", takes=("momentum",))
CLOUD = LauncherEntry(at="acme:Cloud", text="ranks of a cloud", several_hosts=True, doctor_asks="no-such-program")
LOST = StrategyEntry(at="acme:nowhere", text="an object that is not there")
BARE = StrategyEntry(text="without a place")
ODD = StrategyEntry(at="acme:tiny", options={"colour": 1})


def tiny(shape, classes, *, width=4):
    return (shape, classes, width)


def find(measured):
    return None


def words(finding):
    return None
"""
GROUPS = {
    "paceline.models": {"tiny": "acme:TINY"},
    "paceline.optimizers": {"lion": "acme:LION"},
    "paceline.launchers": {"cloud": "acme:CLOUD"},
    "paceline.strategies": {"lost": "acme:LOST", "bare": "acme:BARE", "odd": "acme:ODD", "wrong": "acme:TINY"},
    "paceline.findings": {"mine": "acme", "empty": "acme:TINY"},
    "paceline.datasets": {"broken": "acme_gone:DATA", "absent": "acme:NOTHING"},
}


@pytest.fixture
def acme(tmp_path: Path):
    write_package(tmp_path, "acme", ENTRIES, GROUPS)
    with installed(tmp_path):
        yield tmp_path


def test_what_a_package_registers_stands_after_paceline_s_own(acme: Path) -> None:
    assert catalog.names("model") == (*catalog.ENTRIES["model"], "tiny")
    assert catalog.model("tiny").options == {"width": 4}
    assert catalog.load("model", "tiny")(shape=1, classes=2) == (1, 2, 4)
    assert catalog.optimizer("lion").takes == ("momentum",)
    assert catalog.launcher("cloud").several_hosts
    assert "tiny" in catalog.unknown("model", "tinny") and "Did you mean 'tiny'?" in catalog.unknown("model", "tinny")


def test_a_finding_is_the_object_itself(acme: Path) -> None:
    assert catalog.names("finding") == ("empty", "mine")
    assert catalog.load("finding", "mine").find(None) is None
    with pytest.raises(RequestError, match="acme:TINY, has no function find and no words"):
        catalog.load("finding", "empty")


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("dataset", "broken", "cannot be imported: ModuleNotFoundError: No module named 'acme_gone'"),
        ("dataset", "absent", "cannot be imported: AttributeError"),
        ("strategy", "wrong", "is of type ModelEntry"),
        ("strategy", "bare", "has at=''"),
        ("strategy", "odd", "takes 'colour'"),
        ("strategy", "lost", "is at 'acme:nowhere', which cannot be imported: AttributeError"),
    ],
)
def test_a_broken_entry_is_refused_with_a_sentence(acme: Path, kind: str, name: str, said: str) -> None:
    with pytest.raises(RequestError) as caught:
        catalog.load(kind, name)
    assert f"The {kind} {name!r} " in caught.value.what and said in caught.value.what
    assert caught.value.right and caught.value.next
    assert catalog.description(kind, name)


def test_a_broken_entry_does_not_hide_the_others(acme: Path) -> None:
    assert set(dict(catalog.entries("strategy"))) == {*catalog.ENTRIES["strategy"], "lost"}
    assert set(dict(catalog.entries("dataset"))) == set(catalog.ENTRIES["dataset"])


def test_the_doctor_looks_for_the_program_of_a_launcher(acme: Path) -> None:
    (cloud,) = [found for found in launcher_states(answer_s=0) if found.name == "cloud"]
    assert (cloud.works, cloud.text) == (False, "needs no-such-program")


def test_a_name_of_paceline_s_own_is_refused(tmp_path: Path) -> None:
    write_package(tmp_path, "acme", ENTRIES, {"paceline.models": {"mlp": "acme:TINY"}})
    with installed(tmp_path), pytest.raises(RequestError, match="acme registers a model called 'mlp'"):
        catalog.names("model")


def test_a_name_of_two_packages_is_refused(tmp_path: Path) -> None:
    for package in ("acme", "other"):
        write_package(tmp_path, package, ENTRIES, {"paceline.models": {"tiny": f"{package}:TINY"}})
    with installed(tmp_path), pytest.raises(RequestError, match="Two packages register a model called 'tiny'"):
        catalog.names("model")


@pytest.mark.parametrize("words", [["models"], ["models", "broken"], ["study", "digits", "--set", "model.name=broken"]])
def test_commands_show_a_broken_package_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    write_package(tmp_path, "acme", "raise OSError('no licence')", {"paceline.models": {"broken": "acme:TINY"}})
    with installed(tmp_path):
        code = main([*words, "--dry-run"] if words[0] == "study" else words)
    out, err = capsys.readouterr()
    assert code == (0 if words == ["models"] else 2)
    assert "no licence" in out + err and "Traceback" not in out + err


def test_metadata_is_read_only_for_names_that_are_not_paceline_s_own() -> None:
    code = (
        "import sys; from paceline import catalog\n"
        "assert catalog.strategy('ddp').shows_noise and catalog.known('launcher', 'local')\n"
        "assert catalog.model('torchvision:resnet101').pretrained\n"
        "assert 'importlib.metadata' not in sys.modules and 'torch' not in sys.modules\n"
        "assert not catalog.known('strategy', 'none')\n"
        "assert 'importlib.metadata' in sys.modules and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
