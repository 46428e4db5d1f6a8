"""Which tests share a process, and in which order they are taken, so that the suite is over soon on a few cores.

What waits (SLURM, links that are cut, ranks that hang) comes early and beside what computes; what measures comes first,
while little else runs. Files that share an expensive fixture (live ranks, a cluster, a browser) share a process.
"""

from __future__ import annotations

import pytest

_TOGETHER = {
    "tests/truth/": "truth",
    "tests/cluster/test_slurm.py": "slurm",
    "tests/scripts_run/test_run_slurm.py": "slurm",
    "tests/multiproc/": "multiproc",
    "tests/browser/": "browser",
}
_ORDER = (
    *("tests/truth/", "tests/cluster/test_slurm.py", "tests/scripts_run/test_run_slurm.py", "tests/contract/"),
    *("tests/multiproc/", "tests/cluster/test_mpi_strategies.py", "tests/faults/test_launcher_faults.py"),
    *("tests/published/", "tests/cluster/test_ray.py", "tests/faults/test_real_runs.py", "tests/cluster/test_hosts.py"),
    *("tests/cluster/test_parameter_server.py", "tests/faults/test_study_kills.py", "tests/browser/"),
    *("tests/scripts/", "tests/scripts_run/", "tests/cluster/", "tests/faults/", "tests/docs/test_site.py"),
    *("tests/docs/", "tests/property/", "tests/golden/", "tests/unit/training/test_keras_networks.py"),
)


def in_turn(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests in the order in which they are taken; those of a file stay as they are."""
    return sorted(items, key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    return next((place for place, start in enumerate(_ORDER) if nodeid.startswith(start)), len(_ORDER))


def together(file: str) -> str:
    """What a file's tests share a process with: itself, or a group of files."""
    return next((group for start, group in _TOGETHER.items() if file.startswith(start)), file)
