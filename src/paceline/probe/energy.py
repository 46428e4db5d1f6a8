"""The energy of this host's processors and memory, from RAPL: meters inside processors that Linux exposes as files.

    /sys/class/powercap/intel-rapl:0          package-0         counted: a socket, or a die of it
                        intel-rapl:0:0        core              within its package
                        intel-rapl:0:1        dram              memory: a separate meter, counted separately
                        intel-rapl:1          package-1         counted
                        intel-rapl:2          psys              the whole platform: packages within it
                        intel-rapl-mmio:0     package-0         the same meter through another interface

A meter counts microjoules and wraps at `max_energy_range_uj`, every few minutes under load. On many systems only root
can read it; then nothing is measured. It measures the whole host and all its processes: one rank of a host reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
_PACKAGE = re.compile(r"intel-rapl:\d+")
_PART = re.compile(r"intel-rapl:\d+:\d+")


class Meter:
    """One counter of a processor, without its wrap-arounds."""

    def __init__(self, zone: Path) -> None:
        self._file = zone / "energy_uj"
        self._range_uj = int((zone / "max_energy_range_uj").read_text())
        self._before_uj = self._reading_uj()
        self.total_uj = 0

    def read(self) -> int:
        """Microjoules since the first reading. OSError or ValueError if it cannot be read any more."""
        now_uj = self._reading_uj()
        drawn_uj = now_uj - self._before_uj
        # Assumes that it wraps at most once between two samples.
        self.total_uj += drawn_uj if drawn_uj >= 0 else drawn_uj + self._range_uj
        self._before_uj = now_uj
        return self.total_uj

    def _reading_uj(self) -> int:
        return int(self._file.read_text())


class Rapl:
    """The energy of this host's processors and memory since the object was created."""

    def __init__(self, tree: Path = POWERCAP) -> None:
        zones = _zones(tree)
        self._meters = {
            "package_uj": _meters(zone for zone, name in zones if _is_package(zone, name)),
            "memory_uj": _meters(zone for zone, name in zones if _PART.fullmatch(zone.name) and name == "dram"),
        }

    def sample(self) -> dict[str, int]:
        """Microjoules by counter; one that cannot be read on all sockets is omitted from then on."""
        found = {}
        for name, meters in self._meters.items():
            if meters:
                try:
                    found[name] = sum(meter.read() for meter in meters)
                except (OSError, ValueError):
                    self._meters[name] = []
        return found


def _zones(tree: Path) -> list[tuple[Path, str]]:
    """Every zone with its name; none if a name cannot be read, because it might be a package."""
    try:
        return [(zone, (zone / "name").read_text().strip()) for zone in sorted(tree.glob("intel-rapl:*"))]
    except OSError:
        return []


def _is_package(zone: Path, name: str) -> bool:
    return _PACKAGE.fullmatch(zone.name) is not None and name.startswith("package")


def _meters(zones: Iterable[Path]) -> list[Meter]:
    """A meter for each zone; none if one cannot be read, because a partial sum would be wrong."""
    try:
        return [Meter(zone) for zone in zones]
    except (OSError, ValueError):
        return []
