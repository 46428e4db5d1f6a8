"""A Ray cluster of two nodes on this machine, for the whole session: on loopback alone, ended by its process numbers.

The second node has a host name of its own (a UTS namespace, which needs root), so that a run can be seen to be spread
over hosts. It has one CPU and the head sixteen: what needs two on one node lands on the head.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.ci import in_ci
from light_ranks.light_launch import wait_for
from paceline.identity import inherited_environment
from paceline.launch.sweeper import end_session
from paceline.records.settings import LaunchSettings

SECOND_HOST = "paceline-second"
HEAD_CPUS, HEAD_GPUS, SECOND_CPUS = 16, 2, 1
START_S = 120
_SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_prestart_worker_first_driver": "0",  # sixteen processes, of which few are ever asked for
}


class RayNode:
    """One node: the processes of one session."""

    def __init__(self, folder: Path, *, host: str = "", address: str = "", cpus: int, gpus: int = 0) -> None:
        folder.mkdir()
        self._output = folder / "output"
        script = str(Path(__file__).with_name("ray_node.py"))
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                (sys.executable, script, str(os.getpid()), str(folder), host, address, str(cpus), str(gpus)),
                env=inherited_environment() | _SETTINGS,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def cluster_address(self) -> str:
        """The address of its cluster, once it is up."""

        def said() -> str:
            lines = [line for line in self._output.read_text().splitlines() if line.startswith("127.0.0.1:")]
            return lines[0] if lines else ("ended" if self._process.poll() is not None else "")

        address = wait_for(said, START_S, every_s=0.1)
        assert address.startswith("127."), self._output.read_text()
        return address

    def end(self) -> None:
        """All of it at once, as when the power fails."""
        wait_for(lambda: not end_session(self._process.pid), 10)
        self._process.wait(10)


class RayCluster:
    """A head and a second node."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._nodes: list[RayNode] = []

    def start(self) -> None:
        self.address = self._node(cpus=HEAD_CPUS, gpus=HEAD_GPUS).cluster_address()
        self.settings = LaunchSettings(ray_address=self.address, interface="lo")
        self.start_second()

    def start_second(self) -> None:
        """Start the second node, once more where it was killed."""
        self.second = self._node(host=SECOND_HOST, address=self.address, cpus=SECOND_CPUS)
        self.second.cluster_address()

    def end(self) -> None:
        for node in reversed(self._nodes):
            node.end()

    def _node(self, **told) -> RayNode:
        self._nodes.append(RayNode(self._folder / str(len(self._nodes)), **told))
        return self._nodes[-1]


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    """Two nodes of Ray. Where they cannot be had the tests are skipped, and fail in CI."""
    reason = ""
    if importlib.util.find_spec("ray") is None:
        reason = "Ray is not installed"
    elif os.geteuid() != 0:
        reason = "a second host name needs root"
    if reason:
        (pytest.fail if in_ci() else pytest.skip)(reason)
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # the path of a socket may have 107 bytes
    cluster = RayCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
        shutil.rmtree(folder, ignore_errors=True)
