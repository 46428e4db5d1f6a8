"""The energy that this host draws, from RAPL: the meters inside processors, which Linux shows as files.

    /sys/class/powercap/intel-rapl:0          package-0         counted: a socket, or a die of it
                        intel-rapl:0:0        core              within its package
                        intel-rapl:0:1        dram              memory: a meter of its own, counted apart
                        intel-rapl:1          package-1         counted
                        intel-rapl:2          psys              the whole platform: packages within it
                        intel-rapl-mmio:0     package-0         the same meter by another way

A meter counts microjoules and begins again at `max_energy_range_uj`, every few minutes under load. Many systems let
root alone read it; then nothing is measured. It is of the whole host, whatever ran there: one rank of a host reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
_PACKAGE = re.compile(r"intel-rapl:\d+")
_PART = re.compile(r"intel-rapl:\d+:\d+")


class Meter:
    """One counter of a processor, carried on over its beginning again."""

    def __init__(self, zone: Path) -> None:
        self._file = zone / "energy_uj"
        self._range_uj = int((zone / "max_energy_range_uj").read_text())
        self._before_uj = self._reading_uj()
        self.total_uj = 0
        """Since it was made."""

    def read(self) -> int:
        """Microjoules since it was made. OSError or ValueError where it cannot be read any more."""
        now_uj = self._reading_uj()
        drawn_uj = now_uj - self._before_uj
        # Assumes that it begins again at most once between two samples.
        self.total_uj += drawn_uj if drawn_uj >= 0 else drawn_uj + self._range_uj
        self._before_uj = now_uj
        return self.total_uj

    def _reading_uj(self) -> int:
        return int(self._file.read_text())


class Rapl:
    """The energy of this host's processors and memory since it was made."""

    def __init__(self, tree: Path = POWERCAP) -> None:
        zones = _zones(tree)
        self._meters = {
            "package_uj": _meters(zone for zone, name in zones if _is_package(zone, name)),
            "memory_uj": _meters(zone for zone, name in zones if _PART.fullmatch(zone.name) and name == "dram"),
        }

    def sample(self) -> dict[str, int]:
        """Microjoules by counter; one that is not there, or not to be read on all sockets, is left out for good."""
        found = {}
        for name, meters in self._meters.items():
            if meters:
                try:
                    found[name] = sum(meter.read() for meter in meters)
                except (OSError, ValueError):
                    self._meters[name] = []
        return found


def _zones(tree: Path) -> list[tuple[Path, str]]:
    """Every zone of the tree, with its name; none where one has no name, because it might be a package."""
    try:
        return [(zone, (zone / "name").read_text().strip()) for zone in sorted(tree.glob("intel-rapl:*"))]
    except OSError:
        return []


def _is_package(zone: Path, name: str) -> bool:
    return _PACKAGE.fullmatch(zone.name) is not None and name.startswith("package")


def _meters(zones: Iterable[Path]) -> list[Meter]:
    """A meter for each zone; none at all where one cannot be read, because a part would be taken for the whole."""
    try:
        return [Meter(zone) for zone in zones]
    except (OSError, ValueError):
        return []
