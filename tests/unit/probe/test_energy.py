"""Meters of processors, as files that the test lays out."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.probe.energy import POWERCAP, Rapl

RANGE_UJ = 262_143_328_850


def zone(tree: Path, number: str, name: str, energy_uj: int, range_uj: int = RANGE_UJ) -> Path:
    folder = tree / number
    folder.mkdir(parents=True)
    for file, value in (("name", name), ("energy_uj", energy_uj), ("max_energy_range_uj", range_uj)):
        (folder / file).write_text(f"{value}\n")
    return folder


@pytest.fixture
def two_sockets(tmp_path) -> Path:
    """A server: two packages, parts of them, their memory, the platform, and a second way to the first package."""
    (tmp_path / "intel-rapl").mkdir()
    (tmp_path / "intel-rapl" / "enabled").write_text("1\n")
    (tmp_path / "dtpm").mkdir()
    for number, name, energy_uj in (
        ("intel-rapl:0", "package-0", 1_000),
        ("intel-rapl:0:0", "core", 500),
        ("intel-rapl:0:1", "uncore", 10),
        ("intel-rapl:0:2", "dram", 70),
        ("intel-rapl:1", "package-1", 2_000),
        ("intel-rapl:1:0", "core", 900),
        ("intel-rapl:1:1", "dram", 80),
        ("intel-rapl:2", "psys", 9_000),
        ("intel-rapl-mmio:0", "package-0", 1_000),
    ):
        zone(tmp_path, number, name, energy_uj)
    return tmp_path


def add(tree: Path, uj: int, *numbers: str) -> None:
    for number in numbers:
        file = tree / number / "energy_uj"
        file.write_text(f"{int(file.read_text()) + uj}\n")


EVERY = ("intel-rapl:0", "intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:0:2", "intel-rapl:1", "intel-rapl:1:0")
EVERY += ("intel-rapl:1:1", "intel-rapl:2", "intel-rapl-mmio:0")


def test_packages_are_added_up_and_nothing_within_or_around_them_is(two_sockets) -> None:
    rapl = Rapl(two_sockets)
    assert rapl.sample() == {"package_uj": 0, "memory_uj": 0}
    add(two_sockets, 10, *EVERY)
    assert rapl.sample() == {"package_uj": 20, "memory_uj": 20}
    add(two_sockets, 5, "intel-rapl:1")
    assert rapl.sample() == {"package_uj": 25, "memory_uj": 20}


def test_dies_of_one_socket_are_packages_and_a_processor_may_have_no_meter_for_memory(tmp_path) -> None:
    for die in (0, 1):
        zone(tmp_path, f"intel-rapl:{die}", f"package-0-die-{die}", 100)
    rapl = Rapl(tmp_path)
    add(tmp_path, 7, "intel-rapl:0", "intel-rapl:1")
    assert rapl.sample() == {"package_uj": 14}


def test_a_meter_that_begins_again_is_carried_on(tmp_path) -> None:
    """Twice, and on one of two sockets only: the range is 1,000."""
    for socket, energy_uj in ((0, 900), (1, 100)):
        zone(tmp_path, f"intel-rapl:{socket}", f"package-{socket}", energy_uj, 1_000)
    rapl = Rapl(tmp_path)
    totals = []
    for first, second in ((950, 200), (50, 300), (900, 400), (10, 400)):
        for socket, energy_uj in ((0, first), (1, second)):
            (tmp_path / f"intel-rapl:{socket}" / "energy_uj").write_text(str(energy_uj))
        totals.append(rapl.sample()["package_uj"])
    assert totals == [150, 350, 1300, 1410]


@pytest.mark.parametrize("number", ["intel-rapl:0", "intel-rapl:1"])
@pytest.mark.parametrize("file", ["energy_uj", "max_energy_range_uj"])
def test_one_socket_that_cannot_be_read_leaves_the_packages_out(two_sockets, number, file) -> None:
    """A part would be taken for the whole; memory has meters of its own. Root may read all, so it is taken away."""
    (two_sockets / number / file).unlink()
    assert Rapl(two_sockets).sample() == {"memory_uj": 0}


def test_a_meter_that_is_there_and_cannot_be_read_is_not_measured(two_sockets) -> None:
    """As one that only root may read; tests may be run by root, so there is a folder in its place."""
    (two_sockets / "intel-rapl:0" / "energy_uj").unlink()
    (two_sockets / "intel-rapl:0" / "energy_uj").mkdir()
    assert Rapl(two_sockets).sample() == {"memory_uj": 0}


@pytest.mark.parametrize("said", ["", "none\n"])
def test_a_meter_that_fails_on_the_way_is_given_up_for_good(two_sockets, said) -> None:
    rapl = Rapl(two_sockets)
    (two_sockets / "intel-rapl:1" / "energy_uj").write_text(said)
    assert rapl.sample() == {"memory_uj": 0}
    (two_sockets / "intel-rapl:1" / "energy_uj").write_text("2010")
    assert rapl.sample() == {"memory_uj": 0}


def test_a_zone_without_a_name_might_be_a_package(two_sockets) -> None:
    (two_sockets / "intel-rapl:0" / "name").unlink()
    assert Rapl(two_sockets).sample() == {}


def test_without_meters_nothing_is_measured(tmp_path) -> None:
    assert Rapl(tmp_path / "none").sample() == {}


def test_this_host() -> None:
    """Whatever it has: a meter counts up, and one that is not there is not called 0."""
    rapl = Rapl()
    first, second = rapl.sample(), rapl.sample()
    assert first.keys() == second.keys()
    assert all(second[name] >= first[name] >= 0 for name in first)
    if not POWERCAP.exists():
        assert first == {}
